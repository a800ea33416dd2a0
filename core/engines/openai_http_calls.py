"""Calls of the model in one turn: what to ask for, when to try again, when to give up.

A call is tried again only while nothing of its answer was shown. A stop cuts short whatever is
waited for. It knows the conversation and the server, and no tool.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from core.engines.base import Failure, FailureKind, Request, Text, Thought
from core.engines.openai_http_history import fitting
from core.engines.openai_http_prompt import Ask, body
from core.engines.openai_http_server import Lost, NotSent, Refused
from core.engines.openai_http_stream import Frames, Malformed, Reply
from core.engines.openai_http_talk import Talk
from core.engines.openai_http_words import (
    LEFT_OUT,
    STILL_TOO_LONG,
    Option,
    cut_off,
    effort_left_out,
    explained,
    failure,
    interrupted,
    unreachable,
)
from core.engines.plain import Json
from core.engines.workspace_tools import Tool

if TYPE_CHECKING:
    from core.engines.openai_http import ChatEngine

log = logging.getLogger("laneway.engine")

T = TypeVar("T")
AFTER_FINISH = 5.0  # seconds for what follows the end of an answer: its usage, the end mark
AFTER_END = 0.2  # seconds for the connection's end, so that it can be used again
PAUSE_MOST = 30.0  # seconds between two tries, where the server names none
EXTRAS = frozenset({Option.USAGE, Option.EFFORT, Option.TOOLS, Option.IMAGES})


TRIED = Failure(FailureKind.BUSY, tried=True)


class Stopped(Exception):
    """The turn is being ended."""


class Failed(Exception):
    """The turn ends here; the message is for people."""

    def __init__(
        self, words: str, failure: Failure | None = None, *, refused: bool = False
    ) -> None:
        super().__init__(words)
        self.failure = failure
        self.refused = refused  # the server would not have what was asked, now or ever


class Stop:
    """Cuts short what a turn waits for, in the task that waits."""

    def __init__(self) -> None:
        self._asked = False
        self._scope: asyncio.Timeout | None = None

    def ask(self) -> None:
        self._asked = True
        if self._scope is not None:
            self._scope.reschedule(0)  # at once

    async def unless(self, work: Callable[[], Awaitable[T]], within: float | None = None) -> T:
        """Wait for something. Raises Stopped, or TimeoutError when it takes too many seconds."""
        if self._asked:
            raise Stopped
        try:
            async with asyncio.timeout(within) as self._scope:
                return await work()
        except TimeoutError:
            if self._asked:
                raise Stopped from None
            raise
        finally:
            self._scope = None


class Calls:
    """Makes the calls of one turn. ``reply`` is what the newest one brought."""

    def __init__(self, engine: ChatEngine, request: Request, talk: Talk, stop: Stop) -> None:
        self._engine = engine
        self._request = request
        self._talk = talk
        self._stop = stop
        self._bare = False  # the server would not say what it minds
        self._left_out: set[Option] = set()  # for this turn only
        self._shortened = False
        self.model = request.model or engine.model
        self.sent = False  # something of the prompt may have left
        self.reply = Reply()

    async def call(self, tools: Sequence[Tool] = ()) -> AsyncGenerator[Text | Thought, None]:
        """What the model says, to the whole ``reply``. Raises Failed, Stopped and NotSent."""
        tries = 0
        while True:
            ask = self._ask(tools)
            self.reply = Reply()
            try:
                async with aclosing(self._listen(ask)) as said:
                    async for piece in said:
                        yield piece
                return
            except Refused as fault:
                self.sent = True
                if self.reply.begun:
                    raise Failed(interrupted(fault), TRIED) from fault
                if fault.too_long:
                    await self._shorten()
                    yield Text(LEFT_OUT)
                    continue
                without = self._does_without(fault, ask)
                if without is not None:
                    if without:
                        yield Text(without)
                    continue
                words = explained(fault, self._engine.server.host, self.model)
                kind = failure(fault, self._engine.clock.now(), going_on=self._going_on)
                if fault.status in (400, 422) and not fault.transient:
                    raise Failed(words, kind or TRIED, refused=True) from fault
                await self._pause(tries, fault.wait, words, fault.transient, kind)
            except (Lost, Malformed) as fault:
                self.sent = True
                if self.reply.begun:
                    raise Failed(cut_off(), TRIED) from fault
                lost = isinstance(fault, Lost)
                words = str(fault) if lost else unreachable(self._engine.server.host, str(fault))
                await self._pause(tries, None, words, isinstance(fault, Lost) and not fault.late)
            except NotSent as fault:
                if not self.sent:
                    raise
                await self._pause(tries, None, str(fault), again=True)
            tries += 1

    def _ask(self, tools: Sequence[Tool]) -> Ask:
        """The call with all that this server is not known to refuse."""
        return Ask(
            model=self.model,
            turn=self._request.turn,
            folder=self._request.folder,
            history=fitting(self._talk.said, self._engine.bounds.context),
            options={option for option in Option if self._may_use(option)},
            tools=tools,
            effort=self._request.effort,
        )

    def _may_use(self, option: Option) -> bool:
        if option in self._left_out or (self._bare and option in EXTRAS):
            return False
        return self._engine.server.takes(self.model, option, self._value(option))

    def _value(self, option: Option) -> str:
        """A server that refuses one effort may take another."""
        return self._request.effort if option is Option.EFFORT else ""

    async def _listen(self, ask: Ask) -> AsyncGenerator[Text | Thought, None]:
        """One request and its answer. Raises Refused, Lost, Malformed and NotSent."""
        wire = await asyncio.to_thread(body, ask)
        frames, reply, server = Frames(), self.reply, self._engine.server
        async with aclosing(server.post(wire)) as pieces:
            while True:
                within = AFTER_END if frames.done else AFTER_FINISH if reply.finish else None
                try:
                    piece = await self._stop.unless(lambda: anext(pieces, None), within)
                except TimeoutError:
                    break
                except Lost:
                    if frames.done or reply.finish:
                        break
                    raise
                if piece is None:
                    break
                self.sent = True
                for chunk in frames.feed(piece):
                    for said in self._take(chunk):
                        yield said
        for chunk in frames.close():
            for said in self._take(chunk):
                yield said
        for said in reply.rest():
            yield said
        if frames.whole and not reply.chosen:
            raise Malformed("its answer holds none")
        if not (frames.done or frames.whole or reply.finish):
            raise Lost(unreachable(server.host, "it ended the connection without an answer"))

    def _take(self, chunk: Json) -> Iterator[Text | Thought]:
        yield from self.reply.take(chunk)
        if self.reply.error is not None:
            raise self._engine.server.refusal(self.reply.error)

    def _does_without(self, fault: Refused, ask: Ask) -> str | None:
        """Whether the same can be asked for with less: None, or what people are told of it."""
        used = set(ask.options)
        if not ask.tools:
            used.discard(Option.TOOLS)
        if not ask.effort:
            used.discard(Option.EFFORT)
        if option := fault.names(used):
            if fault.only_now:
                self._left_out.add(option)
            else:
                self._engine.server.remember(self.model, option, self._value(option))
            return effort_left_out(self.model, ask.effort) if option is Option.EFFORT else ""
        if fault.status in (400, 422) and not self._bare and used & EXTRAS:
            self._bare = True  # for this turn only: it may have been something else
            return ""
        return None

    async def _shorten(self) -> None:
        if self._shortened or not await self._talk.shorten():
            raise Failed(STILL_TOO_LONG, Failure(FailureKind.REQUEST))
        self._shortened = True

    @property
    def _going_on(self) -> bool:
        """Whether there is more than what this turn has said."""
        return any(said.turn != self._request.turn for said in self._talk.said)

    async def _pause(
        self,
        tries: int,
        asked: float | None,
        words: str,
        again: bool,
        failure: Failure | None = None,
    ) -> None:
        """Wait before the next try; raises Failed with the words when there is none."""
        bounds = self._engine.bounds
        wait = asked
        if wait is None:
            wait = min(PAUSE_MOST, bounds.pause * 2**tries) * (0.5 + self._engine.jitter() / 2)
        if not again or tries + 1 >= bounds.tries or wait > bounds.longest:
            raise Failed(words, failure or TRIED)
        log.info("%s: %s Trying again in %.1f s", self._request.lane, words, wait)
        await self._stop.unless(lambda: self._engine.clock.sleep(wait))
