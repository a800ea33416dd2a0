"""What Claude Code says while it works, as events: its answer, thoughts, tools and costs.

Pure: plain data in, events out. One ``ClaudeEar`` listens to one turn and remembers just enough to
make sense of the next message. What it yields is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.engines.base import Event, Thought, ToolEnded, ToolStarted, Usage
from core.engines.claude_words import result_texts, title_of
from core.engines.plain import (
    COST_MOST,
    TOKENS_MOST,
    Json,
    as_sent,
    mapping,
    money,
    name,
    whole_number,
    words,
)
from core.engines.speech import Meter, Speech

OPEN_CALLS = 500  # remembered at once; an agent that never ends one shall not fill the memory
STREAMED = 50  # messages of which it is remembered that they came in pieces
NOTICE_MOST = 2000  # characters
THOUGHT_MOST = 4000  # characters of one piece
FORGOTTEN = "\n\n(The agent forgot the conversation for this turn only. For a fresh one, say /new.)"


@dataclass(slots=True)
class ClaudeEar:
    """Listens to the messages of one turn."""

    folder: Path
    meter: Meter = field(default_factory=Meter)  # of the session's total cost, at results
    mark: float | None = None  # that total when what has no result yet began; None: not known
    quiet: bool = False  # what was not streamed is kept as a notice, not said
    notice: str = ""
    limits: Json = field(default_factory=dict)  # what was last told of the account's limits
    forgot: bool = False  # it began another conversation in the middle of the turn
    compacted: tuple[int, int] | None = None  # tokens before and after
    _speech: Speech = field(default_factory=Speech)
    _streamed: deque[str] = field(default_factory=lambda: deque(maxlen=STREAMED))
    _calls: dict[str, str] = field(default_factory=dict)  # open tool calls, with their titles
    _results: bool = False  # there was one
    _settled: tuple[int, int] = (0, 0)  # tokens of what has a result
    _spent: float | None = None  # dollars of what has a result that tells them
    _live: float | None = None  # dollars since the mark
    _message: tuple[int, int] = (0, 0)  # tokens of the message that is coming
    _messages: tuple[int, int] = (0, 0)  # of those before it without a result

    def hear(self, message: Json) -> Iterator[Event]:
        nested = bool(message.get("parent_tool_use_id"))  # said to the agent by one it started
        match message.get("type"):
            case "stream_event" if not nested:
                yield from self._piece(mapping(message.get("event")))
            case "assistant":
                yield from self._said(message, nested)
            case "user":
                yield from self._done(message)
            case "system":
                yield from self._told(message)
            case "tool_progress":
                yield Thought()  # a sign of life
            case "rate_limit_event":
                self.limits = mapping(message.get("rate_limit_info"))
            case "conversation_reset":
                self.forgot = True
                yield from self.say(FORGOTTEN)
            case "result":
                yield self._count(message)
            case _:
                return  # noise to a turn

    def say(self, text: str) -> Iterator[Event]:
        """Words of ours for the thread, as a paragraph of the answer."""
        self._speech.apart()
        yield from self._speech.say(text)
        self._speech.apart()

    def _piece(self, event: Json) -> Iterator[Event]:
        match event.get("type"):
            case "message_start":
                message = mapping(event.get("message"))
                self._streamed.append(words(message.get("id")))
                self._speech.apart()
                self._messages = _sum(self._messages, self._message)
                self._message = (_tokens_in(mapping(message.get("usage"))), 0)
            case "content_block_start":
                if mapping(event.get("content_block")).get("type") == "tool_use":
                    self._speech.apart()
            case "content_block_delta":
                delta = mapping(event.get("delta"))
                if delta.get("type") == "text_delta":
                    yield from self._speech.say(as_sent(delta.get("text")))
                elif delta.get("type") == "thinking_delta":
                    yield Thought(words(delta.get("thinking"))[:THOUGHT_MOST])
            case "message_delta":
                out = whole_number(mapping(event.get("usage")).get("output_tokens")) or 0
                self._message = (self._message[0], out)
                yield self.usage()

    def _said(self, message: Json, nested: bool) -> Iterator[Event]:
        """A whole message: its text, unless that came in pieces, and the tools it calls."""
        failed = message.get("is_api_error_message") is True or "error" in message
        came = words(mapping(message.get("message")).get("id")) in self._streamed
        for block in result_texts(message):
            if block.get("type") == "text" and not (nested or came or failed):
                if self.quiet:
                    self.notice = words(block.get("text"))[:NOTICE_MOST]
                else:
                    yield from self.say(as_sent(block.get("text")))
            elif block.get("type") == "tool_use":
                number = name(block.get("id"))
                called = as_sent(block.get("name"))
                title = title_of(called, mapping(block.get("input")), self.folder)
                yield from self._started(number, title)

    def _started(self, number: str, title: str) -> Iterator[Event]:
        if number in self._calls:
            return
        self._calls[number] = title
        while len(self._calls) > OPEN_CALLS:
            del self._calls[next(iter(self._calls))]
        yield ToolStarted(number, title)

    def mention(self, number: str, title: str) -> Iterator[Event]:
        """A tool call that a question tells of, perhaps before the message that makes it."""
        if number:
            yield from self._started(number, title)

    def _done(self, message: Json) -> Iterator[Event]:
        for block in result_texts(message):
            number = name(block.get("tool_use_id"))
            if block.get("type") == "tool_result" and number in self._calls:
                title = self._calls.pop(number)
                yield ToolEnded(number, title, failed=block.get("is_error") is True)

    def _told(self, message: Json) -> Iterator[Event]:
        match message.get("subtype"):
            case "api_retry" | "status":
                yield Thought()  # a sign of life
            case "compact_boundary":
                sizes = mapping(message.get("compact_metadata"))
                before, after = sizes.get("pre_tokens"), sizes.get("post_tokens")
                self.compacted = (whole_number(before) or 0, whole_number(after) or 0)

    # Costs ----------------------------------------------------------------------------------

    def _count(self, result: Json) -> Usage:
        """What was used until this result, instead of what was heard in pieces."""
        since = result.get("model_usage_since_last_result")
        total = money(result.get("total_cost_usd"))
        if total is not None:
            self.meter.count(total)
            self.mark, self._live = total, None
        if isinstance(since, dict):
            models = [mapping(model) for model in since.values()]
            tokens = (
                sum(_tokens_in(model) for model in models),
                sum(whole_number(model.get("outputTokens")) or 0 for model in models),
            )
            spent = sum(money(model.get("costUSD")) or 0.0 for model in models)
            self._spent = (self._spent or 0.0) + spent
        else:
            usage = mapping(result.get("usage"))
            tokens = (_tokens_in(usage), whole_number(usage.get("output_tokens")) or 0)
        self._settled = _sum(self._settled, tokens)
        self._results = True
        self._message = self._messages = (0, 0)
        return self.usage()

    def _of_totals(self) -> float | None:
        """From totals alone: of a version that tells nothing better. Before a result, nothing."""
        return self.meter.cost if self._results else None

    def count_live(self, usage: Json) -> Iterator[Usage]:
        """Take in the total it told when it was asked, between two results."""
        total = money(mapping(usage.get("session")).get("total_cost_usd"))
        if total is None:
            return
        if self.mark is None:  # asked before the prompt: all of it is the past's
            self.mark = self.meter.before = self.meter.total = total
        elif total > self.mark:
            self._live = total - self.mark
            yield self.usage()

    def usage(self) -> Usage:
        """Of the turn until now."""
        tokens = _sum(self._settled, _sum(self._messages, self._message))
        cost = self._spent if self._spent is not None else self._of_totals()
        if self._live is not None:
            cost = (cost or 0.0) + self._live
        return Usage(*tokens, cost=None if cost is None else min(cost, COST_MOST))


def calls_tools(message: Json) -> bool:
    """Whether a step has ended and tools are called, so that another step follows."""
    event = mapping(message.get("event"))
    delta = mapping(event.get("delta"))
    return event.get("type") == "message_delta" and delta.get("stop_reason") == "tool_use"


def _sum(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return min(one[0] + other[0], TOKENS_MOST), min(one[1] + other[1], TOKENS_MOST)


def _tokens_in(usage: Json) -> int:
    """All that was read, from the cache as well."""
    names = (
        *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        *("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens"),
    )
    return sum(whole_number(usage.get(key)) or 0 for key in names)
