"""Commands about the people: help, whoami, zone; and the pairing code for somebody unknown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from zoneinfo import ZoneInfoNotFoundError, available_timezones

from core import usage as spending
from core.commands.base import Act, Answer, Ask, Command
from core.lane_ids import LOCAL
from core.linking import MOVE, said
from core.messages import Style
from core.people import WEB, Person
from core.showing import Action, Choice
from core.store import roster, web
from core.when import BadWhen
from core.when.grammar import named_zone
from core.wording import plain

_REGIONS = ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")


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


def nearest_text(typed: str, names: Iterable[str], sign: str) -> str:
    """The answer to a command that does not exist, with the sign that was typed."""
    near = difflib.get_close_matches(typed, sorted(names), 3, 0.5)
    hint = " or ".join(f"{sign}{name}" for name in near) if near else f"{sign}help"
    word = plain(typed[:40])
    around = f"write //{word}" if sign == "/" else "write more than this one word."
    return f"I do not know {sign}{word}. Did you mean {hint}? To send it to the agent, {around}"


def nearest_chosen_text(typed: str, names: Iterable[str]) -> str:
    """The same as plain text, where only a command can be typed."""
    near = difflib.get_close_matches(typed, sorted(names), 3, 0.5) or ["help"]
    hint = " or ".join(f"/{name}" for name in near)
    return f"I do not know /{typed[:40]}. Did you mean {hint}?"


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


def link(ask: Ask) -> Answer:
    """This chat identity belongs to an account of the page from now on. It changes no role."""
    seen, identity = ask.here.link, ask.person.id
    if identity.startswith((WEB, f"{LOCAL}:")):
        return Answer(
            "You are in your account already. Write /link and the code to me in a direct message "
            "on Telegram, Slack or Discord: that chat then belongs to it too."
        )
    held = account_name(seen.held)
    if not ask.args:
        now = f"This chat belongs to the account {held}. " if held else ""
        return Answer(f"{now}Write the code that your account page shows: /link ABCD-EFGH")
    if not ask.here.lane.direct:
        return Answer(
            "A code is for you alone, and others read this thread. Show a new one on your account "
            "page and write it to me in a direct message."
        )
    if seen.problem:
        return Answer(seen.problem)
    account = account_name(seen.account)
    if seen.held == seen.account:
        return Answer(f"This chat belongs to the account {account} already.")
    code, moves = said(ask.args)
    if seen.held and not moves:
        return Answer(
            f"This chat belongs to the account {held}. It can belong to one only: to {account} "
            f"instead when you press the button, or write /link {plain(code)} {MOVE}.",
            choices=(Choice("Move it", Action.SET, {"name": "link", "value": f"{code} {MOVE}"}),),
        )
    moved = f" and not to {held} any more" if seen.held else ""
    return Answer(
        f"This chat belongs to the account {account} now{moved}. Its page shows what is yours "
        "here. What you may do stays as it was, here and there; the page ends it again.",
        rows=(web.link(identity, seen.account, ask.here.now),),
        act=Act("link.moved" if seen.held else "link.made", identity, seen.account),
    )


def account_name(account: str) -> str:
    """An account as people know it, as code: a mailbox is no mention of anybody."""
    if not account:
        return ""
    if account.startswith(f"{LOCAL}:"):
        return "of the owner"
    name = account.removeprefix(WEB).replace("`", "'")
    return f"`{name}`"


def pairing_text(person: str, code: str) -> str:
    """For somebody unknown, in a direct message."""
    return (
        f"You are `{person}`. I do not know you, so I cannot help you yet. "
        f"Give an admin this code: `{code}` (good for an hour). "
        "Once you are let in, on my page or with "
        f"`laneway pair {code}` on my machine, I tell you here."
    )


def let_in_text() -> str:
    """For somebody who was let in, in the chat where they asked; without markup."""
    return (
        "You are in: an admin has let you in. Write me what you want done. "
        "/help shows what else you can say."
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
        near = _near_zones(typed)
        hint = f" Did you mean {', '.join(map(plain, near))}?" if near else ""
        return Answer(f"I do not know the time zone {plain(typed[:60])}.{hint}")
    return Answer(
        f"Your time zone is {plain(found)}, for everything you schedule from now on.",
        rows=(roster.person_zone(ask.person.id, found, ask.here.now),),
        reload=True,
    )


def usage(ask: Ask) -> Answer:
    used = ask.here.used
    if used is None:
        typed = plain(ask.args[:40])
        return Answer(f"{typed} is no time span. Write it like this: /usage 7d, or /usage all")
    return Answer(spending.answer(used, admin=ask.person.admin))


def _near_zones(typed: str) -> list[str]:
    """Zones of a city that was named alone, else those spelt nearly so."""
    city = "_".join(typed.lower().split())
    cities = [name for key, name in _zones().items() if key.rpartition("/")[2] == city]
    # Older names, such as US/Pacific, stand behind the ones people look for.
    regions = sorted(cities, key=lambda name: (name.partition("/")[0] not in _REGIONS, name))
    return regions[:3] or difflib.get_close_matches(typed, sorted(_zones().values()), 3, 0.6)


@cache
def _zones() -> dict[str, str]:
    """Proper names by their small letters; collecting them walks through hundreds of files."""
    return {name.lower(): name for name in available_timezones()}


def _zone(typed: str) -> str | None:
    """The zone's proper name; capitals do not matter."""
    try:
        return named_zone(typed).key
    except (BadWhen, ZoneInfoNotFoundError, ValueError, OSError):
        return None
