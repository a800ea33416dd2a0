"""One turn of Claude Code: what is asked of it, and what it says, as events.

How its process comes and goes is that of every agent program (``agent_run.py``).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from core.engines import claude_ends as ends
from core.engines.agent_run import AgentRun
from core.engines.base import (
    ApprovalAsked,
    ApprovalWithdrawn,
    Decision,
    Event,
    Finished,
    Request,
    Text,
    Unsent,
)
from core.engines.claude_hearing import ClaudeEar, calls_tools
from core.engines.claude_offers import Offers
from core.engines.claude_peer import ClaudePeer
from core.engines.claude_prompt import content
from core.engines.claude_session import SessionLost, Talk, open_talk, settle_between
from core.engines.claude_words import (
    ASKED_AS_TEXT,
    Setup,
    command_of,
    kind_of,
    not_handed_on,
    questions,
    title_of,
    unmentioned,
)
from core.engines.lines import Gone
from core.engines.plain import Json, as_sent, mapping, name
from core.engines.processes import Child, LineTooLong
from core.engines.speech import Meter
from core.turns import Result

if TYPE_CHECKING:
    from core.engines.claude import ClaudeEngine

log = logging.getLogger("laneway.engine")

SETTLING = 2.0  # seconds after a result until what became of an offered message counts as unknown
NO = (
    "A person was asked and said no. Do not do the same in another way: say in your answer what "
    "you wanted to do, and go on without it."
)
UNASKED = "This is not allowed here."
NOTHING_TO_COMPACT = "There is nothing to compact yet."
NOTHING = ("no messages to compact", "not enough messages")


class ClaudeRun(AgentRun[Talk]):
    """A turn that begins when ``events`` is iterated."""

    def __init__(self, engine: ClaudeEngine, request: Request) -> None:
        super().__init__(engine, request)
        self._engine = engine
        self._fresh = str(uuid.uuid4())  # the id of a session that begins with this turn
        self._peer: ClaudePeer | None = None
        self._ear = ClaudeEar(request.folder)
        self._asks: dict[str, tuple[str, Json]] = {}  # approval → its request and its input
        self._offers = Offers()
        self._current = False  # the program knows every switch that is used here
        self._usage_asked: set[str] = set()  # numbers of our questions
        self._verdict: Finished | None = None  # of the results so far
        self._last: Event | None = None

    # The port -------------------------------------------------------------------------------

    def answer(self, approval: str, decision: Decision) -> None:
        asked = self._asks.pop(approval, None)
        if asked is None or self._peer is None:
            return
        number, call = asked
        if decision is Decision.ALLOW:
            self._peer.reply(number, {"behavior": "allow", "updatedInput": call})
        else:
            self._peer.reply(number, {"behavior": "deny", "message": NO})

    async def steer(self, turn: int, text: str) -> None:
        fits = self._prompted and not (self._over or self._stopping.is_set())
        if self._peer is None or not fits or self._request.compact or not_handed_on(text):
            self._offers.refuse(turn)
            return
        self._offers.offer(turn, self._peer.say(self._harmless(text)))

    def _interrupt(self) -> None:
        if self._peer is None or not self._prompted or self._over:
            return
        for number in self._offers.waiting():
            self._peer.request("cancel_async_message", message_uuid=number)
        self._peer.request("interrupt")

    # Opening --------------------------------------------------------------------------------

    def _arguments(self) -> tuple[str, ...]:
        return self._engine.arguments(self._request, self._fresh)

    async def _cold(self) -> Talk | None:
        try:
            return await super()._cold()
        except SessionLost as lost:
            log.info("%s: %s; a fresh one begins", self._request.lane, lost)
        finally:
            self._engine.forget_servers(self._request, self._fresh)
        if self._child is not None:
            await self._end(self._child, self._grace)
        self._request = replace(self._request, session="")
        try:
            return await super()._cold()
        finally:
            self._engine.forget_servers(self._request, self._fresh)

    async def _open(self, child: Child) -> Talk:
        self._peer = ClaudePeer(child)
        return await open_talk(self._peer, self._request, self._fresh, self._engine)

    def _fits(self, kept: Talk) -> bool:
        return kept.setup == Setup.of(self._request) and kept.setup.cap is None

    async def _wake(self, kept: Talk) -> None:
        self._peer = kept.peer
        await settle_between(kept.peer)

    # The turn -------------------------------------------------------------------------------

    async def _turn(self, opened: Talk) -> AsyncGenerator[Event, None]:
        meter = Meter(opened.spent, opened.spent)
        quiet = self._request.compact
        self._ear = ClaudeEar(self._request.folder, meter, opened.mark, quiet=quiet)
        if not quiet and (refused := not_handed_on(self._request.prompt)):
            self._well = True
            yield Text(refused)
            yield Finished(Result.DONE)
            return
        self._current = opened.declared.current
        request = replace(self._request, prompt=self._harmless(self._request.prompt))
        prompt = await asyncio.to_thread(content, request)
        if self._stopping.is_set():
            yield Finished(Result.CANCELLED)
            return
        if opened.mark is None:
            self._ask_usage(opened.peer)
        number = opened.peer.say(prompt)
        if not number:
            yield Unsent("The agent ended before it was given the message.")
            return
        self._offers.begin(number)
        self._prompted = True
        while self._last is None:
            for event in self._hear(await self._next(opened), opened):
                yield event
            if self._verdict is not None and self._offers.over:
                self._last = self._verdict
        self._over = True
        self._answered.set()
        capped = opened.setup.cap is not None  # what is left of a cap is nobody else's
        self._well = self._well and not self._ear.forgot and not capped
        for event in self._closing():
            yield event
        for settled in self._offers.rest():
            yield settled
        yield self._last

    async def _next(self, opened: Talk) -> Json:
        """The next message; an empty one when there will be none, and ``_last`` is known."""
        try:
            async with asyncio.timeout(self._patience_now()):
                return await opened.peer.read()
        except (Gone, LineTooLong) as error:
            over = self._verdict is not None and not self._offers.under_way
            self._last = self._verdict if over else await self._lost(opened.child, error)
        except TimeoutError:  # it has answered, and says nothing of what was offered to it
            self._well = False
            self._last = self._verdict
        return {}

    def _harmless(self, text: str) -> str:
        return text if self._current else unmentioned(text)

    def _patience_now(self) -> float | None:
        """Seconds until a silence after a result means that nothing more will come."""
        return SETTLING if self._verdict is not None and not self._offers.under_way else None

    def _hear(self, message: Json, opened: Talk) -> Iterator[Event]:
        match message.get("type"):
            case "control_request":
                yield from self._asked(message, opened.peer)
            case "control_cancel_request":
                yield from self._withdrawn(as_sent(message.get("request_id")))
            case "command_lifecycle":
                self._offers.hear(message)
            case "control_response":
                response = mapping(message.get("response"))
                if as_sent(response.get("request_id")) in self._usage_asked:
                    yield from self._ear.count_live(mapping(response.get("response")))
            case "result":
                if self._offers.covered(message):
                    yield from self._ear.hear(message)
                    self._conclude(message, opened)
                    yield from self._report()
            case _:
                yield from self._ear.hear(message)
                if calls_tools(message):  # the turn goes on, and has cost something by now
                    self._ask_usage(opened.peer)
        yield from self._offers.settled()

    def _ask_usage(self, peer: ClaudePeer) -> None:
        self._usage_asked.add(peer.request("get_usage"))

    def _asked(self, message: Json, peer: ClaudePeer) -> Iterator[Event]:
        number, request = as_sent(message.get("request_id")), mapping(message.get("request"))
        if request.get("subtype") != "can_use_tool":
            peer.refuse(number, "not offered here")
            return
        tool, call = as_sent(request.get("tool_name")), mapping(request.get("input"))
        title = title_of(tool, call, self._request.folder)
        yield from self._ear.mention(name(request.get("tool_use_id")), title)
        if self._stopping.is_set() or self._request.read_only:
            # a side answer changes nothing even if a person would let it
            peer.reply(number, {"behavior": "deny", "message": UNASKED})
            return
        if tool == "AskUserQuestion" and (asked := "\n\n".join(questions(call))):
            peer.reply(number, {"behavior": "deny", "message": ASKED_AS_TEXT})
            yield from self._ear.say(asked)
            return
        command = command_of(tool, call, self._request.folder)
        if not command:
            log.warning("%s: a command too long to be shown was declined", self._request.lane)
            peer.reply(number, {"behavior": "deny", "message": UNASKED})
            return
        approval = f"{self._request.turn}-{next(self._questions)}"
        self._asks[approval] = (number, call)
        yield ApprovalAsked(approval, kind_of(tool), command)

    def _withdrawn(self, number: str) -> Iterator[Event]:
        for approval, (asked, _) in list(self._asks.items()):
            if asked == number:
                del self._asks[approval]  # it waits for no answer any more
                yield ApprovalWithdrawn(approval)

    def _closing(self) -> Iterator[Event]:
        """What has to be settled before the last event."""
        for approval in list(self._asks):
            self.answer(approval, Decision.CANCEL)
            yield ApprovalWithdrawn(approval)

    # Its end --------------------------------------------------------------------------------

    def _conclude(self, result: Json, opened: Talk) -> None:
        """What this result says of the turn; a later one, of what was offered to it, says more."""
        self._well = not ends.failed(result)
        if self._stopping.is_set():
            self._answered.set()
        if self._well and self._request.compact:
            self._verdict = self._compacted()
        elif self._well:
            self._verdict = Finished(Result.DONE)
        elif self._stopping.is_set():
            self._verdict = Finished(Result.CANCELLED)
        else:
            self._verdict = self._why(result, opened)

    def _why(self, result: Json, opened: Talk) -> Finished:
        models = tuple(model for model, _, _ in opened.declared.models)
        now = self._engine.now()
        known, failure = ends.why(result, self._ear.limits, self._request.model, models, now)
        return self._failure(known, failure, ends.said(result))

    def _compacted(self) -> Finished:
        said = self._ear.notice
        if self._ear.compacted or any(word in said.lower() for word in NOTHING):
            return Finished(Result.DONE)
        self._well = False
        why = self._engine.plain(f"The agent could not compact the conversation: {said}")
        return Finished(Result.FAILED, why)

    def _report(self) -> Iterator[Event]:
        """What a compaction did; it says nothing of it itself."""
        if not self._request.compact or not self._well:
            return
        text = NOTHING_TO_COMPACT
        if self._ear.compacted:
            text = "Compacted: {:,} tokens became {:,}.".format(*self._ear.compacted)
        yield from self._ear.say(text)

    async def _remember(self, opened: Talk) -> None:
        opened.mark = self._ear.mark
        total = self._ear.meter.total
        if total is not None and total != opened.spent and not self._request.read_only:
            opened.spent = total
            await asyncio.to_thread(self._engine.totals.write, opened.session, total)
