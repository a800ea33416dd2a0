"""Our commands as Discord's application commands, set when they differ from what is there.

It must not know what the commands do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, TypedDict

from channels.discord.errors import ApiError
from channels.discord.events import OPTION
from channels.discord.rest import Rest
from channels.fields import Json, objects, string
from core.channel import SendError
from core.messages import clean

MOST, DESCRIPTION_MOST = 100, 100
_NAME = re.compile(r"[a-z0-9_-]{1,32}")
CHAT_INPUT, STRING = 1, 3


class Command(TypedDict):
    """A command as Discord takes it: a name, words about it, one text that may be left out."""

    type: int
    name: str
    description: str
    options: list[dict[str, Any]]


def commands_of(menu: Sequence[tuple[str, str]]) -> list[Command]:
    """The menu as application commands, in the order of their names."""
    found: dict[str, Command] = {}
    for name, text in menu:
        if _NAME.fullmatch(name):
            words = " ".join(clean(text).split())[:DESCRIPTION_MOST] or name
            option = {"type": STRING, "name": OPTION, "description": "what belongs to it"}
            found[name] = Command(type=CHAT_INPUT, name=name, description=words, options=[option])
    return [found[name] for name in sorted(found)][:MOST]


def same(present: object, wanted: Sequence[Command]) -> bool:
    """Whether Discord has these commands already."""
    if not isinstance(present, list) or not all(isinstance(one, dict) for one in present):
        return False
    return sorted(map(_gist, present)) == sorted(map(_gist, [dict(one) for one in wanted]))


def _gist(command: Json) -> tuple[str, str, tuple[tuple[object, str, bool], ...]]:
    options = tuple(
        (one.get("type"), string(one, "name"), bool(one.get("required")))
        for one in objects(command, "options")
    )
    return string(command, "name"), string(command, "description"), options


class Menu:
    """The commands that are wanted, set as soon as Discord can be reached."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._wanted: list[Command] | None = None
        self._setting = asyncio.Lock()  # it is wanted and Discord comes up at the same moment

    def want(self, commands: Sequence[tuple[str, str]]) -> None:
        """Remember what is to be offered."""
        self._wanted = commands_of(commands)

    async def apply(self, application: str) -> str:
        """Set them if they are not set yet; empty, or why that could not be done."""
        async with self._setting:
            if (wanted := self._wanted) is None:
                return ""
            rest = self._rest
            try:
                present = await rest.patient(lambda: rest.get_global_commands(application))
                if not same(present, wanted):
                    payload: Any = wanted
                    await rest.patient(
                        lambda: rest.bulk_upsert_global_commands(application, payload)
                    )
            except (ApiError, SendError, ValueError) as error:
                return str(error)
            if self._wanted is wanted:
                self._wanted = None
            return ""
