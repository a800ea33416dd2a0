"""Approvals: a question of an engine becomes a row and a card, and one decision settles it.

Nothing is ever allowed by default: without a rule, a mode or a person's press the answer is *deny*.
A decision is stored before the engine hears it; of two presses the first one counts. This file
owns the open questions; it must not know engines, platforms or how a turn runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path

from core import cards, lane_events
from core.asking import ALWAYS, DENY, NOT_WHOLE, Asked, Asking, Card, copied
from core.attending import begun
from core.channel import SendError
from core.clock import Clock
from core.engines.base import ApprovalAsked, Decision
from core.engines.base import Approvals as Mode
from core.folders import resolved
from core.items import Item, Take
from core.lane_ids import channel_of
from core.showing import Showing
from core.stale_cards import StaleCards
from core.store import reads, rows, web
from core.store.errors import StoreError
from core.store.records import (
    ApprovalRow,
    ApprovalState,
    Delivery,
    DeliveryKind,
    RuleRow,
)
from core.store.store import Store
from core.turns import Turn
from core.wording import plain

log = logging.getLogger("laneway.approvals")

OPEN_MOST = 30  # questions of one turn at once; nobody reads more
NOBODY = "nobody could be asked"
NOT_STORED = "⛔ Denied: the decision could not be stored"
Decided = Callable[[Decision], None]


@dataclass(slots=True)
class _Open:
    row: ApprovalRow
    engine: str
    folder: str
    card: Card
    copies: tuple[Card, ...]
    decided: Decided
    file: Path | None = None  # the command, where it did not fit on a card
    timer: asyncio.Task[None] | None = None

    @property
    def cards(self) -> tuple[Card, ...]:
        return (self.card, *self.copies)

    def found(self, lane: str, message_id: str) -> None:
        """Somebody pressed the card in this lane, so its message is known."""
        if self.card.lane == lane:
            self.card = self.card.found(message_id)
        self.copies = tuple(
            copy.found(message_id) if copy.lane == lane else copy for copy in self.copies
        )


class _Outcome(Enum):
    """What became of a decision."""

    STORED = auto()
    LATE = auto()  # there was one before
    LOST = auto()  # the store refused it, so the answer was no


def command_hash(engine: str, tool: str, command: str) -> str:
    """What an approval is bound to: any change of engine, tool or command is another question."""
    return hashlib.sha256("\0".join((engine, tool, command)).encode()).hexdigest()


class Approvals:
    """All open questions of all turns."""

    def __init__(
        self,
        store: Store,
        asking: Asking,
        showing: Showing,
        names: Callable[[str], str],
        clock: Clock,
        patience: float,
        patience_unattended: float,
    ) -> None:
        """``patience``: seconds to decide, with somebody who attends the turn and without."""
        self._store = store
        self._clock = clock
        self._showing = showing
        self._asking = asking
        self._stale = StaleCards(store, asking, names, clock)
        self._patience = patience
        self._patience_unattended = patience_unattended
        self._open: dict[int, _Open] = {}
        self._take: Take | None = None
        self._group: asyncio.TaskGroup | None = None

    def renew(self, starter: bool, patience: float, patience_unattended: float) -> None:
        """Go by these from the next question on."""
        self._asking.starter = starter
        self._patience, self._patience_unattended = patience, patience_unattended

    @property
    def waiting(self) -> int:
        """Questions that nobody has answered yet."""
        return len(self._open)

    def open_in(self, lane: str) -> tuple[Card, ...]:
        """The cards that wait for an answer in this lane, the oldest first; not their copies."""
        return tuple(entry.card for entry in self._open.values() if entry.row.lane == lane)

    async def begin(self, group: asyncio.TaskGroup, take: Take) -> None:
        """Before the first turn runs: the way in, and the group of the timers.

        Questions of an earlier process are settled: the engine that asked is gone.
        """
        self._group, self._take = group, take
        await self._asking.sweep()
        for left in await reads.approvals_open(self._store):
            if self._asking.set_up(left.lane):  # else it is closed once its channel is there again
                await self._taken(await self._stale.expired(left))

    async def settle_left(self, channel: str) -> None:
        """The same for a channel that was set up only now."""
        for left in await reads.approvals_open(self._store):
            if channel_of(left.lane) == channel and left.id not in self._open:
                await self._taken(await self._stale.expired(left))

    async def ask(
        self,
        turn: Turn,
        engine: str,
        mode: Mode,
        workspace: Path,
        asked: ApprovalAsked,
        decided: Decided,
    ) -> None:
        """Answer by mode or rule, or show a card; ``decided`` is called once, in the end.

        A rule holds for the folder it was given for: the same words mean something else in another.
        """
        code = command_hash(engine, asked.tool, asked.command)
        how = await begun(self._store, turn)
        if mode is Mode.FULL or (mode is Mode.AUTO and asked.safe and how.asked):
            decided(Decision.ALLOW)
            return
        folder = str(await asyncio.to_thread(resolved, workspace))
        rules, bound = await reads.always_rules(self._store), (turn.lane, code, folder)
        rule = next((one for one in rules if (one.lane, one.hash, one.folder) == bound), None)
        if rule is not None:
            words = (turn.id, code[: cards.HASH_SHOWN], rule.id, rule.made_by)
            log.info("turn %d: %s allowed by rule %d of %s", *words)
            decided(Decision.ALLOW)
            return
        if sum(entry.row.turn == turn.id for entry in self._open.values()) >= OPEN_MOST:
            log.warning("turn %d: %d questions are open, so the next is denied", turn.id, OPEN_MOST)
            decided(Decision.DENY)
            return
        await self._show(turn, engine, folder, code, asked, decided)

    async def decide(
        self,
        approval: int,
        choice: str,
        person: str,
        may: bool,
        admin: bool,
        lane: str = "",
        message_id: str = "",
    ) -> str:
        """A press on a card; returns what the person who pressed is told, and nobody else.

        ``lane`` is where the pressed card stands and ``message_id`` the card's, which is not known
        yet where its sending was uncertain.
        """
        entry = self._open.get(approval)
        if not may or (choice == ALWAYS and not admin):
            who = "an admin" if choice == ALWAYS else "one of the approvers"
            return f"Only {who} can press this. Nothing was changed."
        if entry is None:
            return await self._too_late(approval, lane, message_id)
        entry.found(lane, message_id)
        if entry.row.expires_at <= self._clock.now():
            await self._settle(approval, ApprovalState.EXPIRED, "")
            return "Expired: the time to decide is over, and the answer was no."
        state = ApprovalState.DENIED if choice == DENY else ApprovalState.ALLOWED
        match await self._settle(approval, state, person, always=choice == ALWAYS):
            case _Outcome.LATE:
                return await self._too_late(approval, lane, message_id)
            case _Outcome.LOST:
                return "That could not be stored, so the answer was no. The gateway's log says why."
            case _Outcome.STORED:
                return "Denied." if choice == DENY else "Allowed."

    async def withdraw(self, turn: int, engine_ref: str) -> None:
        """The engine does not ask any more."""
        for entry in list(self._open.values()):
            if (entry.row.turn, entry.row.engine_ref) == (turn, engine_ref):
                await self._settle(entry.row.id, ApprovalState.CANCELLED, "")

    async def cancel(self, turn: int) -> None:
        """The turn ends: its open questions end with it."""
        for entry in list(self._open.values()):
            if entry.row.turn == turn:
                await self._settle(entry.row.id, ApprovalState.CANCELLED, "")

    async def nobody(self, approval: int) -> None:
        """It was shown where nobody can decide: the answer is no."""
        await self._settle(approval, ApprovalState.DENIED, "", why=NOBODY)

    def unshown(self, delivery: Delivery, error: SendError) -> None:
        """A card, or the file before it, cannot be shown: what nobody can read is not allowed."""
        for entry in list(self._open.values()):
            if self._group is None:
                return
            if entry.card.needs(delivery.id):
                log.warning("approval %d cannot be shown, so it is denied: %s", entry.row.id, error)
                denial = self._deny(entry.row.id)
                self._group.create_task(denial, name=f"denial of approval {entry.row.id}")
            elif copy := next((one for one in entry.copies if one.needs(delivery.id)), None):
                log.warning("approval %d is not shown in %s: %s", entry.row.id, copy.lane, error)
                entry.copies = tuple(one for one in entry.copies if one is not copy)
                closing = self._taken(Item(deliveries=self._asking.all_closed([copy], NOT_WHOLE)))
                self._group.create_task(closing, name=f"end of a copy of {entry.row.id}")

    # Inside -------------------------------------------------------------------------------

    async def _show(
        self,
        turn: Turn,
        engine: str,
        folder: str,
        code: str,
        asked: ApprovalAsked,
        decided: Decided,
    ) -> None:
        now = self._clock.now()
        attended = (await begun(self._store, turn)).starter
        patience = self._patience if attended else self._patience_unattended
        row = ApprovalRow(
            id=self._store.ids.approval(),
            lane=turn.lane,
            turn=turn.id,
            engine_ref=asked.id,
            tool=asked.tool,
            command=asked.command,
            hash=code,
            asked_at=now,
            expires_at=now + round(patience * 1000),
        )
        try:
            asked_with = await self._asking.ask(row, turn)
        except OSError as fault:
            await self._unshowable(row, decided, fault.strerror or "a fault of the disk")
            return
        row = replace(row, delivery=asked_with.card.message.id)
        if not await self._opened(row, engine, folder, asked_with, decided):
            await self._unlink(asked_with.file)
            await self._unshowable(row, decided, "it cannot be stored")
            return
        entry = self._open.get(row.id)
        if self._group and entry is not None:
            entry.timer = self._group.create_task(
                self._expire(row), name=f"patience of approval {row.id}"
            )

    async def _opened(
        self, row: ApprovalRow, engine: str, folder: str, asked: Asked, decided: Decided
    ) -> bool:
        """Store the question with its cards, open from before that; False if it cannot be."""
        entry = _Open(row, engine, folder, asked.card, asked.copies, decided, asked.file)
        self._open[row.id] = entry
        written = [rows.approval(row), *copied(row, asked.copies), *asked.meanings]
        event = lane_events.Asked(row.turn, row.lane)
        if await self._taken(Item(event=event, rows=written, deliveries=asked.deliveries)):
            return True
        self._open.pop(row.id, None)
        return False

    async def _unshowable(self, row: ApprovalRow, decided: Decided, why: str) -> None:
        """Nobody can read the question, so nobody can allow it; the thread is told."""
        log.error("a question of turn %d cannot be shown, so it is denied: %s", row.turn, why)
        words = (
            "The agent asked for permission to run a command that I could not show here "
            f"({plain(why)}), so the answer was no."
        )
        told = self._showing.text(row.lane, words, DeliveryKind.CARD, turn=row.turn)
        await self._taken(Item(deliveries=told))
        decided(Decision.DENY)

    async def _settle(
        self, approval: int, state: ApprovalState, by: str, *, always: bool = False, why: str = ""
    ) -> _Outcome:
        """Store the decision and close the card, then tell the engine. Never raises a fault."""
        entry = self._open.pop(approval, None)
        if entry is None:
            return _Outcome.LATE
        if entry.timer and entry.timer is not asyncio.current_task():
            entry.timer.cancel()
        now = self._clock.now()
        row = entry.row
        written = [rows.approval_state(row.id, state, now, by)]
        if always:
            rule = RuleRow(
                self._store.ids.rule(), row.lane, entry.engine, row.tool, row.command,
                row.hash, entry.folder, now, by,
            )  # fmt: skip
            written.append(rows.always_rule(rule))
        if by:
            word = "approval.always" if always else f"approval.{state.value}"
            detail = f"turn {row.turn}, command {row.hash[: cards.HASH_SHOWN]}"
            written.append(web.act(now, by, word, row.lane, detail))
        log.info(
            "approval %d of turn %d in %s, command %s: %s%s by %s",
            row.id,
            row.turn,
            row.lane,
            row.hash[: cards.HASH_SHOWN],
            state.value,
            " always here" if always else "",
            by or "-",
        )
        closed = self._asking.all_closed(entry.cards, self._asking.result(state, by, always, why))
        event = lane_events.Answered(row.turn, row.lane)
        stored = await self._taken(Item(event=event, rows=written, deliveries=closed))
        if not stored:
            state = ApprovalState.DENIED
            await self._lost(entry)
        entry.decided(
            {
                ApprovalState.ALLOWED: Decision.ALLOW,
                ApprovalState.CANCELLED: Decision.CANCEL,
            }.get(state, Decision.DENY)
        )
        await self._unlink(entry.file)
        return _Outcome.STORED if stored else _Outcome.LOST

    async def _lost(self, entry: _Open) -> None:
        """Nothing is allowed that is not stored: close the question with what can be."""
        row, event = entry.row, lane_events.Answered(entry.row.turn, entry.row.lane)
        denied = rows.approval_state(row.id, ApprovalState.DENIED, self._clock.now())
        closed = self._asking.all_closed(entry.cards, NOT_STORED)
        if not await self._taken(Item(event=event, rows=[denied], deliveries=closed)):
            await self._taken(Item(event=event))

    async def _taken(self, item: Item) -> bool:
        """Commit a step; False when the store set it aside, which costs nothing else."""
        try:
            await self._taking()(item)
        except StoreError as fault:
            log.error("a step of an approval was not stored: %s", fault)
            return False
        return True

    async def _too_late(self, approval: int, lane: str, message_id: str) -> str:
        told, closing = await self._stale.pressed(approval, lane, message_id)
        for item in closing:
            await self._taken(item)
        return told

    async def _expire(self, row: ApprovalRow) -> None:
        """Wait for the wall clock, which may jump, and settle the question if it is still open."""
        while (left := row.expires_at - self._clock.now()) > 0:
            await self._clock.sleep(left / 1000)
        await self._settle(row.id, ApprovalState.EXPIRED, "")

    async def _deny(self, approval: int) -> None:
        await self._settle(approval, ApprovalState.DENIED, "")

    async def _unlink(self, file: Path | None) -> None:
        """What was decided needs no file any more; one that stays goes at the next start."""
        if file is not None:
            with suppress(OSError):
                await asyncio.to_thread(file.unlink, missing_ok=True)

    def _taking(self) -> Take:
        assert self._take is not None, "begin comes before the first turn"
        return self._take
