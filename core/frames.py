"""The one message that shows a running turn: sent once, then edited, the newest frame wins.

Best effort throughout: no failure in here fails a turn, and a message whose fate is unknown is
never sent a second time. What it must get right is the end: once a preview is closed no frame of
it may land after the final answer, and a preview that no answer replaces goes away. When a question
comes below a preview, what follows is a new message below the question, and the old one goes.
Which preview a turn has is known here; how one gets to its chat stands in drawing.py. It does not
know what a frame is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from core.calls import Calls
from core.drawing import Drawing
from core.finding import FIND_AFTER
from core.messages import Keyboard
from core.shown import Fate, Growing, Preview, Takeover
from core.store.records import Delivery, DeliveryState
from core.store.rows import Row

CLOSING_TIME = 2.0  # seconds the last call has to come back before an answer
CALL_TIME = 120.0  # the same where nothing waits for it
CLOSED_KEPT = 256  # closed previews whose answer has not come


class Previews:
    def __init__(
        self,
        calls: Calls,
        deliver: Callable[[list[Delivery]], None],
        owed: Callable[[str, int], bool],
    ) -> None:
        """``owed``: whether a lane has an answer to send that is not the named turn's."""
        self._calls = calls
        self._store = calls.store
        self._clock = calls.clock
        self._deliver = deliver
        self._drawing = Drawing(calls, owed, self._stands)
        self._by_turn: dict[int, Preview] = {}
        self._above: dict[int, Preview] = {}  # with words, above a question; go with the next one
        self._leaving: dict[int, list[Delivery]] = {}  # stored; to be made after the answer

    def begin(self, turn: int) -> None:
        """The turn is tried once more: it goes on in the message of the try before."""
        preview = self._by_turn.get(turn)
        if preview is None or not preview.closed or preview.fate is Fate.UNKNOWN:
            return
        if preview.fate in (Fate.SHOWN, Fate.DOUBT) or preview.calling:
            preview.closed = False
            if preview.fate is Fate.DOUBT and self._calls.group is not None:
                self._drawing.seek(preview)
        else:
            del self._by_turn[turn]

    def step_aside(self, turn: int) -> None:
        """A question comes below it: what is shown from now on stands below the question."""
        preview = self._by_turn.get(turn)
        if preview is None or preview.closed or preview.fate in (Fate.UNKNOWN, Fate.GONE):
            return
        del self._by_turn[turn]
        if preview.text and (preview.fate in (Fate.SHOWN, Fate.DOUBT) or preview.calling):
            if before := self._above.pop(turn, None):
                self._take_away(before)
            self._above[turn] = preview  # its words help to decide
        else:
            self._take_away(preview)

    def over(self, turn: int) -> None:
        """The turn has ended and no answer comes: nothing of it stays."""
        for previews in (self._by_turn, self._above):
            if preview := previews.pop(turn, None):
                self._take_away(preview)

    def show(
        self,
        turn: int,
        lane: str,
        text: str,
        footer: str,
        keyboard: Keyboard = (),
        growing: Growing | None = None,
    ) -> None:
        """The newest frame; earlier ones that were not shown yet are dropped."""
        preview = self._by_turn.get(turn)
        if preview is None:
            preview = self._by_turn[turn] = Preview(turn, lane)
        if preview.closed or preview.ended or self._calls.group is None:
            return
        preview.text, preview.footer, preview.keyboard = text, footer, keyboard
        preview.growing = growing
        self._drawing.go_on(preview)

    def go_on(self, lane: str) -> None:
        """An answer that previews of this lane waited for is sent, or given up."""
        for preview in tuple(self._by_turn.values()):
            if preview.lane == lane:
                self._drawing.go_on(preview)

    def shows(self, turn: int) -> bool:
        """Whether a message of it is there or may be there."""
        preview = self._by_turn.get(turn)
        if turn in self._above:
            return True
        if preview is None:
            return False
        return preview.fate in (Fate.SHOWN, Fate.DOUBT, Fate.UNKNOWN) or preview.calling

    def adopt(self, row: Delivery, *, late: bool) -> None:
        """A preview of an earlier process, for the turn's next try or its answer."""
        if row.turn is not None and row.message_id and row.state is DeliveryState.SENT:
            newer = self._by_turn.get(row.turn)
            below = newer is not None and newer.fate is Fate.DOUBT
            (self._above if below else self._by_turn)[row.turn] = Preview(
                row.turn, row.lane, fate=Fate.SHOWN, message_id=row.message_id, row=row.id,
                closed=True, late=late,
            )  # fmt: skip

    def doubt(self, row: Delivery) -> None:
        """A preview that was being sent when an earlier process ended; the platform can tell."""
        if row.turn is not None:
            doubted = Preview(
                row.turn, row.lane, fate=Fate.DOUBT, row=row.id, created_at=row.created_at,
                closed=True, not_before=self._clock.monotonic() + FIND_AFTER, streamed=True,
            )  # fmt: skip
            other = self._by_turn.get(row.turn, doubted)
            self._by_turn[row.turn] = max(doubted, other, key=lambda one: one.row)
            if other is not doubted:
                self._above[row.turn] = min(doubted, other, key=lambda one: one.row)

    def close(self, turn: int) -> None:
        """No frame starts from now on; a call that is under way goes on."""
        preview = self._by_turn.get(turn)
        if preview is None or preview.closed:
            return
        self._drawing.close(preview)
        if preview.task is None and preview.fate is Fate.NONE and not preview.row:
            del self._by_turn[turn]
        self._forget_oldest()

    async def settle(self, turn: int) -> Takeover:
        """Close it and wait for its last call, at most two seconds."""
        self.close(turn)
        left: list[Row] = []
        if above := self._above.pop(turn, None):
            left, self._leaving[turn] = await self._drawing.leave(above, CLOSING_TIME)
        preview = self._by_turn.get(turn)
        if preview is None:
            return Takeover(rows=tuple(left))
        await self._drawing.last_call(preview, CLOSING_TIME)
        if preview.stuck:
            left += await self._left(preview)
        if preview.fate is Fate.SHOWN:
            return Takeover(preview.message_id, preview.late, tuple(left))
        return Takeover(rows=(*left, *self._drawing.ending(preview)))

    def forget(self, turn: int) -> None:
        """The answer is there."""
        self._by_turn.pop(turn, None)
        self._deliver(self._leaving.pop(turn, []))

    def lost(self, turn: int, message_id: str) -> Iterable[Row]:
        """A message of the turn turned out to be gone; it may be another than its preview."""
        preview = self._by_turn.get(turn)
        if preview is None or preview.message_id != message_id:
            return ()
        preview.fate = Fate.GONE
        return self._drawing.ending(preview)

    async def stuck(self, turn: int, message_id: str) -> Iterable[Row]:
        """It cannot be changed: the answer is a message of its own, and this one goes after it."""
        preview = self._by_turn.get(turn)
        if preview is None or preview.message_id != message_id:
            return ()
        return await self._left(preview)

    def moved(self, place: str) -> None:
        """What was sent to a chat's old id counts as gone."""
        for preview in (*self._by_turn.values(), *self._above.values()):
            if preview.place == place:
                preview.fate, preview.ended = Fate.GONE, True

    # Inside -------------------------------------------------------------------------------

    def _stands(self, preview: Preview) -> None:
        """Its message is there; what stood above the question goes, where it stands below it."""
        stands_below = self._by_turn.get(preview.turn) is preview
        if stands_below and (above := self._above.pop(preview.turn, None)):
            self._take_away(above)

    async def _left(self, preview: Preview) -> list[Row]:
        left, gone = await self._drawing.leave(preview, CLOSING_TIME)
        self._leaving[preview.turn] = [*self._leaving.get(preview.turn, ()), *gone]
        preview.fate = Fate.GONE
        return left

    def _take_away(self, preview: Preview) -> None:
        """Close it and remove its message, in a task of its own."""
        if self._calls.group is not None:
            name = f"removal of the preview of turn {preview.turn}"
            self._calls.spawn(self._removed(preview), name)

    async def _removed(self, preview: Preview) -> None:
        written, removal = await self._drawing.leave(preview, CALL_TIME)
        await self._store.save(*written)
        self._deliver(removal)

    def _forget_oldest(self) -> None:
        closed = [turn for turn, preview in self._by_turn.items() if preview.closed]
        for turn in closed[: max(0, len(closed) - CLOSED_KEPT)]:
            del self._by_turn[turn]
