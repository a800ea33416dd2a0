"""Where a lane's turns work, and what received files are called. Pure naming; writes nothing."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path

_UNSAFE = re.compile(r"[^\w.@+=,-]+")
_LONGEST = 120  # bytes; far under every file system's 255, with room for a counter


def folder_name(lane: str) -> str:
    """A lane's id as one path component: readable, and never the same for two lanes.

    ``telegram:-100:36`` → ``telegram_-100_36-5f0c2b1e``. Without the end it would also be the
    folder of a terminal lane that somebody called ``telegram_-100_36``.
    """
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "_" for c in lane)
    digest = hashlib.sha256(lane.encode(errors="surrogatepass")).hexdigest()
    return f"{readable[:40].lstrip('.') or '_'}-{digest[:8]}"


def workspace(home: Path, lane: str, own: str, shared: str) -> Path:
    """The folder a lane works in: its own setting, else the one for all, else one of its own."""
    named = own or shared
    return Path(named).expanduser() if named else home / "workspaces" / folder_name(lane)


def claim(own: str, shared: str) -> str:
    """The folder as the lane rules compare it; "" where no other lane can be in it.

    Both were ``resolved`` when they were set, so no message has to ask the disk.
    """
    return own or shared


def resolved(folder: Path) -> Path:
    """The folder itself, whatever links and names lead to it; for when it is set."""
    try:
        return folder.expanduser().resolve()
    except (OSError, RuntimeError):  # it goes round in a circle; who works there is told
        return folder


def safe_name(name: str) -> str:
    """A file name somebody sent, as one harmless path component; never empty, never hidden."""
    text = _last(unicodedata.normalize("NFC", name).replace("\0", ""))
    return _short(_UNSAFE.sub("_", text).lstrip(".")) or "file"


def shown_name(name: str) -> str:
    """A file name somebody chose, as people and platforms see it: one line, nothing invisible.

    It travels in headers, where a line's end would be the start of another.
    """
    known = unicodedata.normalize("NFC", name.encode(errors="replace").decode())
    seen = "".join(mark if mark.isprintable() else " " for mark in _last(known))
    return _short(" ".join(seen.split())) or "file"


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]


def _short(name: str) -> str:
    """Not longer than names may be; a short ending stays."""
    stem, dot, suffix = name.rpartition(".")
    if dot and len(suffix) <= 12:
        return _cut(stem, _LONGEST - len(suffix.encode()) - 1) + dot + suffix
    return _cut(name, _LONGEST)


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")
