"""Parts, keyboards, files and quotes as the JSON that stands in a column, and back.

Pure. Reading is forgiving about fields that are missing, as older rows have fewer of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.messages import Button, FileKind, FileRef, Keyboard, Part, Quote, Style
from core.store.records import FilePart

NOTHING = "{}"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def dump_part(part: Part | FilePart) -> str:
    if isinstance(part, FilePart):
        caption = _part(part.caption) if part.caption else None
        return _dump({"path": part.path, "name": part.name, "caption": caption})
    return _dump(_part(part))


def load_part(text: str) -> Part | FilePart:
    value = json.loads(text)
    if "path" not in value:
        return _load_part(value)
    caption = value.get("caption")
    return FilePart(value["path"], value["name"], _load_part(caption) if caption else None)


def dump_keyboard(keyboard: Keyboard) -> str:
    if not keyboard:
        return "[]"
    return _dump([[[b.id, b.label, b.style.value] for b in row] for row in keyboard])


def load_keyboard(text: str) -> Keyboard:
    if text == "[]":
        return ()
    rows = json.loads(text)
    return tuple(tuple(Button(id, label, Style(style)) for id, label, style in row) for row in rows)


def dump_extra(files: tuple[FileRef, ...], quote: Quote | None, album: str) -> str:
    """What a message carries besides its text."""
    if not files and quote is None and not album:
        return NOTHING
    extra: dict[str, object] = {}
    if files:
        extra["files"] = [_file(file) for file in files]
    if quote is not None:
        extra["quote"] = {
            "text": quote.text,
            "author": quote.author,
            "origin": quote.origin,
            "forwarded": quote.forwarded,
            "files": [_file(file) for file in quote.files],
        }
    if album:
        extra["album"] = album
    return _dump(extra)


def load_extra(text: str) -> tuple[tuple[FileRef, ...], Quote | None, str]:
    if text == NOTHING:
        return (), None, ""
    extra = json.loads(text)
    quote = extra.get("quote")
    return (
        tuple(_load_file(file) for file in extra.get("files", ())),
        _load_quote(quote) if quote else None,
        extra.get("album", ""),
    )


def dump_data(data: Mapping[str, object]) -> str:
    return _dump(dict(data)) if data else NOTHING


def load_data(text: str) -> dict[str, object]:
    value: dict[str, object] = json.loads(text)
    return value


def _part(part: Part) -> dict[str, str]:
    return {"text": part.text, "markup": part.markup} if part.markup else {"text": part.text}


def _load_part(value: Mapping[str, Any]) -> Part:
    return Part(value["text"], value.get("markup", ""))


def _file(file: FileRef) -> dict[str, object]:
    return {
        "ref": file.ref,
        "kind": file.kind.value,
        "name": file.name,
        "mime": file.mime,
        "size": file.size,
    }


def _load_file(value: Mapping[str, Any]) -> FileRef:
    return FileRef(
        value["ref"],
        FileKind(value["kind"]),
        value["name"],
        value.get("mime", ""),
        value.get("size"),
    )


def _load_quote(value: Mapping[str, Any]) -> Quote:
    return Quote(
        value["text"],
        value.get("author", ""),
        value.get("origin", ""),
        value.get("forwarded", False),
        tuple(_load_file(file) for file in value.get("files", ())),
    )
