"""The rules of the Bot API that the fake server enforces, and the wording of its refusals.

Plain functions over the parameters of a call; they hold no state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]

TEXT_MOST, CAPTION_MOST, ENTITIES_MOST, DATA_MOST = 4096, 1024, 100, 64
UPLOAD_MOST, PHOTO_MOST, DOWNLOAD_MOST = 50_000_000, 10_000_000, 20_000_000
STYLES = {"primary", "success", "danger"}
REACTIONS = {
    *"👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌🕊🤡🥱🥴😍🐳🌚🌭💯🤣⚡🍌🏆💔🤨😐",
    *"🍓🍾💋🖕😈😴😭🤓👻👀🎃🙈😇😨🤝✍🤗🫡🎅🎄☃💅🤪🗿🆒💘🙉🦄😘💊🙊😎👾🤷😡",
    "❤\u200d🔥",
    "👨\u200d💻",
    "🤷\u200d♂",
    "🤷\u200d♀",
}
ENTITY_TYPES = {
    *("mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold"),
    *("italic", "underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote"),
    *("code", "pre", "text_link", "text_mention", "custom_emoji"),
}
_WRITTEN = re.compile(r"(?P<command>(?<!\S)/[A-Za-z0-9_]+(?:@\w+)?)|(?P<mention>(?<!\w)@\w{3,})")


class Refusal(Exception):
    """The answer is an error: status, description, parameters."""

    def __init__(self, description: str, status: int = 400, **parameters: object) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters

    def body(self) -> Json:
        """The error as the Bot API words it."""
        said: Json = {"ok": False, "error_code": self.status, "description": self.description}
        if self.parameters:
            said["parameters"] = self.parameters
        return said


def units(text: str) -> int:
    """UTF-16 code units: what every length and offset of the Bot API counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def written_entities(text: str) -> list[Json]:
    """Commands and mentions as Telegram marks them in what a person wrote."""
    return [
        {
            "type": "bot_command" if found.lastgroup == "command" else "mention",
            "offset": units(text[: found.start()]),
            "length": units(found.group()),
        }
        for found in _WRITTEN.finditer(text)
    ]


def shown_text(text: str, entities: Sequence[Json], most: int, what: str) -> tuple[str, list[Json]]:
    """Text and entities as they are kept: blanks at both ends are not."""
    if units(text) > most:
        raise Refusal(f"Bad Request: {what} is too long")
    check_entities(text, entities)
    lead = units(text) - units(text.lstrip())
    kept = text.strip()
    most_kept = units(kept)
    moved = []
    for entity in entities:
        start = max(0, entity["offset"] - lead)
        end = min(most_kept, entity["offset"] + entity["length"] - lead)
        if end > start:
            moved.append({**entity, "offset": start, "length": end - start})
    return kept, moved


def check_entities(text: str, entities: Sequence[Json]) -> None:
    """Number, kind and place of entities; a surrogate pair may not be cut."""
    if len(entities) > ENTITIES_MOST:
        raise Refusal("Bad Request: too many entities")
    raw = text.encode("utf-16-le", "surrogatepass")
    for entity in entities:
        kind, start, length = entity.get("type"), entity.get("offset"), entity.get("length")
        if kind not in ENTITY_TYPES:
            raise Refusal(f"Bad Request: can't parse entities: unsupported type {kind}")
        if not isinstance(start, int) or not isinstance(length, int) or start < 0 or length < 1:
            raise Refusal("Bad Request: can't parse entities: bad offset or length")
        if (start + length) * 2 > len(raw):
            raise Refusal("Bad Request: ENTITY_BOUNDS_INVALID")
        for edge in (start, start + length):
            if (
                0xDC00
                <= int.from_bytes(raw[edge * 2 : edge * 2 + 2] or b"\0\0", "little")
                <= 0xDFFF
            ):
                raise Refusal("Bad Request: ENTITY_BOUNDS_INVALID")
        if kind == "text_link" and not entity.get("url"):
            raise Refusal("Bad Request: can't parse entities: url is missing")


def check_keyboard(markup: object) -> Json | None:
    """Inline buttons: 64 bytes of data, 8 in a row, 100 in all."""
    if not markup:
        return None
    if not isinstance(markup, dict) or not isinstance(markup.get("inline_keyboard"), list):
        raise Refusal("Bad Request: can't parse reply keyboard markup JSON object")
    buttons = [button for row in markup["inline_keyboard"] for button in row]
    if len(buttons) > 100 or any(len(row) > 8 for row in markup["inline_keyboard"]):
        raise Refusal("Bad Request: reply markup is too long")
    for button in buttons:
        if not button.get("text"):
            raise Refusal("Bad Request: can't parse inline keyboard button: text must be non-empty")
        data = str(button.get("callback_data", "")).encode()
        if not 1 <= len(data) <= DATA_MOST:
            raise Refusal("Bad Request: BUTTON_DATA_INVALID")
        if button.get("style", "primary") not in STYLES:
            raise Refusal("Bad Request: BUTTON_STYLE_INVALID")
    return markup if buttons else None


def check_reactions(reactions: Sequence[Mapping[str, str]]) -> list[str]:
    """A bot sets at most one reaction, of the emoji that Telegram allows."""
    if len(reactions) > 1:
        raise Refusal("Bad Request: REACTIONS_TOO_MANY")
    emoji = [str(reaction.get("emoji")) for reaction in reactions]
    if not set(emoji) <= REACTIONS:
        raise Refusal("Bad Request: REACTION_INVALID")
    return emoji
