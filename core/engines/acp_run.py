"""One turn of an ACP agent: what is asked of it, and what it says, as events.

How its process comes and goes is that of every agent program (``agent_run.py``).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from core import inside
from core.engines.acp_hearing import Ear, Picture
from core.engines.acp_prompt import blocks
from core.engines.acp_session import Opened, decline
from core.engines.acp_words import can_allow, command_of, outcome, title_of
from core.engines.agent_run import AgentRun
from core.engines.base import (
    ApprovalAsked,
    ApprovalWithdrawn,
    Decision,
    Event,
    Failure,
    FailureKind,
    FileMade,
    Finished,
    Request,
    SteerSettled,
    Text,
    Unsent,
)
from core.engines.failures import of_words
from core.engines.lines import Gone
from core.engines.plain import Json, items, mapping
from core.engines.processes import Child, LineTooLong
from core.engines.rpc import Ask, Incoming, Note, Peer, Refused, Response
from core.engines.speech import Meter
from core.turns import Result

if TYPE_CHECKING:
    from core.engines.acp import AcpEngine

log = logging.getLogger("laneway.engine")

CUT_OFF = {
    "max_tokens": "The answer was cut off: it reached the model's limit of length. "
    "Say “go on” to have the rest.",
    "max_turn_requests": "The agent stopped: it reached its limit of steps for one turn. "
    "Say “go on” to continue.",
    "refusal": "The agent refused to go on with this. Try to ask differently.",
}


class AcpRun(AgentRun[Opened]):
    """A turn that begins when ``events`` is iterated."""

    def __init__(self, engine: AcpEngine, request: Request) -> None:
        super().__init__(engine, request)
        self._engine = engine
        self._peer: Peer | None = None
        self._ear = Ear()
        self._denied = False
        self._open_asks: dict[str, tuple[int | str, Sequence[Json]]] = {}  # approval → its request
        self._steers: list[SteerSettled] = []

    def answer(self, approval: str, decision: Decision) -> None:
        asked = self._open_asks.pop(approval, None)
        if asked is None or self._peer is None:
            return
        number, options = asked
        self._denied = self._denied or decision is Decision.DENY
        self._peer.reply(number, outcome(options, decision))

    async def steer(self, turn: int, text: str) -> None:
        self._steers.append(SteerSettled(turn, taken=False))  # the protocol has no such word

    def _interrupt(self) -> None:
        for approval in list(self._open_asks):  # some agents wait for these before they obey
            self.answer(approval, Decision.CANCEL)
        if self._prompted and self._peer is not None and not self._over:
            self._peer.notify("session/cancel", {"sessionId": self._session})

    async def _open(self, child: Child) -> Opened:
        opened = await self._engine.open(child, self._request)
        self._peer = opened.peer
        return opened

    async def _wake(self, kept: Opened) -> None:
        self._peer = kept.peer
        await self._engine.set_up(kept, self._request)

    # The turn -------------------------------------------------------------------------------

    async def _turn(self, opened: Opened) -> AsyncGenerator[Event, None]:
        self._ear = Ear(Meter(opened.spent, opened.spent))
        prompt = await asyncio.to_thread(blocks, self._request, images=opened.declared.images)
        if self._stopping.is_set():
            yield Finished(Result.CANCELLED)
            return
        params = {"sessionId": opened.session, "prompt": prompt}
        number = opened.peer.request("session/prompt", params)
        if number is None:
            yield Unsent("The agent ended before it was given the message.")
            return
        self._prompted = True
        pictures = itertools.count(1)
        last: Event | None = None
        while last is None:
            try:
                message = await opened.peer.read()
            except (Gone, LineTooLong) as error:
                last = await self._lost(opened.child, error)
                continue
            if isinstance(message, Response) and message.id == number:
                self._answered.set()
                last = self._verdict(message)
                if self._ear.count_tokens(message.result):
                    yield self._ear.usage()
                continue
            for heard in self._hear(message, opened.peer):
                if isinstance(heard, Picture):
                    yield await asyncio.to_thread(self._save, heard, next(pictures))
                else:
                    yield heard
        for event in self._closing():
            yield event
        self._over = True
        yield last

    def _hear(self, message: Incoming, peer: Peer) -> Iterator[Event | Picture]:
        if isinstance(message, Ask):
            if message.method == "session/request_permission" and not self._stopping.is_set():
                yield from self._asked(message, peer)
            else:
                decline(peer, message)
        elif isinstance(message, Note) and message.method == "session/update":
            if message.params.get("sessionId") == self._session:
                yield from self._ear.hear(mapping(message.params.get("update")))
        elif isinstance(message, Note) and message.method == "$/cancel_request":
            yield from self._withdrawn(message.params.get("id", message.params.get("requestId")))

    def _asked(self, ask: Ask, peer: Peer) -> Iterator[Event]:
        options = items(ask.params.get("options"))
        told = mapping(ask.params.get("toolCall"))
        yield from self._ear.mention(told)
        call = self._ear.about(told)
        ours = ask.params.get("sessionId") == self._session
        if self._request.read_only or not ours or not can_allow(options):
            # a side answer changes nothing even if a person would let it
            log.info("%s: a question of the agent was declined unasked", self._request.lane)
            peer.reply(ask.id, outcome(options, Decision.DENY))
            return
        command = command_of(call, self._request.folder)
        if not command:
            log.warning("%s: a command too long to be shown was declined", self._request.lane)
            peer.reply(ask.id, outcome(options, Decision.DENY))
            return
        approval = f"{self._request.turn}-{next(self._questions)}"
        self._open_asks[approval] = (ask.id, options)
        yield ApprovalAsked(approval, title_of(call), command)

    def _withdrawn(self, number: object) -> Iterator[Event]:
        for approval, (asked, _) in list(self._open_asks.items()):
            if asked == number:
                self.answer(approval, Decision.CANCEL)
                yield ApprovalWithdrawn(approval)

    def _closing(self) -> Iterator[Event]:
        """What has to be settled before the last event."""
        for approval in list(self._open_asks):
            self.answer(approval, Decision.CANCEL)
            yield ApprovalWithdrawn(approval)
        yield from self._steers

    def _verdict(self, response: Response) -> Event:
        if response.error is not None:
            return self._refused(response.error)
        reason = response.result.get("stopReason")
        if reason == "cancelled":
            if self._stopping.is_set():
                return Finished(Result.CANCELLED)
            if self._denied:  # for some agents a no ends the turn
                return Finished(Result.DONE)
            return Finished(Result.FAILED, "The agent broke the turn off by itself.")
        if isinstance(reason, str) and reason in CUT_OFF:
            kind = FailureKind.SESSION if reason == "refusal" else FailureKind.REQUEST
            return Finished(Result.FAILED, CUT_OFF[reason], Failure(kind))
        self._well = True
        return Finished(Result.DONE)

    def _refused(self, error: Refused) -> Event:
        if self._stopping.is_set():
            return Finished(Result.CANCELLED)
        if error.sign_in:
            return Finished(
                Result.FAILED,
                "The agent wants you to sign in. Start it once in a terminal on the gateway's "
                "machine and sign in there.",
                Failure(FailureKind.BROKEN),
            )
        detail = f" ({error.detail})" if error.detail and error.detail not in str(error) else ""
        told = f"{error}{detail}"
        return Finished(
            Result.FAILED,
            self._engine.plain(f"The agent reported an error: {told}"),
            of_words(told, self._engine.now()),
        )

    def _save(self, picture: Picture, number: int) -> Event:
        inner = PurePosixPath("outbox", f"turn-{self._request.turn}-{number}{picture.suffix}")
        try:
            path = inside.put(self._request.folder, inner, picture.data)
        except (inside.NotInside, OSError) as fault:
            log.warning("%s: a picture could not be saved: %r", self._request.lane, fault)
            return Text(f"\n\n(A picture of the agent could not be saved as {inner}.)\n\n")
        return FileMade(path, path.name)

    async def _remember(self, opened: Opened) -> None:
        total = self._ear.meter.total
        if total is not None and total != opened.spent:
            opened.spent = total
            self._engine.learn(opened.declared, cost=True)
            await asyncio.to_thread(self._engine.totals.write, opened.session, total)
        elif total is None and self._well and self._engine.abilities.cost is None:
            self._engine.learn(opened.declared, cost=False)
