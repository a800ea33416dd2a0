"""The one waiting notice of a lane: sent when messages wait, changed as they do, gone at zero.

The lane rules say who waits; this says it to people. Changes are gathered for a moment, so that a
burst of messages makes one notice and a message that starts at once makes none. Rows of kind
*waiting* are its memory over a restart. It must not know platforms.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Protocol

from core import budget_words, engine_words, wording
from core.channel import Channel
from core.clock import Clock
from core.engines.base import Abilities
from core.guard import fault_of
from core.items import Item, Take
from core.lanes import Hold, Lanes, LaneView
from core.lanes.lane import Phase
from core.messages import Keyboard, Part, Style
from core.showing import Action, Choice, Showing
from core.store import reads, rows
from core.store.errors import Poisoned
from core.store.records import Delivery, DeliveryKind, DeliveryState, revises
from core.store.rows import Row
from core.store.store import Store

log = logging.getLogger("laneway.notices")

SETTLE = 0.3  # seconds a change is waited out before it is shown


class Lookout(Protocol):
    """What the notice says about the lane's surroundings; the runner."""

    @property
    def lanes(self) -> Lanes: ...

    def view(self, lane: str) -> LaneView | None: ...

    def since(self, turn: int) -> int | None: ...

    def abilities(self, engine: str) -> Abilities: ...


@dataclass(frozen=True, slots=True)
class _Shown:
    first: int  # the delivery that made the message; later ones revise it
    text: str
    keyboard: Keyboard
    why: str = ""  # the text as it would be if no time passed


@dataclass(frozen=True, slots=True)
class _Change:
    """What is to be said in a lane, and what stands there then; None: nothing."""

    lane: str
    item: Item
    shown: _Shown | None


def _about_to_start(view: LaneView, lookout: Lookout) -> bool:
    """Whether what runs was stopped, so that what waits goes on within the stop grace.

    Then "waiting behind it" would be said of what is over for the person who stopped it.
    """
    ending = view.main is not None and view.main.stop is not None
    return ending and not view.paused and not lookout.lanes.draining


