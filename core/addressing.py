"""Whether a message is meant for us, and whether it is a command. Pure; knows no platform."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from core.messages import Message
from core.store.records import LaneRow

ENGAGED_FOR = 7 * 24 * 3600 * 1000  # ms of silence after which a thread needs a mention again
_COMMAND = re.compile(r"([/!])([A-Za-z_]+)(@\w+)?(?:\s+(.*))?\s*", re.DOTALL)
_WORD = re.compile(r"[/!]([a-z_]+)")
_HANDED_ON = re.compile(r"//\S")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A command as it was typed. ``known`` is False for a word that only looks like one."""

    name: str
    args: str = ""
    slash: bool = True
    known: bool = True


def command(text: str, names: Collection[str], direct: bool, chosen: bool = False) -> Spoken | None:
    """The command in ``text``, or None when it is a prompt.

    ``chosen``: the platform itself says that it is one, so a name nobody knows is no prompt.
    """
    typed = text.strip()
    match = _COMMAND.fullmatch(typed)
    # Names are lower case; keyboards that begin sentences with a capital make /Stop of it.
    if match and not match[3] and match[2].lower() in names:
        return Spoken(match[2].lower(), (match[4] or "").strip(), match[1] == "/")
    if chosen and match and not match[3]:
        return Spoken(match[2].lower(), slash=match[1] == "/", known=False)
    word = _WORD.fullmatch(typed)
    if direct and word:
        return Spoken(word[1], slash=typed[0] == "/", known=False)
    return None


def others_command(text: str, names: Collection[str]) -> bool:
    """Whether it names another bot (``/status@other``): nothing for us, though it looks so."""
    match = _COMMAND.fullmatch(text.strip())
    return bool(match and match[3] and match[2].lower() in names)


def prompt_text(text: str) -> str:
    """The text for the engine: ``//x`` hands ``/x`` on."""
    return text[1:] if _HANDED_ON.match(text) else text


def engaged(lane: LaneRow | None, now: int) -> bool:
    """Whether the thread goes on without a mention."""
    return (
        lane is not None
        and lane.listen == "all"
        and lane.engaged_at > 0
        and now - lane.engaged_at <= ENGAGED_FOR
    )


def addressed(
    message: Message, lane: LaneRow | None, spoken: Spoken | None, bare_commands: bool, now: int
) -> bool:
    """Whether the message is for us."""
    if message.direct or message.addressed or message.press:
        return True
    if message.engages and engaged(lane, now):
        return True
    return bare_commands and spoken is not None and spoken.known and spoken.slash
