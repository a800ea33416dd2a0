"""A part and its buttons as the content of a Slack message, within Slack's limits. Pure.

It must not know where a message goes, nor what a button means.
"""

from __future__ import annotations

import json
from typing import Any

from channels.markup import slack as markup
from channels.markup.slack_blocks import quiet
from channels.markup.styled import shows
from channels.slack.text import escape, visible
from core.messages import Button, Keyboard, Part, Style, clean

Block = dict[str, Any]

TEXT_MOST = 3_900  # of chat.update, which takes less than chat.postMessage
PLAIN_MOST = 8_000  # beside buttons; the JSON of all blocks may have about 13,000 signs
BLOCKS_MOST, ROW_MOST, LABEL_MOST = 50, 25, 75
_STYLES = {Style.PRIMARY: "primary", Style.SUCCESS: "primary", Style.DANGER: "danger"}


def rendered(markdown: str) -> list[Part]:
    """Markdown as parts; the text of each is what it shows, the markup is Slack's."""
    return [
        Part(
            visible(one.text),
            json.dumps({"text": one.text, "blocks": one.blocks}, ensure_ascii=False),
        )
        for one in markup.render(markdown)
    ]


def content(part: Part, keyboard: Keyboard = ()) -> dict[str, object]:
    """``text`` and ``blocks`` of a message. Without blocks the list is empty: an update that
    leaves it out would keep the buttons of before.
    """
    text, blocks = _shown(part)
    if not blocks and (keyboard or len(escape(text)) > TEXT_MOST):
        blocks = [plain_block(cut(text, PLAIN_MOST))]
    rows = _rows(keyboard)
    blocks = [*blocks[: BLOCKS_MOST - len(rows)], *rows]
    return {"text": _fall_back(part, text), "blocks": blocks}


def caption(part: Part | None, name: str, mark: str) -> list[Block]:
    """The words beside a file, by whose mark its message is known again; there must be some."""
    text, blocks = _shown(part) if part is not None and part.text.strip() else (name, [])
    if not blocks or any(block["type"] != "rich_text" for block in blocks):
        blocks = [plain_block(cut(text, PLAIN_MOST))]
    return [{**blocks[0], "block_id": mark}, *blocks[1:BLOCKS_MOST]]


def comment(part: Part | None) -> str | None:
    """The same in Slack's own markup, for where no blocks are taken."""
    if part is None or not part.text.strip():
        return None
    return _written(part) or escape(clean(part.text))


def plain_block(text: str) -> Block:
    """Text that is shown as it is: nothing in it is read as markup."""
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": quiet(text)}]}
    return {"type": "rich_text", "elements": [section]}


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _fall_back(part: Part, text: str) -> str:
    """For notifications, and for whoever shows no blocks: all of it, as far as Slack takes it."""
    if text == part.text and 0 < len(written := _written(part)) <= TEXT_MOST:
        return written
    written = escape(text)
    if len(written) <= TEXT_MOST:
        return written
    head = written[: TEXT_MOST - 1]
    sign = head.rfind("&", -len("&amp;"))
    return (head[:sign] if sign >= 0 and ";" not in head[sign:] else head) + "…"


def _shown(part: Part) -> tuple[str, list[Block]]:
    """Text and blocks of a part; a text that would show nothing becomes a visible sign."""
    text = clean(part.text)
    if not shows(text):
        return "…", []
    if text == part.text and (made := _marked(part)):
        blocks, below = made["blocks"], _below(part, made)
        return text, [*blocks, plain_block(cut(below, PLAIN_MOST))] if below else blocks
    return text, []


def _marked(part: Part) -> dict[str, Any]:
    """Its markup, where its text is what the markup shows, or begins with that; else nothing."""
    made: dict[str, Any] = json.loads(part.markup) if part.markup else {}
    return made if made and part.text.startswith(visible(made["text"])) else {}


def _below(part: Part, made: dict[str, Any]) -> str:
    """What was written below it since, such as how a question was decided."""
    return part.text.removeprefix(visible(made["text"])).strip("\n")


def _written(part: Part) -> str:
    """All of it in Slack's own markup; empty where it has none."""
    if not (made := _marked(part)):
        return ""
    below = _below(part, made)
    return f"{made['text']}\n\n{escape(below)}" if below else str(made["text"])


def _rows(keyboard: Keyboard) -> list[Block]:
    """Each row of buttons as a block; what is more than a block takes goes into the next."""
    rows: list[Block] = []
    for row in keyboard:
        for start in range(0, len(row), ROW_MOST):
            elements = [_button(one) for one in row[start : start + ROW_MOST]]
            rows.append({"type": "actions", "elements": elements})
    return rows[: BLOCKS_MOST - 1]


def _button(button: Button) -> Block:
    label = cut(clean(button.label).strip() or "…", LABEL_MOST)
    shown: Block = {
        "type": "button",
        "action_id": button.id,
        "value": button.id,
        "text": {"type": "plain_text", "text": label, "emoji": True},
    }
    if style := _STYLES.get(button.style):
        shown["style"] = style
    return shown
