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
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from core import turns
from core.channel import Channel, SendError
from core.clock import Clock
from core.engines.base import ApprovalAsked, Decision
from core.engines.base import Approvals as Mode
from core.items import Item, Take
from core.messages import Button, Part, Style
from core.store import reads, rows
from core.store.records import (
    ApprovalRow,
    ApprovalState,
    ButtonRow,
    Delivery,
    DeliveryKind,
    FilePart,
    RuleRow,
    revises,
)
from core.store.store import Store
from core.turns import Turn
from core.wording import label, plain

log = logging.getLogger("laneway.approvals")

ACTION = "approval"  # of the card's buttons
ALLOW, ALWAYS, DENY = "allow", "always", "deny"
TITLE = 80  # characters of what the engine calls its question
LAST_WORDS = 250  # characters a card keeps free for what was decided, and by whom
Decided = Callable[[Decision], None]


@dataclass(slots=True)
class _Open:
    row: ApprovalRow
    engine: str
    card: Delivery
    shown_by: frozenset[int]  # deliveries without which the question is not shown in full
    decided: Decided
    timer: asyncio.Task[None] | None = None


def command_hash(engine: str, tool: str, command: str) -> str:
    """What an approval is bound to: any change of engine, tool or command is another question."""
    return hashlib.sha256("\0".join((engine, tool, command)).encode()).hexdigest()


