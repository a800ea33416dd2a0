"""Text between Slack's wire form and what people and agents read.

Slack escapes three signs and puts mentions and links into angle brackets. Pure. It must not know
messages or blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from core.messages import clean

_ENTITY = re.compile(r"<([^<>\n]+)>")
_MENTION = re.compile(r"@([UWB][A-Z0-9]+)(?:\|(.*))?")
_SIGNS = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SIGN = re.compile("[&<>]")
_NAMES = re.compile("&(amp|lt|gt);")
_NAMED = {"amp": "&", "lt": "<", "gt": ">"}


@dataclass(frozen=True, slots=True)
class Words:
    """A message's text without our mention, and whether it named us."""

    text: str
    mentioned: bool = False


def escape(text: str) -> str:
    """Text that shows as it is: nothing in it can mention, link or ping."""
    return _SIGN.sub(lambda sign: _SIGNS[sign[0]], text)


def unescape(text: str) -> str:
    return _NAMES.sub(lambda name: _NAMED[name[1]], text)


def read(text: str, me: str, name_of: Callable[[str], str]) -> Words:
    """What a person wrote: our mention taken out, all other entities written out."""
    rest, mentioned = _without(text, me)
    written = unescape(_ENTITY.sub(lambda one: _written(one[1], name_of), rest))
    return Words(clean(written).strip(), mentioned)


def visible(mrkdwn: str) -> str:
    """What a rendered text shows when nothing is formatted."""
    return unescape(_ENTITY.sub(lambda one: _written(one[1], str), mrkdwn))


def mentioned_in(text: str) -> list[str]:
    """The ids of the people a text names."""
    found = (_MENTION.fullmatch(one) for one in _ENTITY.findall(text))
    return [one[1] for one in found if one]


def _without(text: str, me: str) -> tuple[str, bool]:
    """The text without our mention, and without what only belonged to it."""
    mine = rf"<@{re.escape(me)}(?:\|[^<>\n]*)?>"
    rest, first = re.subn(rf"\A\s*{mine}(?:[,:](?=\s|\Z))?[ \t]*", "", text)
    rest, others = re.subn(rf"[ \t]*{mine}", "", rest)
    return rest, bool(first or others)


def _written(entity: str, name_of: Callable[[str], str]) -> str:
    """One bracket's content as text; still escaped."""
    target, bar, label = entity.partition("|")
    if found := _MENTION.fullmatch(entity):
        return "@" + escape(name_of(found[1]) or label or found[1])
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        if bar:  # a group's name, a date's fall-back
            return label
        return "@" + target[1:].partition("^")[0]
    address = target.removeprefix("mailto:")
    if not bar or label == address or re.sub(r"\Ahttps?://", "", address) == label:
        return address
    return f"[{label}]({address})"
