"""One turn of Codex: what is asked of it, and what it says, as events.

How its process comes and goes is that of every agent program (``agent_run.py``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING

from core.engines import codex_ends as ends
from core.engines.agent_run import AgentRun
from core.engines.base import (
    ApprovalAsked,
    ApprovalWithdrawn,
    Decision,
    Event,
    Finished,
    Request,
    SteerSettled,
    Text,
    Unsent,
)
from core.engines.codex_hearing import CodexEar
from core.engines.codex_prompt import content, said
from core.engines.codex_session import Thread, check_effort, new_peer, open_thread, settle_between
from core.engines.codex_words import (
    KINDS,
    POLICY,
    answer_to,
    command_of,
    is_tool_call,
    kind_of,
    questions,
)
from core.engines.lines import Gone
from core.engines.plain import Json, as_sent, mapping, name
from core.engines.processes import Child, LineTooLong
from core.engines.rpc import METHOD_NOT_FOUND, Ask, Incoming, Note, Peer, Response
from core.engines.workspace_tools import Tool, ToolFailed
from core.turns import Result

if TYPE_CHECKING:
    from core.engines.codex import CodexEngine

log = logging.getLogger("laneway.engine")

SETTLING = 2.0  # seconds after the end until what became of an offered message counts as unknown
COMPACTED = "The conversation was compacted."
AS_IT_IS = " Codex takes no wishes for that, so yours was not told to it."
NOTHING_TO_COMPACT = "There is nothing to compact yet."
WENT_ON = "It did something that a side answer may not do, so it was ended."
# What a side answer has no tool for. Should one be used all the same, it is the last thing it does.
FORBIDDEN = frozenset(
    {
        *("commandExecution", "fileChange", "collabAgentToolCall"),
        *("imageView", "imageGeneration", "webSearch"),
    }
)


class CodexRun(AgentRun[Thread]):
    """A turn that begins when ``events`` is iterated."""

    def __init__(self, engine: CodexEngine, request: Request) -> None:
        super().__init__(engine, request)
        self._engine = engine
        self._peer: Peer | None = None
        self._ear = CodexEar(request.folder)
        self._tools: dict[str, Tool] = {}
        self._asks: dict[str, Ask] = {}  # approval → its request
        self._offered: dict[int | str, int] = {}  # number of our request → the message's turn
        self._settled: list[SteerSettled] = []
        self._verdict: Finished | None = None

    # The port -------------------------------------------------------------------------------

    def answer(self, approval: str, decision: Decision) -> None:
        asked = self._asks.pop(approval, None)
        if asked is not None and self._peer is not None:
            allowed = decision is Decision.ALLOW
            self._peer.reply(asked.id, answer_to(asked.method, asked.params, allowed=allowed))

    async def steer(self, turn: int, text: str) -> None:
        fits = self._prompted and not (self._over or self._stopping.is_set())
        if self._peer is not None and fits and self._ear.turn and not self._request.compact:
            told = {"threadId": self._session, "expectedTurnId": self._ear.turn}
            number = self._peer.request("turn/steer", {**told, "input": said(text)})
            if number is not None:
                self._offered[number] = turn
                return
        self._settled.append(SteerSettled(turn, taken=False))

    def _interrupt(self) -> None:
        """Ask it to stop; a command it runs survives that, and is ended by a request of its own."""
        if self._peer is None or not self._prompted or self._over or not self._ear.turn:
            return
        told: dict[str, object] = {"threadId": self._session}
        self._peer.request("turn/interrupt", {**told, "turnId": self._ear.turn})
        self._peer.request("thread/backgroundTerminals/clean", told)

    # Opening --------------------------------------------------------------------------------

    def _arguments(self) -> tuple[str, ...]:
        return self._engine.arguments(self._request)

    async def _cold(self) -> Thread | None:
        async with self._engine.starting():
            return await super()._cold()

    async def _open(self, child: Child) -> Thread:
        self._peer = new_peer(child)
        return await open_thread(self._peer, self._request, self._engine)

    def _fits(self, kept: Thread) -> bool:
        return kept.approvals is self._request.approvals

    async def _wake(self, kept: Thread) -> None:
        self._peer = kept.peer
        check_effort(kept.declared, self._request)
        await settle_between(kept)

    # The turn -------------------------------------------------------------------------------

    async def _turn(self, opened: Thread) -> AsyncGenerator[Event, None]:
        self._ear = CodexEar(self._request.folder, opened.session, limits=opened.limits)
        self._tools = {tool.name: tool for tool in self._engine.tools(self._request)}
        if self._request.compact and not opened.resumed:
            self._well = True
            yield Text(NOTHING_TO_COMPACT)
            yield Finished(Result.DONE)
            return
        prompt = await asyncio.to_thread(content, self._request)
        if self._stopping.is_set():
            yield Finished(Result.CANCELLED)
            return
        number = self._hand_over(opened, prompt)
        if number is None:
            yield Unsent("The agent ended before it was given the message.")
            return
        self._prompted = True
        last: Event | None = None
        while last is None:
            try:
                async with asyncio.timeout(SETTLING if self._verdict else None):
                    message = await opened.peer.read()
            except (Gone, LineTooLong) as error:
                last = self._verdict or await self._lost(opened.child, error)
                continue
            except TimeoutError:  # it is done, and says nothing of what was offered to it
                self._well = False
                last = self._verdict
                continue
            if isinstance(message, Response) and message.id == number:
                last = self._accepted(message, opened)
            elif isinstance(message, Ask) and message.method == "item/tool/call":
                await self._call(message, opened.peer)
            else:
                for event in self._hear(message, opened):
                    yield event
            if self._verdict is not None and not self._offered:
                last = self._verdict
        self._over = True
        for event in self._closing():
            yield event
        yield last

    def _hand_over(self, opened: Thread, prompt: list[Json]) -> int | None:
        """Start the turn; its number, or None when certainly no byte of it left."""
        request = self._request
        told: dict[str, object] = {"threadId": opened.session}
        if request.compact:
            return opened.peer.request("thread/compact/start", told)
        # These stay as they were said last, so they are said each time.
        told["approvalPolicy"] = "never" if request.read_only else POLICY[request.approvals]
        opened.model = opened.declared.model(request.model) or opened.model
        told |= {"model": opened.model} if opened.model else {}
        effort = opened.declared.effort(request.effort, opened.model)
        told |= {"effort": effort} if effort else {}
        told |= {"environments": []} if request.read_only else {}  # no machine to run anything on
        return opened.peer.request("turn/start", {**told, "input": prompt})

    def _accepted(self, message: Response, opened: Thread) -> Event | None:
        if message.error is not None and self._stopping.is_set():
            return Finished(Result.CANCELLED)
        if message.error is not None:
            error = {"message": str(message.error)}
            return self._failed(error, opened)
        self._know(as_sent(mapping(message.result.get("turn")).get("id")))
        return None

    def _know(self, turn: str) -> None:
        """From here on the turn can be named, and so be stopped."""
        if turn and not self._ear.turn:
            self._ear.turn = turn
            if self._stopping.is_set():
                self._interrupt()

    def _hear(self, message: Incoming, opened: Thread) -> Iterator[Event]:
        if isinstance(message, Response):
            if message.id in self._offered:
                turn = self._offered.pop(message.id)
                yield SteerSettled(turn, taken=message.error is None)
        elif isinstance(message, Ask):
            yield from self._asked(message, opened.peer)
        elif message.method == "serverRequest/resolved":
            yield from self._withdrawn(message.params.get("requestId"))
        elif message.params.get("threadId") not in (None, self._session):
            return  # of another thread; its limits are told to all
        elif message.method == "turn/started":
            self._know(as_sent(mapping(message.params.get("turn")).get("id")))
        elif message.method == "turn/completed":
            turned = mapping(message.params.get("turn"))
            if turned.get("id") == self._ear.turn:
                self._conclude(turned, opened)
                yield from self._report()
        else:
            yield from self._noted(message, opened)

    def _noted(self, note: Note, opened: Thread) -> Iterator[Event]:
        yield from self._ear.hear(note.method, note.params)
        if self._request.read_only and self._forbidden(note):
            self._engine.never_on_the_side()
            opened.child.kill()
            self._verdict = Finished(Result.FAILED, WENT_ON, ends.REQUEST)

    def _forbidden(self, note: Note) -> bool:
        if note.method == "mcpServer/startupStatus/updated":
            return name(note.params.get("name")) not in self._engine.own_servers
        item = mapping(note.params.get("item"))
        if item.get("type") == "mcpToolCall":
            return name(item.get("server")) not in self._engine.own_servers
        return item.get("type") in FORBIDDEN

    # Questions ------------------------------------------------------------------------------

    def _asked(self, ask: Ask, peer: Peer) -> Iterator[Event]:
        if ask.method == "item/tool/requestUserInput" and (
            told := "\n\n".join(questions(ask.params))
        ):
            peer.reply(ask.id, answer_to(ask.method, ask.params, allowed=True))
            yield from self._ear.say(told)
            return
        if ask.method not in KINDS:
            peer.refuse(ask.id, METHOD_NOT_FOUND, "not offered here")
            return
        if self._is_own(ask):
            peer.reply(ask.id, answer_to(ask.method, ask.params, allowed=True))
            return
        item = self._ear.about(ask.params.get("itemId"))
        command = command_of(ask.method, ask.params, item, self._request.folder)
        if self._stopping.is_set() or self._request.read_only or not command:
            # a side answer changes nothing even if a person would let it
            log.info("%s: a question of the agent was declined unasked", self._request.lane)
            peer.reply(ask.id, answer_to(ask.method, ask.params, allowed=False))
            return
        approval = f"{self._request.turn}-{next(self._questions)}"
        self._asks[approval] = ask
        yield ApprovalAsked(approval, kind_of(ask.method), command)

    def _is_own(self, ask: Ask) -> bool:
        """Whether a tool of the gateway itself is to be called: nobody is asked about those."""
        server = name(ask.params.get("serverName"))
        return is_tool_call(ask.params) and server in self._engine.own_servers

    async def _call(self, ask: Ask, peer: Peer) -> None:
        """One of our own tools that look at the workspace."""
        tool = self._tools.get(name(ask.params.get("tool")))
        ours = ask.params.get("threadId") == self._session or not self._request.read_only
        if tool is None or not ours:
            told, well = "There is no such tool.", False
        else:
            try:
                told, well = await tool.call(mapping(ask.params.get("arguments"))), True
            except ToolFailed as failed:
                told, well = str(failed), False
        items = [{"type": "inputText", "text": told}]
        peer.reply(ask.id, {"contentItems": items, "success": well})

    def _withdrawn(self, number: object) -> Iterator[Event]:
        for approval, asked in list(self._asks.items()):
            if asked.id == number:
                del self._asks[approval]  # it waits for no answer any more
                yield ApprovalWithdrawn(approval)

    def _closing(self) -> Iterator[Event]:
        """What has to be settled before the last event."""
        for approval in list(self._asks):
            self.answer(approval, Decision.CANCEL)
            yield ApprovalWithdrawn(approval)
        yield from self._settled
        for turn in self._offered.values():  # what cannot be found out counts as taken
            yield SteerSettled(turn, taken=True, certain=False)

    # Its end --------------------------------------------------------------------------------

    def _conclude(self, turned: Json, opened: Thread) -> None:
        self._answered.set()
        match turned.get("status"):
            case "completed":
                self._well = not self._request.compact or self._ear.compacted
                self._verdict = Finished(Result.DONE)
            case _ if self._stopping.is_set():
                self._verdict = Finished(Result.CANCELLED)
            case "interrupted":
                self._verdict = Finished(Result.FAILED, ends.BROKE_OFF)
            case _:
                error = mapping(turned.get("error")) or self._ear.error
                self._verdict = self._failed(error, opened)

    def _failed(self, error: Json, opened: Thread) -> Finished:
        known, failure = ends.why(error, self._ear.limits, opened.model, self._engine.now())
        return self._failure(known, failure, ends.said(error))

    def _report(self) -> Iterator[Event]:
        """What a compaction did; it says nothing of it itself."""
        if self._request.compact and self._verdict == Finished(Result.DONE):
            told = COMPACTED if self._ear.compacted else NOTHING_TO_COMPACT
            wished = bool(self._request.prompt.strip())
            yield from self._ear.say(told + AS_IT_IS if wished else told)

    async def _remember(self, opened: Thread) -> None:
        opened.limits = self._ear.limits
