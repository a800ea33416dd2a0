"""Commands about the people: help, whoami, zone; and the pairing code for somebody unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from core.commands.base import Answer, Ask, Command
from core.messages import Style
from core.people import Person
from core.showing import Action, Choice
from core.store import rows
from core.wording import plain


def help_text(commands: Iterable[Command], person: Person) -> str:
    """Everything this person can say."""
    lines = [
        f"- /{command.name}{f' {plain(command.args)}' if command.args else ''}: {command.line}"
        for command in commands
        if command.open_to(person)
    ]
    return (
        "Write what you want done; every thread is a conversation of its own. "
        "While I work, more messages wait here. What you can also say:\n\n" + "\n".join(lines)
    )


def nearest_text(typed: str, names: Iterable[str]) -> str:
    """The answer to a command that does not exist."""
    near = difflib.get_close_matches(typed, sorted(names), 3, 0.5)
    hint = " or ".join(f"/{name}" for name in near) if near else "/help"
    return (
        f"I do not know /{plain(typed[:40])}. Did you mean {hint}? "
        f"To send it to the agent, write //{plain(typed[:40])}"
    )


def whoami(ask: Ask) -> Answer:
    person, here = ask.person, ask.here
    text = f"You are `{person.id}`, {person.role.value or 'not known here'}."
    if here.lane.direct:
        return Answer(text)
    place = here.lane.address.place
    if here.listed:
        return Answer(f"{text} This place is `{place}`; members may talk here.")
    if not person.admin:
        return Answer(text)
    return Answer(
        f"{text} This place is `{place}`. It is not on the list, so I answer nobody here.",
        choices=(Choice("Allow here", Action.ALLOW_PLACE, {"place": place}, style=Style.SUCCESS),),
    )


def pairing_text(person: str, code: str) -> str:
    """For somebody unknown, in a direct message."""
    return (
        f"You are `{person}`. I do not know you, so I cannot help you yet. "
        f"Give an admin this code: `{code}` (good for an hour). "
        f"They run `laneway pair {code}`, or use the people page."
    )


def zone(ask: Ask) -> Answer:
    typed = ask.args
    if not typed:
        held = ask.person.zone
        said = (
            f"Your time zone is {plain(held)}."
            if held
            else (f"You have not named a time zone; {plain(ask.here.values.zone)} is used.")
        )
        return Answer(f"{said} Change it like this: /zone Europe/Berlin")
    found = _zone(typed)
    if found is None:
        near = difflib.get_close_matches(typed, sorted(_zones().values()), 3, 0.6)
        hint = f" Did you mean {', '.join(map(plain, near))}?" if near else ""
        return Answer(f"I do not know the time zone {plain(typed[:60])}.{hint}")
    return Answer(
        f"Your time zone is {plain(found)}, for everything you schedule from now on.",
        rows=(rows.person_zone(ask.person.id, found, ask.here.now),),
        reload=True,
    )


@cache
def _zones() -> dict[str, str]:
    """Proper names by their small letters; collecting them walks through hundreds of files."""
    return {name.lower(): name for name in available_timezones()}


def _zone(typed: str) -> str | None:
    """The zone's proper name; capitals do not matter."""
    name = _zones().get(typed.lower())
    if name is None:
        return None
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return name
