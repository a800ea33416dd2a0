"""One turn of a chat-completions server: calls of the model, and of its tools, to the end.

Everything happens in the task that iterates ``events``. It knows the engine port and the turn's
conversation; how a call is made stands in openai_http_calls.py.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from core.engines.base import (
    Decision,
    Event,
    Failure,
    FailureKind,
    Finished,
    Request,
    Started,
    SteerSettled,
    Text,
    Thought,
    ToolEnded,
    ToolStarted,
    Unsent,
    Usage,
)
from core.engines.openai_http_calls import Calls, Failed, Stop, Stopped
from core.engines.openai_http_history import Said, tokens
from core.engines.openai_http_prompt import asked, compacting, summarise, summary_turn
from core.engines.openai_http_server import NotSent
from core.engines.openai_http_stream import ToolCall, parsed
from core.engines.openai_http_talk import Talk, Unkept
from core.engines.openai_http_words import TOO_MANY_ROUNDS, finished
from core.engines.workspace_tools import Tool, ToolFailed
from core.turns import Result

if TYPE_CHECKING:
    from core.engines.openai_http import ChatEngine

log = logging.getLogger("laneway.engine")

NO_MODEL = "No model is set. Choose one with /model, or ask an admin to set LANEWAY_OPENAI_MODEL."
NOT_KEPT = "\n\n(This could not be stored, so the next turn will not know all of it: {why}.)"


class ChatRun:
    """A turn that begins when ``events`` is iterated."""

    def __init__(self, engine: ChatEngine, request: Request) -> None:
        self._engine = engine
        self._request = request
        self._claims = (f"{request.turn}",) if request.read_only else _claims(request)
        self._begun = False
        self._stop = Stop()
        self._talk = Talk(engine.histories, request, engine.bounds.context)
        self._calls = Calls(engine, request, self._talk, self._stop)
        self._steers: list[SteerSettled] = []
        self._usage = Usage()
        self.quarantine = ""  # there is no process that could outlive the turn

    # The port -------------------------------------------------------------------------------

    async def events(self) -> AsyncGenerator[Event, None]:
        if self._begun:
            raise RuntimeError("the events of a run are iterated once")
        self._begun = True
        if not self._engine.claim(*self._claims):
            yield Unsent("The agent is still at work in this lane, or is being closed.")
            return
        try:
            last: Event = Finished(Result.DONE)
            try:
                async with aclosing(self._turn()) as turn:
                    async for event in turn:
                        yield event
            except Stopped:
                last = Finished(Result.CANCELLED)
            except NotSent as fault:
                log.warning("%s: %s", self._request.lane, fault)
                last = Unsent(str(fault))
            except Failed as fault:
                if fault.refused:
                    await self._talk.take_back()
                last = Finished(Result.FAILED, str(fault), fault.failure)
            except Unkept as fault:
                last = Finished(Result.FAILED, str(fault), Failure(FailureKind.BROKEN))
            if used := self._used():
                yield used
            for settled in self._steers:
                yield settled
            yield last
        finally:
            self._engine.release(*self._claims)

    def answer(self, approval: str, decision: Decision) -> None:
        return  # its tools change nothing, so nobody is asked

    async def steer(self, turn: int, text: str) -> None:
        self._steers.append(SteerSettled(turn, taken=False))  # there is no such word

    async def stop(self, grace: float) -> None:
        self._stop.ask()

    # The turn -------------------------------------------------------------------------------

    async def _turn(self) -> AsyncGenerator[Event, None]:
        if not self._calls.model:
            raise Failed(NO_MODEL, Failure(FailureKind.BROKEN))
        resumed = await self._stop.unless(self._talk.open)
        yield Started(self._talk.session, self._calls.model, resumed)
        conversation = self._compact() if compacting(self._request) else self._converse()
        async with aclosing(conversation) as events:
            async for event in events:
                yield event
        if self._talk.trouble:
            yield Text(NOT_KEPT.format(why=self._talk.trouble))

    async def _converse(self) -> AsyncGenerator[Event, None]:
        """Call the model, and the tools that it wants, until it wants none."""
        tools = self._engine.tools(self._request)
        await self._talk.keep(asked(self._request))
        for number in range(1, self._engine.bounds.rounds + 1):
            async with aclosing(self._reply(tools)) as events:
                async for event in events:
                    yield event
            if used := self._used():
                yield used
            reply = self._calls.reply
            calls = _named(reply.calls, f"call_{self._request.turn}_{number}")
            await self._talk.answered(reply.text, calls)
            if not calls:
                if words := finished(reply.finish):
                    raise Failed(words, Failure(FailureKind.REQUEST))
                return
            for call in calls:
                async with aclosing(self._use(call, tools)) as events:
                    async for event in events:
                        yield event
        raise Failed(TOO_MANY_ROUNDS, Failure(FailureKind.REQUEST))

    async def _reply(self, tools: Sequence[Tool]) -> AsyncGenerator[Event, None]:
        """One answer of the model; of one that is broken off, what was shown is kept."""
        whole = False
        try:
            async with aclosing(self._calls.call(tools)) as said:
                async for piece in said:
                    yield piece
            whole = True
        finally:
            if not whole and self._calls.reply.text:
                await self._talk.answered(self._calls.reply.text)

    async def _compact(self) -> AsyncGenerator[Event, None]:
        """Have the model write a summary, and keep that instead of the conversation."""
        if not self._talk.said:
            yield Text("There is nothing to compact yet.")
            return
        before = tokens(self._talk.said)
        self._talk.said.append(summarise(self._request))
        async with aclosing(self._calls.call()) as said:
            async for piece in said:
                yield Thought(piece.delta if isinstance(piece, Thought) else "")
        reply = self._calls.reply
        if not reply.text.strip() or finished(reply.finish):
            words = "The summary is not whole, so nothing was changed. Try it again."
            raise Failed(words, Failure(FailureKind.REQUEST))
        kept = summary_turn(reply.text.strip())
        await self._talk.become(kept)
        yield Text(f"About {before:,} tokens of conversation are now {tokens(kept):,}.")

    async def _use(self, call: ToolCall, tools: Sequence[Tool]) -> AsyncGenerator[Event, None]:
        """Call one tool, and keep what it answered."""
        tool = next((tool for tool in tools if tool.name == call.name), None)
        told = parsed((call.arguments or "{}").encode())
        yield ToolStarted(call.id, tool.title(told) if tool and told is not None else call.name)
        failed = True
        if tool is None:
            answer = f"There is no tool {call.name!r}."
        elif told is None:
            answer = "The arguments are not a JSON object."
        else:
            try:
                answer = await self._stop.unless(lambda: tool.call(told))
                failed = False
            except ToolFailed as fault:
                answer = str(fault)
        yield ToolEnded(call.id, failed=failed)
        message = {"role": "tool", "tool_call_id": call.id, "content": answer}
        await self._talk.keep(Said(self._request.turn, message))

    def _used(self) -> Usage | None:
        """The turn's sum with what the newest call told; None when that told nothing new."""
        tokens_in, tokens_out = self._calls.reply.spent()
        if not tokens_in and not tokens_out:
            return None
        self._usage = Usage(self._usage.tokens_in + tokens_in, self._usage.tokens_out + tokens_out)
        return self._usage


def _named(calls: Sequence[ToolCall], prefix: str) -> list[ToolCall]:
    """Each call with an id that no other has; some servers give none, or one to all."""
    ids: set[str] = set()
    made = []
    for number, call in enumerate(calls, 1):
        known = call.id if call.id and call.id not in ids else f"{prefix}_{number}"
        ids.add(known)
        made.append(replace(call, id=known))
    return made


def _claims(request: Request) -> tuple[str, ...]:
    session = (f"session {request.session}",) if request.session else ()
    return (f"lane {request.lane}", *session)
