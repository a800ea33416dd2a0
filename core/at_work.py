"""What the running turn of each lane is doing, for who is asked beside it.

Kept in memory, bounded, and gone with its turn. It must not know engines or platforms.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from core.engines.base import Event, Text, ToolEnded, ToolStarted
from core.turns import Turn
from core.wording import duration, label

TOOLS_TOLD = 10
TITLE_MOST = 120  # characters of a tool's title
WORDS_TOLD = 800  # characters of its newest words
ASIDE = (
    "You answer on the side, beside the main turn of this conversation. You can read the workspace "
    "and change nothing, and the main turn does not see what you say."
)


@dataclass(slots=True)
class Work:
    """One turn at work. ``since`` in ms."""

    turn: Turn
    since: int
    asking: bool = False  # a person has to decide
    used: int = 0  # tools so far
    tools: deque[str] = field(default_factory=lambda: deque(maxlen=TOOLS_TOLD))
    words: str = ""  # the end of what it has said
    open: dict[str, str] = field(default_factory=dict)  # titles of tools at work, the newest last

    def feed(self, event: Event) -> None:
        match event:
            case Text(delta):
                self.words = (self.words + delta)[-2 * WORDS_TOLD :]
            case ToolStarted(tool, title):
                self.used += 1
                self.tools.append(label(title, TITLE_MOST) or "a tool")
                self.open[tool] = self.tools[-1]
            case ToolEnded(tool):
                self.open.pop(tool, None)
            case _:
                pass

    @property
    def doing(self) -> str:
        """The tool it is at, if any."""
        return next(reversed(self.open.values()), "")


class AtWork:
    """One for the process."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}

    def begin(self, turn: Turn, since: int) -> Work:
        """A main turn has begun; what it does is told to the ``Work``."""
        work = self._works[turn.lane] = Work(turn, since)
        return work

    def end(self, work: Work) -> None:
        if self._works.get(work.turn.lane) is work:
            del self._works[work.turn.lane]

    def of(self, lane: str) -> Work | None:
        return self._works.get(lane)

    def note(self, lane: str, now: int) -> str:
        """For the agent of a side answer: where it stands, and what goes on beside it."""
        work = self._works.get(lane)
        if work is None:
            return f"({ASIDE} Nothing else runs in it now.)"
        state = "waits for a person's decision, after" if work.asking else "has been at work for"
        about = f' on: "{label(work.turn.label, 200)}"' if work.turn.label else ""
        lines = [f"{ASIDE} The main turn {state} {duration(now - work.since)}{about}."]
        if work.tools:
            more = f" (the last {len(work.tools)} of {work.used})" if work.used > TOOLS_TOLD else ""
            lines.append(f"Its tools so far{more}:")
            lines += [f"- {title}" for title in work.tools]
        else:
            lines.append("It has used no tool yet.")
        words = work.words.strip()[-WORDS_TOLD:].strip()
        if words:
            lines.append("Its newest words, for context:")
            lines += [f"> {line}" for line in words.splitlines()]
        return "(" + "\n".join(lines) + ")"
