"""The cards of a question: one in the lane that asks, and a copy for each admin who is elsewhere.

Where no admin takes part, nobody could decide: so every admin whose direct chat is known is shown
the question there, once. This file makes cards and closes them; it must not know what is
decided, nor keep which questions are open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from core import cards
from core.attending import begun
from core.channel import Channel
from core.lane_ids import LOCAL
from core.messages import Part, Style
from core.people import People, Role
from core.showing import Action, Choice, Showing
from core.store import reads, rows
from core.store.records import (
    ApprovalRow,
    ApprovalState,
    Delivery,
    DeliveryKind,
    FilePart,
    LaneRow,
    revises,
)
from core.store.rows import Row
from core.store.store import Store
from core.turns import Turn
from core.wording import plain

log = logging.getLogger("laneway.approvals")

ALLOW, ALWAYS, DENY = "allow", "always", "deny"
LOOKED_AT = 200  # turns of a lane, newest first; who wrote in none of them takes no part
UNREADABLE = "it could not be shown in full"
NOT_WHOLE = "⛔ It could not be shown in full here. Decide it in its thread"


@dataclass(frozen=True, slots=True)
class Card:
    """One message with the buttons. ``before``: the file that has to be read first, if any."""

    message: Delivery
    before: tuple[Delivery, ...] = ()

    @property
    def lane(self) -> str:
        return self.message.lane

    def needs(self, delivery: int) -> bool:
        """Whether the question is not shown in full without this delivery."""
        return delivery == self.message.id or any(one.id == delivery for one in self.before)

    def found(self, message_id: str) -> Card:
        """Once its message is known, which it is not where its sending was uncertain."""
        if not message_id or self.message.message_id:
            return self
        return replace(self, message=replace(self.message, message_id=message_id))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question is shown with."""

    card: Card
    copies: tuple[Card, ...] = ()
    file: Path | None = None  # the command, where it did not fit on a card
    meanings: tuple[Row, ...] = ()  # of the buttons

    @property
    def deliveries(self) -> list[Delivery]:
        shown = (self.card, *self.copies)
        return [delivery for card in shown for delivery in (*card.before, card.message)]


@dataclass(slots=True)
class _Making:
    """The parts of one question's cards, as they come together."""

    row: ApprovalRow
    question: cards.Question
    file: Path | None = None
    meanings: list[Row] = field(default_factory=list)