class Approvals:
    """All open questions of all turns."""

    def __init__(
        self,
        store: Store,
        channel_of: Callable[[str], Channel],
        clock: Clock,
        new_id: Callable[[], str],
        names: Callable[[str], str],
        patience: float,
        patience_unattended: float,
        spilled: Path,
    ) -> None:
        self._store = store
        self._channel_of = channel_of
        self._clock = clock
        self._new_id = new_id
        self._names = names
        self._patience = patience
        self._patience_unattended = patience_unattended
        self._spilled = spilled  # folder for commands that do not fit on a card
        self._open: dict[int, _Open] = {}
        self._take: Take | None = None
        self._group: asyncio.TaskGroup | None = None

    async def begin(self, group: asyncio.TaskGroup, take: Take) -> None:
        """Before the first turn runs: the way in, and the group of the timers.

        Questions of an earlier process are settled: the engine that asked is gone.
        """
        self._group, self._take = group, take
        for left in await reads.approvals_open(self._store):
            await self._close_left(left)

    async def ask(
        self, turn: Turn, engine: str, mode: Mode, asked: ApprovalAsked, decided: Decided
    ) -> None:
        """Answer by mode or rule, or show a card; ``decided`` is called once, in the end."""
        code = command_hash(engine, asked.tool, asked.command)
        attended = not turn.origin.job
        if mode is Mode.FULL or (mode is Mode.AUTO and asked.safe and attended):
            decided(Decision.ALLOW)
            return
        rules = await reads.always_rules(self._store)
        if any(rule.lane == turn.lane and rule.hash == code for rule in rules):
            log.info("turn %d: allowed by a rule of the lane", turn.id)
            decided(Decision.ALLOW)
            return
        await self._show(turn, engine, code, asked, decided)

    async def decide(
        self, approval: int, choice: str, person: str, may: bool, admin: bool, message_id: str = ""
    ) -> str:
        """A press on a card; returns what the person who pressed is told, and nobody else.

        ``message_id`` is the card's, which is not known yet where its sending was uncertain.
        """
        entry = self._open.get(approval)
        if not may or (choice == ALWAYS and not admin):
            who = "an admin" if choice == ALWAYS else "one of the approvers"
            return f"Only {who} can press this. Nothing was changed."
        if entry is None:
            return await self._too_late(approval, message_id)
        self._found(entry, message_id)
        if entry.row.expires_at <= self._clock.now():
            await self._settle(approval, ApprovalState.EXPIRED, "")
            return "Expired: the time to decide is over, and the answer was no."
        state = ApprovalState.DENIED if choice == DENY else ApprovalState.ALLOWED
        if not await self._settle(approval, state, person, always=choice == ALWAYS):
            return await self._too_late(approval, message_id)
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

    def unshown(self, delivery: Delivery, error: SendError) -> None:
        """A card, or the file before it, cannot be shown: what nobody can read is not allowed."""
        for entry in list(self._open.values()):
            if delivery.id in entry.shown_by and self._group:
                log.warning("approval %d cannot be shown, so it is denied: %s", entry.row.id, error)
                denial = self._settle(entry.row.id, ApprovalState.DENIED, "")
                self._group.create_task(denial, name=f"denial of approval {entry.row.id}")

    def open_of(self, turn: int) -> list[ApprovalRow]:
        return [entry.row for entry in self._open.values() if entry.row.turn == turn]

    # Inside -------------------------------------------------------------------------------

    async def _show(
        self, turn: Turn, engine: str, code: str, asked: ApprovalAsked, decided: Decided
    ) -> None:
        now = self._clock.now()
        patience = self._patience_unattended if turn.origin.job else self._patience
        cards = self._cards(turn, asked)
        ids = self._store.ids
        row = ApprovalRow(
            id=ids.approval(),
            lane=turn.lane,
            turn=turn.id,
            engine_ref=asked.id,
            tool=asked.tool,
            command=asked.command,
            hash=code,
            asked_at=now,
            expires_at=now + round(patience * 1000),
            delivery=cards[-1].id,
        )
        buttons = [
            ButtonRow(
                self._new_id(), turn.lane, turn.id, ACTION, {"of": row.id, "choice": choice}, now
            )
            for choice in (ALLOW, ALWAYS, DENY)
        ]
        keyboard = tuple(
            Button(button.id, label, style)
            for button, label, style in zip(
                buttons,
                ("Allow", "Always here", "Deny"),
                (Style.SUCCESS, Style.PLAIN, Style.DANGER),
                strict=True,
            )
        )
        card = replace(cards[-1], keyboard=(keyboard,))
        deliveries = [*cards[:-1], card]
        shown_by = frozenset(delivery.id for delivery in deliveries)
        entry = self._open[row.id] = _Open(row, engine, card, shown_by, decided)
        if self._group:
            entry.timer = self._group.create_task(
                self._expire(row), name=f"patience of approval {row.id}"
            )
        written = [rows.approval(row), *(rows.button(button) for button in buttons)]
        event = turns.Asked(turn.id, turn.lane)
        await self._taking()(Item(event=event, rows=written, deliveries=deliveries))

    def _cards(self, turn: Turn, asked: ApprovalAsked) -> list[Delivery]:
        """The card, and before it the whole command as a file where it does not fit."""
        fence = "`" * max(3, _longest_run(asked.command, "`") + 1)
        text = f"{_heading(asked)}\n{fence}\n{asked.command}\n{fence}"
        render = self._channel_of(turn.lane).render
        now, ids = self._clock.now(), self._store.ids
        made: list[Delivery] = []
        if len(render(f"{text}\n{'x' * LAST_WORDS}")) > 1:
            self._spilled.mkdir(mode=0o700, exist_ok=True)
            path = self._spilled / f"{turn.id}-{self._new_id()}.txt"
            path.write_text(asked.command, encoding="utf-8", errors="backslashreplace")
            whole = FilePart(str(path), "command.txt")
            made.append(
                Delivery(
                    ids.delivery(), turn.lane, turn.id, DeliveryKind.CARD, whole, created_at=now
                )
            )
            lines = asked.command.count("\n") + 1
            text = (
                f"{_heading(asked)}\nIt stands whole in the file above ({lines} lines, "
                f"{len(asked.command)} characters). Read it before you allow it."
            )
        parts = render(text)
        made.append(
            Delivery(
                ids.delivery(), turn.lane, turn.id, DeliveryKind.CARD, parts[0], created_at=now
            )
        )
        return made

    async def _settle(
        self, approval: int, state: ApprovalState, by: str, *, always: bool = False
    ) -> bool:
        """Store the decision and close the card, then tell the engine. False: it was settled."""
        entry = self._open.pop(approval, None)
        if entry is None:
            return False
        if entry.timer and entry.timer is not asyncio.current_task():
            entry.timer.cancel()
        now = self._clock.now()
        row = entry.row
        written = [rows.approval_state(row.id, state, now, by)]
        if always:
            rule = RuleRow(
                self._store.ids.rule(), row.lane, entry.engine, row.tool, row.command,
                row.hash, now, by,
            )  # fmt: skip
            written.append(rows.always_rule(rule))
        log.info("approval %d of turn %d: %s by %s", row.id, row.turn, state.value, by or "-")
        closed = self._closed_card(row, entry.card, state, by, always)
        await self._taking()(
            Item(event=turns.Answered(row.turn, row.lane), rows=written, deliveries=closed)
        )
        entry.decided(
            {
                ApprovalState.ALLOWED: Decision.ALLOW,
                ApprovalState.CANCELLED: Decision.CANCEL,
            }.get(state, Decision.DENY)
        )
        return True

    def _closed_card(
        self, row: ApprovalRow, card: Delivery, state: ApprovalState, by: str, always: bool
    ) -> list[Delivery]:
        """The card as it stays: the command, what was decided and by whom, and no buttons."""
        who = f" by {plain(self._names(by))}" if by else ""
        denied = f"⛔ Denied{who}" if by else "⛔ Denied: it could not be shown in full"
        word = {
            ApprovalState.ALLOWED: f"✅ Allowed{' always here' if always else ''}{who}",
            ApprovalState.DENIED: denied,
            ApprovalState.EXPIRED: "⌛ Expired; the answer was no",
            ApprovalState.CANCELLED: "🚫 Cancelled; nothing was run",
            ApprovalState.ASKED: "",
        }[state]
        part = card.part
        assert isinstance(part, Part), "the card itself is text; only what precedes it is a file"
        said = self._channel_of(row.lane).render(word)[0]
        text = Part(f"{part.text}\n\n{said.text}", part.markup)
        return [
            Delivery(
                self._store.ids.delivery(), row.lane, row.turn, DeliveryKind.CARD, text,
                target=card.message_id or revises(card.id), created_at=self._clock.now(),
            )
        ]  # fmt: skip

    async def _close_again(self, row: ApprovalRow, message_id: str) -> None:
        """Somebody pressed a card that still has buttons because we did not know its message."""
        card = await reads.delivery(self._store, row.delivery) if row.delivery else None
        if message_id and card is not None and not card.message_id and isinstance(card.part, Part):
            here = replace(card, message_id=message_id)
            closed = self._closed_card(row, here, row.state, row.decided_by, False)
            await self._taking()(Item(f"card:{row.id}", deliveries=closed))

    async def _close_left(self, left: ApprovalRow) -> None:
        """The engine that asked is gone; its question can only expire."""
        now = self._clock.now()
        deliveries: list[Delivery] = []
        if left.delivery is not None:
            card = await reads.delivery(self._store, left.delivery)
            if card is not None and isinstance(card.part, Part):
                deliveries = self._closed_card(left, card, ApprovalState.EXPIRED, "", False)
        row = rows.approval_state(left.id, ApprovalState.EXPIRED, now)
        await self._taking()(Item(rows=[row], deliveries=deliveries))

    def _found(self, entry: _Open, message_id: str) -> None:
        if message_id and not entry.card.message_id:
            entry.card = replace(entry.card, message_id=message_id)

    async def _too_late(self, approval: int, message_id: str) -> str:
        row = await reads.approval(self._store, approval)
        if row is not None and row.state is not ApprovalState.ASKED:
            await self._close_again(row, message_id)
        if row is None or row.state is ApprovalState.EXPIRED:
            return "Expired: nothing can be decided here any more, and nothing was run."
        if row.state is ApprovalState.CANCELLED:
            return "Cancelled: the turn that asked is over."
        by = f" by {self._names(row.decided_by)}" if row.decided_by else ""
        return f"Already decided: {row.state.value}{by}."

    async def _expire(self, row: ApprovalRow) -> None:
        """Wait for the wall clock, which may jump, and settle the question if it is still open."""
        while (left := row.expires_at - self._clock.now()) > 0:
            await self._clock.sleep(left / 1000)
        await self._settle(row.id, ApprovalState.EXPIRED, "")

    def _taking(self) -> Take:
        assert self._take is not None, "begin comes before the first turn"
        return self._take


def _heading(asked: ApprovalAsked) -> str:
    """What the engine calls its question, unless that is the command once more."""
    title = label(asked.tool, TITLE)
    if not title or title == label(asked.command, TITLE):
        return "The agent asks to run this:"
    return f"The agent asks for permission: **{plain(title)}**"


def _longest_run(text: str, char: str) -> int:
    return max((len(list(run)) for one, run in groupby(text) if one == char), default=0)
