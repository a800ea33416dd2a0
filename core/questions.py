"""Questions that a running agent asks the person it works for: words and a few buttons.

One press answers, once; without one in time nobody answered. The question ends with its turn, and
after a restart a press on it is told that it is over. This file owns the open questions; it must
not know engines or platforms.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core import lane_events
from core.channel import Channel, SendError
from core.clock import Clock
from core.items import Item, Take
from core.messages import Part
from core.showing import Action, Choice, Showing
from core.store.errors import StoreError
from core.store.records import Delivery, DeliveryKind, revises
from core.turns import Turn
from core.wording import plain

log = logging.getLogger("laneway.tools")

OVER = "This question is over. Write a message instead."
NOT_YOURS = "Only the person who was asked, or an admin, can answer this."


@dataclass(slots=True)
class _Open:
    turn: Turn
    options: Sequence[str]
    shown: Sequence[Delivery]  # the last one has the buttons
    chosen: asyncio.Future[str | None]  # None: the turn ended
    by: str = ""


class Questions:
    """All open questions of all turns."""

    def __init__(
        self,
        channel_of: Callable[[str], Channel],
        showing: Showing,
        clock: Clock,
        new_id: Callable[[], str],
        names: Callable[[str], str],
        patience: float,
        patience_unattended: float,
    ) -> None:
        self._channel_of = channel_of
        self._showing = showing
        self._clock = clock
        self._new_id = new_id
        self._names = names
        self._patience = patience
        self._patience_unattended = patience_unattended
        self._open: dict[str, _Open] = {}

    def renew(self, patience: float, patience_unattended: float) -> None:
        """Wait so long from the next question on."""
        self._patience, self._patience_unattended = patience, patience_unattended

    async def ask(
        self,
        turn: Turn,
        question: str,
        options: Sequence[str],
        take: Take,
        *,
        attended: bool = True,
    ) -> str | None:
        """Show it and wait; the option that was chosen, or None when nobody chose in time."""
        ident = self._new_id()
        choices = [
            Choice(option, Action.CHOSEN, {"of": ident, "choice": place}, turn.id)
            for place, option in enumerate(options)
        ]
        keyboard, meanings = self._showing.buttons(turn.lane, choices)
        kind = DeliveryKind.CARD
        shown = self._showing.text(turn.lane, question, kind, turn=turn.id, keyboard=keyboard)
        chosen = asyncio.get_running_loop().create_future()
        entry = self._open[ident] = _Open(turn, options, shown, chosen)
        asked = Item(event=lane_events.Asked(turn.id, turn.lane), rows=meanings, deliveries=shown)
        try:
            await take(asked)  # who does not wait for it any more has asked all the same
            patience = self._patience if attended else self._patience_unattended
            return await self._in_time(chosen, patience)
        finally:
            del self._open[ident]
            await self._close(entry, take)

    def choose(self, ident: str, choice: int, person: str, admin: bool) -> str:
        """A press on a question; returns what the person who pressed is told."""
        entry = self._open.get(ident)
        if entry is None or entry.chosen.done() or not 0 <= choice < len(entry.options):
            return OVER
        if person != entry.turn.person and not admin:
            return NOT_YOURS
        entry.by = person
        entry.chosen.set_result(entry.options[choice])
        return f"You said: {entry.options[choice]}"

    def end(self, turn: int) -> None:
        """The turn is over: nobody needs its answers any more."""
        for entry in self._open.values():
            if entry.turn.id == turn and not entry.chosen.done():
                entry.chosen.set_result(None)

    def unshown(self, delivery: Delivery, error: SendError) -> None:
        """A part of a question cannot be shown, so nobody is going to answer it."""
        for entry in self._open.values():
            shown = any(one.id == delivery.id for one in entry.shown)
            if shown and not entry.chosen.done():
                log.warning("a question of turn %d cannot be shown: %s", entry.turn.id, error)
                entry.chosen.set_result(None)

    async def _in_time(self, chosen: asyncio.Future[str | None], patience: float) -> str | None:
        async with asyncio.TaskGroup() as group:
            wait = group.create_task(self._clock.sleep(patience), name="patience of a question")
            await asyncio.wait((wait, chosen), return_when=asyncio.FIRST_COMPLETED)
            wait.cancel()
        return chosen.result() if chosen.done() else None

    async def _close(self, entry: _Open, take: Take) -> None:
        """The card without buttons, and with the answer; the turn goes on."""
        answer = entry.chosen.result() if entry.chosen.done() else None
        said = "⌛ Nobody answered."
        if answer is not None:
            said = f"➡️ {plain(answer)}, said {plain(self._names(entry.by))}"
        elif entry.chosen.done():
            said = "🚫 No answer is needed any more."
        card, lane = entry.shown[-1], entry.turn.lane
        ending = self._channel_of(lane).render(said)[0]
        before = card.part if isinstance(card.part, Part) else Part("")
        part = Part(f"{before.text}\n\n{ending.text}", before.markup)
        closed = self._showing.one(
            lane, part, DeliveryKind.CARD, turn=entry.turn.id, target=revises(card.id)
        )
        try:
            await take(Item(event=lane_events.Answered(entry.turn.id, lane), deliveries=(closed,)))
        except StoreError as fault:
            log.error("the end of a question was not stored: %s", fault)