class Asking:
    """``starter``: who began a turn may decide as well."""

    def __init__(
        self,
        store: Store,
        channel_of: Callable[[str], Channel],
        showing: Showing,
        new_id: Callable[[], str],
        people: People,
        starter: bool,
        spilled: Path,
    ) -> None:
        self._store = store
        self._channel_of = channel_of
        self._showing = showing
        self._new_id = new_id
        self._people = people
        self.starter = starter
        self._spilled = spilled  # folder for commands that do not fit on a card

    async def sweep(self) -> None:
        """Files of commands that an earlier process showed are needed by nobody."""
        try:
            await asyncio.to_thread(cards.sweep, self._spilled)
        except OSError as fault:
            log.warning("files of old approvals stay in %s: %s", self._spilled, fault.strerror)

    async def ask(self, row: ApprovalRow, turn: Turn) -> Asked:
        """All cards of a question; nothing is sent or stored yet. OSError: see ``cards.spill``."""
        making = _Making(row, cards.question(row.tool, row.command))
        card = await self._card(making, row.lane, row.turn)
        copies = []
        place = await reads.lane(self._store, row.lane)
        if place is not None and await self._needs_admin(turn, place):
            heading = cards.elsewhere(
                place.title,
                place.address.place,
                self._people.name(place.person or turn.person) if place.direct else "",
                turn.label,
                self._people.name(turn.person),
            )
            for lane in await self._direct_chats(row):
                copies.append(await self._card(making, lane, None, heading))
        return Asked(card, tuple(copies), making.file, tuple(making.meanings))

    def closed(self, card: Delivery, result: str) -> list[Delivery]:
        """The card as it stays: the command, what was decided and by whom, and no buttons."""
        part = card.part
        assert isinstance(part, Part), "the card itself is text; only what precedes it is a file"
        said = self._channel_of(card.lane).render(result)[0]
        text = Part(f"{part.text}\n\n{said.text}", part.markup)
        target = card.message_id or revises(card.id)
        kind = DeliveryKind.CARD
        return [self._showing.one(card.lane, text, kind, turn=card.turn, target=target)]

    def all_closed(self, shown: Iterable[Card], result: str) -> list[Delivery]:
        return [one for card in shown for one in self.closed(card.message, result)]

    def result(self, state: ApprovalState, by: str, always: bool = False, why: str = "") -> str:
        """What a card says once nobody can press it any more."""
        who = f" by {plain(self._people.name(by))}" if by else ""
        denied = f"⛔ Denied{who}" if by else f"⛔ Denied: {why or UNREADABLE}"
        return {
            ApprovalState.ALLOWED: f"✅ Allowed{' always here' if always else ''}{who}",
            ApprovalState.DENIED: denied,
            ApprovalState.EXPIRED: "⌛ Expired; the answer was no",
            ApprovalState.CANCELLED: "🚫 Cancelled; nothing was run",
            ApprovalState.ASKED: "",
        }[state]

    async def stored(self, row: ApprovalRow) -> list[Delivery]:
        """The cards of a question as the store has them: the lane's own, then its copies."""
        own = await reads.delivery(self._store, row.delivery) if row.delivery else None
        copies = await reads.approval_copies(self._store, row.id)
        found = (*([own] if own else ()), *copies)
        return [card for card in found if isinstance(card.part, Part) and self.set_up(card.lane)]

    def set_up(self, lane: str) -> bool:
        """Whether the channel of this lane is there."""
        try:
            self._channel_of(lane)
        except KeyError:
            return False
        return True

    # Inside -------------------------------------------------------------------------------

    async def _card(self, making: _Making, lane: str, turn: int | None, heading: str = "") -> Card:
        """A card, and before it the whole command as a file where it does not fit."""
        row, question = making.row, making.question
        render = self._channel_of(lane).render
        parts: list[Part | FilePart] = []
        text = heading + question.on_card() if len(question.command) <= cards.ON_CARD else ""
        if not text or len(render(f"{text}\n{'x' * cards.LAST_WORDS}")) > 1:
            if making.file is None:
                name = f"{row.turn}-{self._new_id()}.txt"
                making.file = await asyncio.to_thread(
                    cards.spill, self._spilled, name, question.command
                )
            parts.append(FilePart(str(making.file), "command.txt"))
            text = heading + question.in_file()
        parts.append(render(text)[0])
        keyboard, meanings = self._showing.buttons(lane, _choices(row))
        making.meanings += meanings
        kind = DeliveryKind.CARD
        shown = self._showing.parts(lane, parts, kind, turn=turn, keyboard=keyboard)
        return Card(shown[-1], tuple(shown[:-1]))

    async def _needs_admin(self, turn: Turn, place: LaneRow) -> bool:
        """Whether only an admin may decide, and none takes part in the lane."""
        if self.starter and (await begun(self._store, turn)).starter:
            return False
        here = {place.person, *await reads.people_of_lane(self._store, place.id, LOOKED_AT)}
        # Those who only have a mailbox are admins too.
        return not any(self._people.role(one) is Role.ADMIN for one in here)

    async def _direct_chats(self, row: ApprovalRow) -> list[str]:
        """The lanes of the admins' direct chats. A terminal is none: often nobody sits there."""
        found = []
        for admin in self._people.admins():
            channel = admin.partition(":")[0]
            lane = await reads.lane_direct(self._store, channel, admin)
            if lane is not None and channel != LOCAL and self.set_up(lane.id):
                found.append(lane.id)
        if not found:
            log.warning(
                "approval %d: no admin takes part in %s, and of none the direct chat is known; "
                "an admin who writes to the bot once is asked there",
                row.id,
                row.lane,
            )
        return found


def copied(row: ApprovalRow, copies: Iterable[Card]) -> list[Row]:
    """What stores which cards are copies."""
    return [rows.approval_copy(row.id, card.message.id) for card in copies]


def _choices(row: ApprovalRow) -> list[Choice]:
    offered: Mapping[str, tuple[str, Style]] = {
        ALLOW: ("Allow", Style.SUCCESS),
        ALWAYS: ("Always here", Style.PLAIN),
        DENY: ("Deny", Style.DANGER),
    }
    return [
        Choice(word, Action.APPROVAL, {"of": row.id, "choice": choice}, row.turn, style)
        for choice, (word, style) in offered.items()
    ]
