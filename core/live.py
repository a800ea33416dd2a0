"""What a thread sees of one running turn: the typing sign, and a preview that grows.

Events of the engine go in as they come; frames go to the outbox at the platform's own pace. It
must not know how a message is sent, or what the turn's result will be.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from core.channel import ChannelLimits
from core.clock import Clock
from core.engines.base import Event
from core.messages import Keyboard
from core.preview import Frame, Progress
from core.shown import Growing

# Both are never longer than the platform's own pace.
AT_ONCE = 0.1  # seconds to the first typing sign; nobody sees that, a quick answer needs none
FIRST = 1.0  # seconds before anything is shown; what is answered sooner is one message at once
WORDS = 0.3  # seconds from the first words to the first frame: an answer in one piece needs none
THINKING = 3.0  # seconds of work without a word after which that alone is shown
TYPE_EVERY = 4.0  # seconds between typing signs before the turn's own pace is known
BEAT = 5.0  # seconds between looks at the elapsed time where the platform shows no typing


class Screen(Protocol):
    """The side of the outbox that a running turn uses."""

    def preview(
        self,
        turn: int,
        lane: str,
        text: str,
        footer: str = "",
        keyboard: Keyboard = (),
        growing: Growing | None = None,
    ) -> None: ...

    def begin_preview(self, turn: int) -> None: ...

    def step_aside(self, turn: int) -> None: ...

    def close_preview(self, turn: int) -> None: ...

    def typing(self, lane: str) -> None: ...

    def hush(self, lane: str) -> None: ...


async def type_on(outbox: Screen, lane: str, clock: Clock) -> None:
    """The typing sign alone, until cancelled: before an agent can begin, files can be slow."""
    await clock.sleep(AT_ONCE)
    try:
        while True:
            outbox.typing(lane)
            await clock.sleep(TYPE_EVERY)
    finally:
        outbox.hush(lane)


class Live:
    """One for each running turn. Made when the turn starts; ``run`` is its only task."""

    def __init__(
        self,
        turn: int,
        lane: str,
        direct: bool,
        limits: ChannelLimits,
        outbox: Screen,
        clock: Clock,
        previews: bool,
        keyboard: Keyboard = (),
        person: str = "",
    ) -> None:
        self._turn = turn
        self._lane = lane
        self._limits = limits
        every = limits.preview_every_direct if direct else limits.preview_every_group
        self._every = min(every, limits.stream_every) if limits.stream_text else every
        self._outbox = outbox
        self._clock = clock
        self._previews = previews and limits.edits
        self._keyboard = keyboard
        self._person = person
        self._progress = Progress(limits.preview_text, limits.preview_footer, limits.stream_text)
        self._changed = asyncio.Event()
        self._began = clock.monotonic()
        self._words_at: float | None = None
        self._resumed = 0.0  # when a person was asked, or had decided
        self._shown: Frame | None = None
        self._shown_at = 0.0
        self._holding = False
        self._closed = False
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Type and show frames until closed or cancelled."""
        if self._closed:
            return
        async with asyncio.TaskGroup() as group:
            self._tasks.append(group.create_task(self._beat(), name=f"typing of turn {self._turn}"))
            if self._previews:
                self._outbox.begin_preview(self._turn)
                frames = self._show_frames()
                self._tasks.append(group.create_task(frames, name=f"frames of turn {self._turn}"))

    def feed(self, event: Event) -> None:
        """An event of the engine; those that say nothing to people are ignored."""
        if self._closed or not self._progress.feed(event):
            return
        if self._progress.wordy and self._words_at is None:
            self._words_at = self._clock.monotonic()
        self._changed.set()

    def hold(self) -> None:
        """A person has to decide: nobody types meanwhile, and the question comes below."""
        self._holding = True
        self._progress.asking = True
        self._outbox.hush(self._lane)
        self._progress.fresh = self._progress.wordy and self._shown is None
        self._resumed = self._clock.monotonic()  # what was not shown yet stands below it
        if self._shown is not None and not self._closed:
            if self._progress.wordy:
                self._show()  # so that the words above the question do not seem to go on
            self._outbox.step_aside(self._turn)
            self._shown = None
        self._changed.set()

    def release(self) -> None:
        self._holding = False
        self._progress.asking = False
        self._resumed = self._clock.monotonic()
        self._changed.set()
        if not self._closed:
            self._type()

    def close(self) -> str:
        """No frame and no typing sign starts after this; returns the text so far."""
        if not self._closed:
            self._closed = True
            for task in self._tasks:
                task.cancel()
            self._outbox.hush(self._lane)
            self._outbox.close_preview(self._turn)
        return self._progress.text

    def _type(self) -> None:
        if self._limits.typing_every and not self._holding:
            self._outbox.typing(self._lane)

    async def _beat(self) -> None:
        await self._clock.sleep(AT_ONCE)
        while not self._closed:
            self._type()
            await self._clock.sleep(self._limits.typing_every or BEAT)
            if self._limits.preview_footer:
                self._changed.set()  # the elapsed time

    async def _show_frames(self) -> None:
        await self._clock.sleep(min(FIRST, self._every))
        while not self._closed:
            await self._changed.wait()
            due = self._due()
            if due is None:
                self._changed.clear()
                continue
            wait = due - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
                continue  # a question may have come meanwhile
            self._changed.clear()
            self._show()

    def _show(self) -> None:
        now = self._clock.monotonic()
        frame = self._progress.frame(now - self._began)
        if frame.shown and frame != self._shown:
            self._shown, self._shown_at = frame, now
            growing = None if frame.whole is None else Growing(frame.whole, self._person)
            self._outbox.preview(
                self._turn, self._lane, frame.text, frame.footer, self._keyboard, growing
            )

    def _due(self) -> float | None:
        """When the next frame may be shown; None: not yet known, there is nothing to show."""
        if self._progress.asking and not self._progress.fresh:
            return None  # the question stands there already, and says all there is to say
        if self._shown is not None:
            return self._shown_at + self._every
        resumed = self._resumed + min(FIRST, self._every)
        if self._words_at is not None:
            return max(self._words_at + min(WORDS, self._every), resumed)
        now = self._clock.monotonic()
        return max(now, resumed) if now - self._began >= THINKING else None
