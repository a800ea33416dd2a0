"""What Codex says while it works, as events: its answer, thoughts, tools and tokens.

Pure: plain data in, events out. One ``CodexEar`` listens to one turn of one thread and remembers
just enough to make sense of the next message. What it yields is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.engines.asking import COMMAND_MOST
from core.engines.base import Event, Thought, ToolEnded, ToolStarted, Usage
from core.engines.codex_words import questions, title_of
from core.engines.plain import (
    TOKENS_MOST,
    Json,
    as_sent,
    items,
    mapping,
    name,
    whole_number,
    words,
)
from core.engines.speech import Speech

OPEN_CALLS = 500  # remembered at once; an agent that never ends one shall not fill the memory
OPEN_CHANGES = 20  # of files, remembered in full
STREAMED = 50  # messages of which it is remembered that they came in pieces
THOUGHT_MOST = 4000  # characters of one piece
FAILED = ("failed", "declined")
SIGNS_OF_LIFE = frozenset(
    {
        *("item/commandExecution/outputDelta", "item/fileChange/outputDelta"),
        *("item/mcpToolCall/progress", "turn/plan/updated", "item/plan/delta"),
        *("item/reasoning/summaryPartAdded", "model/rerouted"),
    }
)


@dataclass(slots=True)
class CodexEar:
    """Listens to the notifications of one turn."""

    folder: Path
    thread: str = ""
    turn: str = ""  # "" while it is not known
    limits: Json = field(default_factory=dict)  # what was last told of the account's limits
    error: Json = field(default_factory=dict)  # the newest one
    compacted: bool = False
    _speech: Speech = field(default_factory=Speech)
    _streamed: deque[str] = field(default_factory=lambda: deque(maxlen=STREAMED))
    _calls: dict[str, str] = field(default_factory=dict)  # open ones, with their titles
    _changes: dict[str, Json] = field(default_factory=dict)  # of files, that are not made yet
    _before: tuple[int, int] | None = None  # the thread's tokens when the turn began
    _earlier: tuple[int, int] = (0, 0)  # of counters that have fallen since
    _total: tuple[int, int] = (0, 0)  # the thread's newest

    def hear(self, method: str, told: Json) -> Iterator[Event]:
        if method == "account/rateLimits/updated":
            self.limits = mapping(told.get("rateLimits"))
        if told.get("threadId") != self.thread or told.get("turnId", self.turn) != self.turn:
            return  # of another thread or turn, or of none
        match method:
            case "item/agentMessage/delta":
                self._streamed_of(name(told.get("itemId")))
                yield from self._speech.say(as_sent(told.get("delta")))
            case "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta":
                yield Thought(words(told.get("delta"))[:THOUGHT_MOST])
            case "item/started":
                yield from self._started(mapping(told.get("item")))
            case "item/completed":
                yield from self._ended(mapping(told.get("item")))
            case "item/fileChange/patchUpdated":
                self._changed(told)
            case "thread/tokenUsage/updated":
                yield from self._count(mapping(told.get("tokenUsage")))
            case "error":
                self.error = mapping(told.get("error"))
                yield Thought()
            case _ if method in SIGNS_OF_LIFE:
                yield Thought()

    def say(self, text: str) -> Iterator[Event]:
        """Words of ours for the thread, as a paragraph of the answer."""
        self._speech.apart()
        yield from self._speech.say(text)
        self._speech.apart()

    def _streamed_of(self, number: str) -> None:
        """Note that a message comes in pieces. What came of an earlier one is all there will be."""
        if number not in self._streamed:
            self._streamed.append(number)
            self._speech.apart()

    def _started(self, item: Json) -> Iterator[Event]:
        if item.get("type") in ("agentMessage", "userMessage"):
            self._speech.apart()  # a message put in cuts the one that was coming short
        elif title := title_of(item, self.folder):
            number = name(item.get("id"))
            if number not in self._calls:
                self._speech.apart()
                yield ToolStarted(number, title)
            self._calls[number] = title
            while len(self._calls) > OPEN_CALLS:
                del self._calls[next(iter(self._calls))]
            self._keep(number, item)

    def _ended(self, item: Json) -> Iterator[Event]:
        number = name(item.get("id"))
        if item.get("type") == "contextCompaction":
            self.compacted = True
        elif item.get("type") == "agentMessage":
            if number not in self._streamed:
                yield from self.say(as_sent(item.get("text")))
            yield from self.say("\n\n".join(questions(item)))
        elif number in self._calls:
            title = self._calls.pop(number)
            self._changes.pop(number, None)
            yield ToolEnded(number, title, failed=_failed(item))

    def _changed(self, told: Json) -> None:
        number = name(told.get("itemId"))
        if number in self._changes:
            self._keep(number, {**self._changes.pop(number), "changes": told.get("changes")})

    def _keep(self, number: str, item: Json) -> None:
        """A change of files is told before it is asked about; what cannot be shown is not kept."""
        length = sum(len(as_sent(one.get("diff"))) for one in items(item.get("changes")))
        if item.get("type") == "fileChange" and length <= COMMAND_MOST:
            self._changes[number] = item
        while len(self._changes) > OPEN_CHANGES:
            del self._changes[next(iter(self._changes))]

    def about(self, number: object) -> Json:
        """What was told of a change of files that is not made yet."""
        return self._changes.get(name(number), {})

    # Tokens -----------------------------------------------------------------------------------

    def _count(self, usage: Json) -> Iterator[Usage]:
        """Turn the thread's totals into what this turn has used."""
        total, last = _tokens(usage.get("total")), _tokens(usage.get("last"))
        if self._before is None:
            self._before = max(total[0] - last[0], 0), max(total[1] - last[1], 0)
        elif total[0] < self._total[0] or total[1] < self._total[1]:  # a new counter
            self._earlier, self._before = self._used(), (0, 0)
        self._total = total
        yield self.usage()

    def _used(self) -> tuple[int, int]:
        before = self._before or (0, 0)
        used = [
            min(max(earlier + total - start, 0), TOKENS_MOST)
            for earlier, total, start in zip(self._earlier, self._total, before, strict=True)
        ]
        return used[0], used[1]

    def usage(self) -> Usage:
        """Of the turn until now. Codex tells no cost."""
        return Usage(*self._used())


def _tokens(told: object) -> tuple[int, int]:
    count = mapping(told)
    tokens_in, tokens_out = count.get("inputTokens"), count.get("outputTokens")
    return whole_number(tokens_in) or 0, whole_number(tokens_out) or 0


def _failed(item: Json) -> bool:
    code = item.get("exitCode")
    return item.get("status") in FAILED or item.get("success") is False or code not in (None, 0)