class Notices:
    """Owns what each lane's notice shows now."""

    def __init__(
        self,
        store: Store,
        channel_of: Callable[[str], Channel],
        clock: Clock,
        new_id: Callable[[], str],
        zone: tzinfo = UTC,
    ) -> None:
        self._store = store
        self._channel_of = channel_of
        self._clock = clock
        self.zone = zone
        self._showing = Showing(store.ids, channel_of, clock, new_id)
        self._shown: dict[str, _Shown] = {}
        self._changed: dict[str, None] = {}
        self._wake = asyncio.Event()

    def changed(self, lane: str) -> None:
        """Something about what waits in this lane may be different."""
        self._changed[lane] = None
        self._wake.set()

    def all_changed(self) -> None:
        """What every waiting lane waits for may be different: its place, a pause, a limit.

        Costs next to nothing, however often it is called: only notices that stand somewhere are
        looked at, and only those that say something else are written.
        """
        if self._shown:
            self._wake.set()

    async def restore(self) -> None:
        """Take over the notices that an earlier process left on the screen."""
        for left in await reads.waiting_notices(self._store):
            text = left.part.text if isinstance(left.part, Part) else ""
            self._shown[left.lane] = _Shown(left.id, text, left.keyboard)
            self.changed(left.lane)

    async def run(self, take: Take, lookout: Lookout) -> None:
        """Show changes until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._clock.sleep(SETTLE)
            await fault_of(self._show(take, lookout), "showing what waits")

    async def _show(self, take: Take, lookout: Lookout) -> None:
        named, self._changed = self._changed, {}
        changes: list[_Change] = []
        for lane in (*named, *(lane for lane in self._shown if lane not in named)):
            try:
                change = self._change(lane, lookout, lane in named)
            except Exception:  # one lane's, whatever it is; the others are shown
                log.exception("what waits in %s cannot be shown", lane)
            else:
                changes += [change] if change else []
        if not changes:
            return
        try:
            accepted = await take(*(change.item for change in changes))
        except Poisoned as fault:
            accepted = fault.accepted
        for change, stored in zip(changes, accepted, strict=True):
            # What was set aside is not tried again before something else is to be said.
            if change.shown is None:
                self._shown.pop(change.lane, None)
            elif stored or change.lane in self._shown:
                self._shown[change.lane] = change.shown

    def _change(self, lane: str, lookout: Lookout, named: bool) -> _Change | None:
        """``named``: something happened in this lane, so the time it shows is worth an edit."""
        view = lookout.view(lane)
        shown = self._shown.get(lane)
        if view is None or not view.waiting:
            return self._removed(lane, shown) if shown else None
        text, why = self._text(view, lookout), self._text(view, lookout, timeless=True)
        if shown is None and _about_to_start(view, lookout):
            return None
        if shown is None:
            return self._first(lane, view, text, why, lookout)
        if shown.text == text or (not named and shown.why == why):
            return None
        keyboard, buttons = shown.keyboard, tuple[Row, ...]()
        wanted = [choice.label for choice in self._choices(view, lookout)]
        if wanted != [button.label for line in keyboard for button in line]:
            keyboard, buttons = self._buttons(lane, view, lookout)
        delivery = self._delivery(lane, text, keyboard, revises(shown.first))
        after = replace(shown, text=text, keyboard=keyboard, why=why)
        return _Change(lane, Item(deliveries=[delivery], rows=buttons), after)

    def _first(self, lane: str, view: LaneView, text: str, why: str, lookout: Lookout) -> _Change:
        keyboard, buttons = self._buttons(lane, view, lookout)
        delivery = self._delivery(lane, text, keyboard, "")
        item = Item(deliveries=[delivery], rows=buttons)
        return _Change(lane, item, _Shown(delivery.id, text, keyboard, why))

    def _removed(self, lane: str, shown: _Shown) -> _Change:
        """A revision without text takes the message away."""
        gone = rows.delivery_state(shown.first, DeliveryState.WITHDRAWN)
        delivery = self._delivery(lane, "", (), revises(shown.first))
        return _Change(lane, Item(deliveries=[delivery], rows=[gone]), None)

    def _delivery(self, lane: str, text: str, keyboard: Keyboard, target: str) -> Delivery:
        part = self._channel_of(lane).render(text)[0] if text else Part("")
        return self._showing.one(lane, part, DeliveryKind.WAITING, keyboard=keyboard, target=target)

    def _text(self, view: LaneView, lookout: Lookout, *, timeless: bool = False) -> str:
        waiting, lanes = len(view.waiting), lookout.lanes
        if lanes.draining:
            return wording.waiting_restart(waiting)
        if view.paused:
            here, everywhere = Hold.LANE in view.paused, Hold.ALL in view.paused
            if view.engine_pause is not None and not (here or everywhere):
                engine, now = view.facts.engine, self._clock.now()
                return engine_words.waiting(
                    waiting, engine, view.engine_pause, now, self.zone, timeless=timeless
                )
            if Hold.ENGINE not in view.paused and not (here or everywhere):
                now = self._clock.now()
                until = budget_words.next_day(now, self.zone)
                return budget_words.waiting(
                    waiting,
                    until,
                    until if timeless else now,
                    self.zone,
                    all_spent=Hold.ALL_SPENT in view.paused,
                )
            return wording.waiting_paused(waiting, here=here, everywhere=everywhere)
        if view.main is not None:
            since = None if timeless else lookout.since(view.main.id)
            ms = self._clock.now() - since if since else 0
            asking = view.phase is Phase.ASKING
            return wording.waiting_behind(waiting, view.main.label, ms, asking)
        if lanes.running >= lanes.limits.running:
            return wording.waiting_slot(waiting, lanes.running, view.place)
        person = view.waiting[0].person
        if lanes.running_for(person) >= lanes.limits.per_person:
            return wording.waiting_person(waiting, lanes.limits.per_person)
        return wording.waiting_folder(waiting)

    def _buttons(
        self, lane: str, view: LaneView, lookout: Lookout
    ) -> tuple[Keyboard, tuple[Row, ...]]:
        return self._showing.buttons(lane, self._choices(view, lookout))

    def _choices(self, view: LaneView, lookout: Lookout) -> list[Choice]:
        """What can be done now about what waits: nothing beside or into what does not run."""
        able = lookout.abilities(view.facts.engine)
        wanted: list[Choice] = []
        if able.side and view.main is not None and not view.paused:
            wanted.append(Choice("Answer on the side", Action.SIDE))
        if able.steer and view.phase is Phase.RUNNING:
            wanted.append(Choice("Hand to the running turn", Action.STEER))
        wanted.append(Choice("Drop", Action.DROP, style=Style.DANGER))
        return wanted
