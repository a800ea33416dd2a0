"""One turn of an ACP agent: from the open session to ``Finished``, and the end of its processes.

The iteration of ``events`` is the only reader of the agent; ``answer`` and ``stop`` only write to
it. So nothing is read faster than it is taken, and no task is needed beside the caller's own.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from core import inside
from core.engines.acp_hearing import Ear, Picture
from core.engines.acp_peer import Ask, Gone, Incoming, Note, Peer, Refused, Response
from core.engines.acp_plain import Json, items, mapping
from core.engines.acp_prompt import blocks
from core.engines.acp_session import Opened, decline
from core.engines.acp_words import can_allow, command_of, outcome, title_of
from core.engines.base import (
    ApprovalAsked,
    ApprovalWithdrawn,
    Decision,
    EngineError,
    EngineUnready,
    Event,
    FileMade,
    Finished,
    Request,
    Started,
    SteerSettled,
    Text,
    Unsent,
)
from core.engines.processes import Child, LineTooLong
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


class AcpRun:
    """A turn that begins when ``events`` is iterated."""

    def __init__(self, engine: AcpEngine, request: Request) -> None:
        self._engine = engine
        self._request = request
        self._claims = (f"{request.turn}",) if request.read_only else _claims(request)
        self._opening = asyncio.Lock()  # held while a process may come into being
        self._child: Child | None = None
        self._peer: Peer | None = None
        self._ear = Ear()
        self._begun = self._over = self._prompted = self._well = self._denied = False
        self._stopping = asyncio.Event()
        self._answered = asyncio.Event()
        self._questions = itertools.count(1)
        self._open: dict[str, tuple[int | str, Sequence[Json]]] = {}  # approval → its request
        self._steers: list[SteerSettled] = []
        self._grace = engine.grace
        self._session = ""
        self.quarantine = ""  # why this turn's session may never be used again

    # The port -------------------------------------------------------------------------------

    async def events(self) -> AsyncGenerator[Event, None]:
        if self._begun:
            raise RuntimeError("the events of a run are iterated once")
        self._begun = True
        if not self._engine.claim(*self._claims):
            self._over = True
            yield Unsent("The agent is still at work in this lane, or is being closed.")
            return
        opened: Opened | None = None
        try:
            try:
                opened = await self._opened()
            except EngineError as error:
                yield await self._unopened(error)
                return
            if opened is None:
                yield Finished(Result.CANCELLED)
                return
            self._session = opened.session
            yield Started(opened.session, opened.model, opened.resumed)
            async with aclosing(self._turn(opened)) as turn:
                async for event in turn:
                    yield event
        finally:
            await self._leave(opened)

    def answer(self, approval: str, decision: Decision) -> None:
        asked = self._open.pop(approval, None)
        if asked is None or self._peer is None:
            return
        number, options = asked
        self._denied = self._denied or decision is Decision.DENY
        self._peer.reply(number, outcome(options, decision))

    async def steer(self, turn: int, text: str) -> None:
        self._steers.append(SteerSettled(turn, taken=False))  # the protocol has no such word

    async def stop(self, grace: float) -> None:
        if not self._stopping.is_set():
            self._stopping.set()
            self._grace = grace
            for approval in list(self._open):  # some agents wait for these before they obey
                self.answer(approval, Decision.CANCEL)
            if self._prompted and self._peer is not None and not self._over:
                self._peer.notify("session/cancel", {"sessionId": self._session})
        async with self._opening:
            child = self._child
        if child is not None:
            await self._end(child, grace, wait=self._prompted)

    # Opening --------------------------------------------------------------------------------

    async def _opened(self) -> Opened | None:
        """The lane's warm session, or one in a new process; None when stopped meanwhile."""
        try:
            async with asyncio.timeout(self._engine.patience):
                return await self._warm() or await self._cold()
        except TimeoutError as late:
            raise EngineUnready(
                f"The agent did not open a session within {self._engine.patience:.0f} seconds. "
                "Check it with `laneway doctor`."
            ) from late

    async def _warm(self) -> Opened | None:
        request = self._request
        async with self._opening:
            opened = None if request.read_only else await self._engine.take_warm(request.lane)
            if opened is None:
                return None
            self._child, self._peer = opened.child, opened.peer
            fits = (
                bool(request.session)
                and opened.session == request.session
                and opened.folder == request.folder
                and opened.child.exit_code is None
                and not self._stopping.is_set()
            )
        if fits:
            try:
                await self._engine.set_up(opened, request)
            except (Gone, LineTooLong):
                log.info("the warm agent of %s had died", request.lane)
            else:
                opened.resumed = True
                return None if self._stopping.is_set() else opened
        await self._end(opened.child, self._grace)
        return None

    async def _cold(self) -> Opened | None:
        async with self._opening:
            if self._stopping.is_set():
                return None
            self._child = await self._engine.spawn(self._request.lane, self._request.folder)
            self._peer = Peer(self._child)
        opened = await self._engine.open(self._child, self._request)
        self._peer = opened.peer
        return None if self._stopping.is_set() else opened

    async def _unopened(self, error: EngineError) -> Event:
        """A connection that broke may work the next time; what has to be put right does not."""
        if self._stopping.is_set():
            return Finished(Result.CANCELLED)
        if isinstance(error, Gone) and self._child is not None:
            await self._child.exited(1.0)
            self._log_stderr(self._child)
            how = _how_it_ended(self._child)
            return Unsent(
                f"The agent ended before it was ready{how}. Check it with `laneway doctor`."
            )
        return Finished(Result.FAILED, self._engine.plain(str(error)))

    # The turn -------------------------------------------------------------------------------

    async def _turn(self, opened: Opened) -> AsyncGenerator[Event, None]:
        self._ear = Ear(spent_before=opened.spent, total=opened.spent)
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
        self._open[approval] = (ask.id, options)
        yield ApprovalAsked(approval, title_of(call), command)

    def _withdrawn(self, number: object) -> Iterator[Event]:
        for approval, (asked, _) in list(self._open.items()):
            if asked == number:
                self.answer(approval, Decision.CANCEL)
                yield ApprovalWithdrawn(approval)

    def _closing(self) -> Iterator[Event]:
        """What has to be settled before the last event."""
        for approval in list(self._open):
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
            return Finished(Result.FAILED, CUT_OFF[reason])
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
            )
        detail = f" ({error.detail})" if error.detail and error.detail not in str(error) else ""
        return Finished(
            Result.FAILED, self._engine.plain(f"The agent reported an error: {error}{detail}")
        )

    async def _lost(self, child: Child, error: Exception) -> Event:
        if self._stopping.is_set():
            return Finished(Result.CANCELLED)
        self._log_stderr(child)
        if isinstance(error, LineTooLong):
            return Finished(Result.FAILED, str(error))
        await child.exited(1.0)
        return Finished(
            Result.FAILED, f"The agent ended in the middle of its work{_how_it_ended(child)}."
        )

    def _save(self, picture: Picture, number: int) -> Event:
        inner = PurePosixPath("outbox", f"turn-{self._request.turn}-{number}{picture.suffix}")
        try:
            path = inside.put(self._request.folder, inner, picture.data)
        except (inside.NotInside, OSError) as fault:
            log.warning("%s: a picture could not be saved: %r", self._request.lane, fault)
            return Text(f"\n\n(A picture of the agent could not be saved as {inner}.)\n\n")
        return FileMade(path, path.name)

    # The end --------------------------------------------------------------------------------

    async def _leave(self, opened: Opened | None) -> None:
        """Hand the process back warm, or see the end of everything it started."""
        self._over = True
        reusable = self._well and not self._request.read_only and not self._stopping.is_set()
        try:
            if opened is not None:
                await self._remember(opened)
            if self._child is None:
                return
            if reusable and opened is not None:
                self._child = None
                await self._engine.keep_warm(self._request.lane, opened)
            else:
                await self._end(self._child, self._grace)
        except BaseException:
            if self._child is not None:
                self._child.kill()  # whatever cut this short, nothing may be left behind
            raise
        finally:
            self._engine.release(*self._claims)

    async def _remember(self, opened: Opened) -> None:
        if self._ear.total is not None and self._ear.total != opened.spent:
            opened.spent = self._ear.total
            self._engine.learn(opened.declared, cost=True)
            await asyncio.to_thread(self._engine.totals.write, opened.session, opened.spent)

    async def _end(self, child: Child, grace: float, *, wait: bool = False) -> None:
        survivors = await child.end(grace, answered=self._answered if wait else None)
        if survivors and not self.quarantine:
            pids = ", ".join(map(str, survivors))
            self.quarantine = f"processes of its agent would not end: {pids}"
            log.error("%s: %s", self._request.lane, self.quarantine)
            if self._prompted:
                self._engine.quarantined.add(self._session)

    def _log_stderr(self, child: Child) -> None:
        if tail := child.stderr_tail.strip():
            said = self._engine.redact(tail)[-2000:]
            log.info("the agent's error output of %s: %s", self._request.lane, said)


def _claims(request: Request) -> tuple[str, ...]:
    session = (f"session {request.session}",) if request.session else ()
    return (f"lane {request.lane}", *session)


def _how_it_ended(child: Child) -> str:
    code = child.exit_code
    if code is None:
        return ""
    if code < 0:
        try:
            return f" (ended by {signal.Signals(-code).name})"
        except ValueError:
            return f" (ended by signal {-code})"
    return f" (exit code {code})"
