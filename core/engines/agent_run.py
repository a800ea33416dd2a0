"""One turn of an agent program, whatever it speaks: from its start to the end of its processes.

The iteration of ``events`` is the only reader of the agent; ``answer`` and ``stop`` only write to
it. So nothing is read faster than it is taken, and no task is needed beside the caller's own. What
is said, and how, is the protocol's: a subclass fills in the places marked so.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Generic, TypeVar

from core.engines.agents import AgentEngine, Kept
from core.engines.base import (
    Decision,
    EngineError,
    EngineUnready,
    Event,
    Failure,
    Finished,
    Request,
    Started,
    Unsent,
)
from core.engines.lines import Gone
from core.engines.processes import Child, LineTooLong
from core.turns import Result

log = logging.getLogger("laneway.engine")

K = TypeVar("K", bound=Kept)
NOT_OPENED = "The agent did not open a session within {:.0f} seconds. Check it with laneway doctor."


class AgentRun(ABC, Generic[K]):
    """A turn that begins when ``events`` is iterated."""

    def __init__(self, engine: AgentEngine[K], request: Request) -> None:
        if request.session in engine.quarantined:
            request = replace(request, session="")
        self._agents = engine
        self._request = request
        self._claims = (f"{request.turn}",) if request.read_only else _claims(request)
        self._opening = asyncio.Lock()  # held while a process may come into being
        self._child: Child | None = None
        self._begun = self._over = self._prompted = self._well = False
        self._stopping = asyncio.Event()
        self._answered = asyncio.Event()  # the agent has obeyed an interruption, or is done
        self._questions = itertools.count(1)
        self._grace = engine.grace
        self._session = ""
        self.quarantine = ""  # why this turn's session may never be used again

    # What the protocol fills in --------------------------------------------------------------

    def _arguments(self) -> tuple[str, ...]:
        """What a new process is started with beside the engine's command."""
        return ()

    @abstractmethod
    async def _open(self, child: Child) -> K:
        """Hand-shake and session in a new process."""

    def _fits(self, kept: K) -> bool:
        """Whether a warm process with the right session can take this turn."""
        return True

    @abstractmethod
    async def _wake(self, kept: K) -> None:
        """Make a warm process ready; Gone when it turns out to be of no use."""

    @abstractmethod
    def _turn(self, opened: K) -> AsyncGenerator[Event, None]:
        """Hand over the prompt and tell what comes; the last event included."""

    @abstractmethod
    def _interrupt(self) -> None:
        """Settle what is open and ask the agent to stop; nothing is waited for."""

    async def _remember(self, opened: K) -> None:
        """Keep what the next turn of the session has to know."""

    @abstractmethod
    def answer(self, approval: str, decision: Decision) -> None: ...

    @abstractmethod
    async def steer(self, turn: int, text: str) -> None: ...

    # The port -------------------------------------------------------------------------------

    async def events(self) -> AsyncGenerator[Event, None]:
        if self._begun:
            raise RuntimeError("the events of a run are iterated once")
        self._begun = True
        if not self._agents.claim(*self._claims):
            self._over = True
            yield Unsent("The agent is still at work in this lane, or is being closed.")
            return
        opened: K | None = None
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

    async def stop(self, grace: float) -> None:
        if not self._stopping.is_set():
            self._stopping.set()
            self._grace = grace
            self._interrupt()
        async with self._opening:
            child = self._child
        if child is not None:
            await self._end(child, grace, wait=self._prompted)

    async def try_out(self, look: Callable[[K], Awaitable[None]] | None = None) -> K:
        """Open a session and end it again, without any prompt; for the doctor.

        ``look`` may ask it something before it ends.
        """
        try:
            opened = await self._opened()
            if opened is not None and look is not None:
                await look(opened)
        except Gone as gone:
            said = await self._child.last_words(1.0) if self._child else ""
            why = (
                said.strip().splitlines()[-1]
                if said.strip()
                else "check that the command starts the agent"
            )
            raise EngineUnready(f"It ended at once: {why}") from gone
        finally:
            await self._leave(None)
        if opened is None:
            raise EngineUnready("It was stopped meanwhile.")
        return opened

    # Opening --------------------------------------------------------------------------------

    async def _opened(self) -> K | None:
        """The lane's warm session, or one in a new process; None when stopped meanwhile."""
        try:
            async with asyncio.timeout(self._agents.patience):
                return await self._warm() or await self._cold()
        except TimeoutError as late:
            raise EngineUnready(NOT_OPENED.format(self._agents.patience)) from late

    async def _warm(self) -> K | None:
        request = self._request
        async with self._opening:
            kept = None if request.read_only else await self._agents.take_warm(request.lane)
            if kept is None:
                return None
            self._child = kept.child
            fits = (
                bool(request.session)
                and kept.session == request.session
                and kept.folder == request.folder
                and kept.child.exit_code is None
                and not self._stopping.is_set()
                and self._fits(kept)
            )
        if fits:
            try:
                await self._wake(kept)
            except (Gone, LineTooLong):
                log.info("the warm agent of %s had died", request.lane)
            else:
                kept.resumed = True
                return None if self._stopping.is_set() else kept
        await self._end(kept.child, self._grace)
        return None

    async def _cold(self) -> K | None:
        request = self._request
        async with self._opening:
            if self._stopping.is_set():
                return None
            self._child = await self._agents.spawn(request.lane, request.folder, *self._arguments())
        opened = await self._open(self._child)
        return None if self._stopping.is_set() else opened

    async def _unopened(self, error: EngineError) -> Event:
        """A connection that broke may work the next time; what has to be put right does not."""
        if self._stopping.is_set():
            return Finished(Result.CANCELLED)
        if isinstance(error, Gone) and self._child is not None:
            await self._child.last_words(1.0)
            self._log_stderr(self._child)
            how = _how_it_ended(self._child)
            return Unsent(
                f"The agent ended before it was ready{how}. Check it with laneway doctor."
            )
        return Finished(Result.FAILED, self._agents.plain(str(error)), error.failure)

    async def _lost(self, child: Child, error: Exception) -> Event:
        """The end of a turn whose agent is gone, or said what cannot be read."""
        if self._stopping.is_set():
            return Finished(Result.CANCELLED)
        if isinstance(error, LineTooLong):
            self._log_stderr(child)
            return Finished(Result.FAILED, str(error))
        await child.last_words(1.0)
        self._log_stderr(child)
        return Finished(
            Result.FAILED, f"The agent ended in the middle of its work{_how_it_ended(child)}."
        )

    def _failure(self, known: str, failure: Failure | None, own: str) -> Finished:
        """A turn that failed, in our words where we know some, else in the agent's ``own``."""
        own = own or "it gave no reason"
        log.info("%s: the agent failed: %s", self._request.lane, self._agents.plain(own))
        told = known or self._agents.plain(f"The agent reported an error: {own}")
        return Finished(Result.FAILED, told, failure)

    # The end --------------------------------------------------------------------------------

    async def _leave(self, opened: K | None) -> None:
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
                await self._agents.keep_warm(self._request.lane, opened)
            else:
                await self._end(self._child, self._grace)
        except BaseException:
            if self._child is not None:
                self._child.kill()  # whatever cut this short, nothing may be left behind
            raise
        finally:
            self._agents.release(*self._claims)

    async def _end(self, child: Child, grace: float, *, wait: bool = False) -> None:
        survivors = await child.end(grace, answered=self._answered if wait else None)
        if survivors and not self.quarantine:
            pids = ", ".join(map(str, survivors))
            self.quarantine = f"processes of its agent would not end: {pids}"
            log.error("%s: %s", self._request.lane, self.quarantine)
            if self._prompted:
                self._agents.quarantined.add(self._session)

    def _log_stderr(self, child: Child) -> None:
        if tail := child.stderr_tail.strip():
            said = self._agents.redact(tail)
            if (box := self._request.toolbox) is not None and box.token:
                said = said.replace(box.token, "…")
            said = said[-2000:]
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
