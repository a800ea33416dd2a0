"""What the real Slack refuses: lengths, blocks, and the shape of its refusals. Pure."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

TEXT_MOST, UPDATE_TEXT_MOST, MARKDOWN_MOST = 40_000, 4_000, 12_000
BLOCKS_MOST, PAYLOAD_MOST = 50, 13_200
SECTION_MOST, HEADER_MOST, CONTEXT_MOST, ACTIONS_MOST = 3_000, 150, 10, 25
LABEL_MOST, VALUE_MOST, ID_MOST, STYLES = 75, 2_000, 255, ("primary", "danger")
STATUS_MOST, PROMPTS_MOST = 100, 4


class Refusal(Exception):
    """``{"ok": false, "error": …}``, with HTTP 200 unless another status is named."""

    def __init__(self, error: str, status: int = 200, **fields: object) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.fields = fields
        self.retry_after = fields.pop("retry_after", None)

    def body(self) -> Json:
        return {"ok": False, "error": self.error, **self.fields}


def check_message(p: Json, text_most: int) -> None:
    """The content of a message that is posted or updated."""
    text, blocks, markdown = p.get("text") or "", p.get("blocks"), p.get("markdown_text")
    if markdown and (text or blocks):
        raise Refusal("markdown_text_conflict")
    if not (text.strip() or blocks or markdown or p.get("attachments")):
        raise Refusal("no_text")
    if len(text) > text_most or len(markdown or "") > MARKDOWN_MOST:
        raise Refusal("msg_too_long")
    if blocks:
        check_blocks(blocks)


def check_blocks(blocks: object) -> None:
    """Block Kit's limits."""
    if not isinstance(blocks, list) or len(blocks) > BLOCKS_MOST:
        raise _bad("no more than 50 items allowed")
    if len(json.dumps(blocks, ensure_ascii=False)) > PAYLOAD_MOST:
        raise Refusal("msg_blocks_too_long")
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    if len(ids) != len(set(ids)) or any(len(one) > ID_MOST for one in ids):
        raise _bad("block_id")
    if sum(block.get("type") == "table" for block in blocks) > 1:
        raise _bad("only one table")
    markdown = 0
    for block in blocks:
        match block.get("type"):
            case "section":
                _text(block.get("text"), SECTION_MOST)
            case "header":
                _text(block.get("text"), HEADER_MOST, ("plain_text",))
            case "markdown":
                markdown += len(block.get("text") or "")
                if not block.get("text"):
                    raise _bad("markdown without text")
            case "context":
                if not 1 <= len(block["elements"]) <= CONTEXT_MOST:
                    raise _bad("context")
            case "actions":
                _actions(block)
            case "rich_text":
                if not block.get("elements"):
                    raise _bad("rich_text")
            case "divider" | "table" | "image":
                pass
            case other:
                raise _bad(f"unsupported type: {other}")
    if markdown > MARKDOWN_MOST:
        raise Refusal("msg_blocks_too_long")


def _actions(block: Json) -> None:
    elements = block.get("elements") or []
    if not 1 <= len(elements) <= ACTIONS_MOST:
        raise _bad("actions")
    ids = [one.get("action_id", "") for one in elements]
    if len(ids) != len(set(ids)) or any(len(one) > ID_MOST for one in ids):
        raise _bad("action_id")
    for one in elements:
        _text(one.get("text"), LABEL_MOST, ("plain_text",))
        if len(one.get("value", "")) > VALUE_MOST:
            raise _bad("value")
        if "style" in one and one["style"] not in STYLES:
            raise _bad("style")


def _text(text: object, most: int, kinds: tuple[str, ...] = ("mrkdwn", "plain_text")) -> None:
    if not isinstance(text, dict) or text.get("type") not in kinds:
        raise _bad("text")
    if not 1 <= len(text.get("text") or "") <= most:
        raise _bad(f"must be between 1 and {most} characters")


def _bad(what: str) -> Refusal:
    return Refusal("invalid_blocks", response_metadata={"messages": [f"[ERROR] {what}"]})


def mentions(text: str, user: str) -> bool:
    """Whether a text names this user."""
    return f"<@{user}>" in text or f"<@{user}|" in text


def shown_text(message: Json) -> str:
    """What a person reads of a message: its blocks if it has any, else its text."""
    pieces: list[str] = []
    for block in message.get("blocks") or []:
        if block["type"] in ("section", "header"):
            pieces.append(block["text"]["text"])
        elif block["type"] == "markdown":
            pieces.append(block["text"])
        elif block["type"] in ("rich_text", "context", "table"):
            pieces.append(_inside(block))
    words = "\n".join(pieces) if pieces else message.get("text", "")
    return str(words).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _inside(element: object) -> str:
    if isinstance(element, list):
        return "".join(_inside(one) for one in element)
    if not isinstance(element, dict):
        return ""
    if isinstance(text := element.get("text"), str):
        return text
    return "".join(_inside(element.get(key)) for key in ("elements", "rows", "text"))
