"""What ``laneway doctor`` says of names that look like settings and are none.

A name that begins as ours do is refused by every start; one that does not is never looked at, and
so what it was to set is silently not set.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dotenv.parser import parse_stream

from core.engines.base import Finding
from gateway.settings_table import table

PREFIX = "LANEWAY"
ALIKE = 0.8  # of 1: how much the beginning of a name has to look like ours


def misspelled(environ: Mapping[str, str], files: Iterable[Path]) -> list[Finding]:
    """Names that nobody reads. ``files``: where settings may stand beside the environment."""
    found = [(name, "the environment") for name in environ]
    found += [(name, str(path)) for path in dict.fromkeys(files) for name in _names(path)]
    return [
        Finding("settings", False, f"{name} ({where}) is not read", f"did you mean {meant}?")
        for name, where in found
        if (meant := _meant(name))
    ]


def _meant(name: str) -> str:
    first, _, rest = name.partition("_")
    if first == PREFIX or not rest:
        return ""
    if difflib.SequenceMatcher(None, first.upper(), PREFIX).ratio() < ALIKE:
        return ""
    known = [one.name for one in table()]
    near = difflib.get_close_matches(f"{PREFIX}_{rest.upper()}", known, 1, ALIKE)
    return near[0] if near else ""


def _names(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig") as stream:
            yield from [line.key for line in parse_stream(stream) if line.key]
    except (OSError, UnicodeDecodeError):
        return  # that it cannot be read is said with the settings
