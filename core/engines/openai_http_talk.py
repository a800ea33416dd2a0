"""The conversation of one turn: what came before, and each step of it kept as it happens.

A side answer reads the same conversation and keeps nothing. It knows the histories, no server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence

from core.engines.base import Request
from core.engines.openai_http_history import Histories, Said, fitting, newer_half, tokens
from core.engines.openai_http_stream import ToolCall

log = logging.getLogger("laneway.engine")

NOT_OPENED = (
    "The conversation cannot be kept on the gateway's disk: {why}. Ask an admin to look at the "
    "disk and the permissions of the gateway's home."
)


class Unkept(Exception):
    """The disk refused; the message is for people."""


class Talk:
    """What was said so far, in memory and on the disk."""

    def __init__(self, histories: Histories, request: Request, most: int) -> None:
        self._histories = histories
        self._most = most  # tokens that are ever sent of it
        self._turn = request.turn
        self._asked_for = request.session
        self._aside = request.read_only
        self.session = ""
        self.said: list[Said] = []
        self.trouble = ""  # why the disk does not have all of it

    async def open(self) -> bool:
        """Whether it is the one that was asked for, or a fresh one. Raises Unkept."""
        try:
            return await asyncio.to_thread(self._open)
        except OSError as fault:
            raise Unkept(NOT_OPENED.format(why=_why(fault))) from fault

    def _open(self) -> bool:
        found = self._histories.read(self._asked_for)
        # A turn that runs again begins anew.
        self.said = [said for said in found or () if said.turn != self._turn]
        if tokens(self.said) > 2 * self._most:  # what is never sent again need not be kept
            self.said = fitting(self.said, self._most)
        if self._aside:
            self.session = f"side-{self._turn}"
        elif found is None:
            self.session = self._histories.begin()
        else:
            self.session = self._asked_for
            if len(found) != len(self.said):
                self._histories.replace(self.session, self.said)
        return found is not None

    async def keep(self, said: Said) -> None:
        self.said.append(said)
        if not self._aside:
            await self._stored(asyncio.to_thread(self._histories.append, self.session, [said]))

    async def answered(self, text: str, calls: Sequence[ToolCall] = ()) -> None:
        """Keep what the model said, and which tools it wants."""
        message: dict[str, object] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments or "{}"},
                }
                for call in calls
            ]
        await self.keep(Said(self._turn, message))

    async def take_back(self) -> None:
        """The server would not have what this turn asked: no later turn shall carry it along."""
        mine = [said for said in self.said if said.turn == self._turn]
        if not mine or any(said.message.get("role") == "assistant" for said in mine):
            return
        self.said = [said for said in self.said if said.turn != self._turn]
        if not self._aside:
            await self._stored(asyncio.to_thread(self._histories.replace, self.session, self.said))

    async def shorten(self) -> bool:
        """Leave out the older half; False when there is none."""
        shorter = newer_half(self.said)
        if shorter == self.said:
            return False
        self.said = shorter
        if not self._aside:
            await self._stored(asyncio.to_thread(self._histories.replace, self.session, shorter))
        return True

    async def become(self, said: Sequence[Said]) -> None:
        """Have this instead. Raises Unkept, and then it is as it was."""
        try:
            await asyncio.to_thread(self._histories.replace, self.session, said)
        except OSError as fault:
            raise Unkept(NOT_OPENED.format(why=_why(fault))) from fault
        self.said = list(said)

    async def _stored(self, writing: Awaitable[None]) -> None:
        """The answer is worth more than its place in the history: a fault is told at its end."""
        try:
            await writing
        except OSError as fault:
            self.trouble = _why(fault)
            log.error("%s: what was said could not be kept: %s", self.session, fault)


def _why(fault: OSError) -> str:
    return fault.strerror or "it refused"
