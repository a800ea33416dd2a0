"""Interactions: pressed buttons and application commands, which Discord wants answered in 3 s.

Each is put off at once, before anything else is done about it; what the person sees comes later,
and is seen by nobody else. A token says everything that an answer needs, so that one can be given
after a restart too. It must not know what a press means.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Any

from discord.http import Route

from channels.discord.errors import (
    ALREADY_ANSWERED,
    UNKNOWN_INTERACTION,
    UNKNOWN_MESSAGE,
    UNKNOWN_WEBHOOK,
    ApiError,
    translate,
)
from channels.discord.press_token import Token
from channels.discord.rest import Rest
from core.channel import SendError
from core.messages import clean

log = logging.getLogger(__name__)

PUT_OFF_COMMAND, PUT_OFF_BUTTON = 5, 6
EPHEMERAL = 1 << 6
TEXT_MOST = 2000
KEPT = 1000
_OVER = {UNKNOWN_INTERACTION, UNKNOWN_WEBHOOK, UNKNOWN_MESSAGE}


class Presses:
    """Puts interactions off and answers them."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._putting: OrderedDict[str, asyncio.Task[None]] = OrderedDict()
        self._shown: OrderedDict[str, None] = OrderedDict()  # commands whose first answer is there

    def put_off(self, token: Token, group: asyncio.TaskGroup) -> None:
        """Tell Discord at once that an answer will come."""
        if token.number in self._putting:  # told again after a lost connection
            return
        task = group.create_task(self._put_off(token), name=f"discord press {token.number}")
        self._putting[token.number] = task
        if len(self._putting) > KEPT:
            self._putting.popitem(last=False)

    async def _put_off(self, token: Token) -> None:
        answer: dict[str, Any] = {"type": PUT_OFF_BUTTON}
        if token.command:
            answer = {"type": PUT_OFF_COMMAND, "data": {"flags": EPHEMERAL}}
        route = Route(
            "POST",
            "/interactions/{webhook_id}/{webhook_token}/callback",
            webhook_id=token.number,
            webhook_token=token.secret,
        )
        try:
            await self._rest.request(route, json=answer)
        except ApiError as error:
            if error.code != ALREADY_ANSWERED:
                log.info("discord: a press could not be put off: %s", error.said)
        except SendError as error:
            log.info("discord: a press could not be put off: %s", error)

    async def answer(self, press: str, *texts: str) -> None:
        """What the person who pressed sees. A press that is over is none to answer any more."""
        token = Token.read(press)
        if (putting := self._putting.get(token.number)) is not None:
            await asyncio.wait({putting})  # answers overtake each other otherwise
        pieces = [piece for text in texts for piece in _pieces(clean(text))]
        try:
            if token.command and token.number not in self._shown:
                await self._first(token, pieces[0] if pieces else "")
                self._shown[token.number] = None
                if len(self._shown) > KEPT:
                    self._shown.popitem(last=False)
                pieces = pieces[1:]
            for piece in pieces:
                await self._follow(token, piece)
        except ApiError as error:
            if error.code not in _OVER:
                raise translate(error) from None

    async def end(self, token: Token) -> None:
        """Nothing is said to a command. Raises nothing: it is only tidied up."""
        try:
            await self.answer(str(token), "")
        except SendError as error:
            log.info("discord: a press could not be ended: %s", error)

    async def _first(self, token: Token, text: str) -> None:
        """Instead of the sign that the bot is thinking; without a text the sign goes away."""
        path = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"
        route = Route(
            "PATCH" if text else "DELETE",
            path,
            webhook_id=token.application,
            webhook_token=token.secret,
        )
        if text:
            await self._rest.request(route, json=_said(text))
        else:
            await self._rest.request(route)

    async def _follow(self, token: Token, text: str) -> None:
        route = Route(
            "POST",
            "/webhooks/{webhook_id}/{webhook_token}",
            webhook_id=token.application,
            webhook_token=token.secret,
        )
        await self._rest.request(route, json={**_said(text), "flags": EPHEMERAL})


def _said(text: str) -> dict[str, Any]:
    return {"content": text, "allowed_mentions": {"parse": []}}


def _pieces(text: str) -> list[str]:
    """A text in messages, cut at lines where that is possible."""
    pieces: list[str] = []
    rest = text.strip()
    while len(rest) > TEXT_MOST:
        at = rest.rfind("\n", 1, TEXT_MOST)
        at = at if at > TEXT_MOST // 2 else TEXT_MOST
        pieces.append(rest[:at])
        rest = rest[at:].lstrip("\n")
    if rest:
        pieces.append(rest)
    return pieces
