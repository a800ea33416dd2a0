"""A thread's name out of what was said first in it. Pure; knows no platform's rules."""

from __future__ import annotations

import re
from collections.abc import Iterator

TITLE_WORDS = 60  # characters
READ = 20_000  # characters of a text that are looked at
WORTH = 2_000  # of them, without blank lines and code; what comes later would not be seen

_FENCE = re.compile(r"`{3,}|~{3,}")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_ADDRESS = re.compile(r"<?\bhttps?://[^\s>]+>?")
_TAG = re.compile(r"<[@#!:/a-zA-Z][^>\n]*>")  # a platform's mentions, HTML
_LINE_MARK = re.compile(r"^(?:#{1,6}\s+|>\s?|[-*+]\s+|\d+[.)]\s+)+", re.MULTILINE)
_EMPHASIS = re.compile(r"(?<!\w)[*_~|]{1,3}(?=\S)|(?<=\S)[*_~|]{1,3}(?!\w)|`")
_ESCAPE = re.compile(r"\\([^\w\s])")
# Control characters, and what is not seen or would turn the rest around; joined emoji stay whole.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
_ENDS = " ,;:.!-–—"


def title_of(text: str) -> str:
    """At most 60 characters, cut between words and without markup; empty if there are no words."""
    begun = "\n".join(_outside_code(text[:READ]))[:WORTH]
    said = _UNSEEN.sub("", begun)
    said = _TAG.sub(" ", _LINK.sub(r"\1", said))
    said = _LINE_MARK.sub("", _ADDRESS.sub(" ", said))
    words = _EMPHASIS.sub("", _ESCAPE.sub(r"\1", said)).split()
    line = " ".join(words).strip(_ENDS)
    if not any(one.isalnum() for one in line):
        return ""
    if len(line) <= TITLE_WORDS:
        return line
    cut = line[: TITLE_WORDS - 1]
    if not line[TITLE_WORDS - 1].isspace():
        head, blank, _ = cut.rpartition(" ")
        cut = head if blank and len(head) > TITLE_WORDS // 3 else cut
    return cut.rstrip(_ENDS) + "…"


def _outside_code(text: str) -> Iterator[str]:
    """The lines with something on them that stand in no fence."""
    fence = ""
    for line in map(str.strip, text.splitlines()):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if line == fence else fence
        elif mark:
            fence = mark[0]
        elif line:
            yield line
