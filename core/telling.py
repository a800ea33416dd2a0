"""What the thread is shown for what the lane rules decided: notices, endings, receipts.

It makes deliveries (and the buttons on them) inside the step that decided, so that what a person
is told is stored with what it tells. It must not know platforms; channels render, the outbox sends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from core import wording
from core.channel import Channel
from core.clock import Clock
from core.items import Said
from core.messages import Button, Keyboard, Part, Receipt, Style
from core.outbox import Outbox
from core.store import rows
from core.store.records import ButtonRow, Delivery, DeliveryKind, FilePart
from core.store.rows import Row
from core.store.store import Ids
from core.turns import Command, Kind, News, Refuse, Status, StopKind, Tell, Turn

log = logging.getLogger("laneway.turn")

# The buttons below a notice, by its news: action and words.
ACTIONS = {
    News.INTERRUPTED: ("continue", "Continue"),
    News.GIVEN_UP: ("rerun", "Run again"),
    News.SIDE_CUT_OFF: ("rerun", "Ask again"),
    News.STEER_UNCERTAIN: ("rerun", "Send again"),
}
# What answers a command goes before everything else, like any command's answer.
ANSWERS = frozenset({News.STOPPED, News.NOTHING, News.DROPPED, News.DENIED})
RECEIPTS = {
    Status.WAITING: Receipt.WAITING,
    Status.STARTING: Receipt.RECEIVED,
    Status.RUNNING: Receipt.RECEIVED,
    Status.FAILED: Receipt.FAILED,
    Status.INTERRUPTED: Receipt.FAILED,
}


def _kind(news: News) -> DeliveryKind:
    if news in ANSWERS:
        return DeliveryKind.COMMAND
    # It is all that such a turn will ever answer: it takes the place of a preview.
    return DeliveryKind.ANSWER if news is News.GIVEN_UP else DeliveryKind.NOTICE


class Telling:
    """Words and buttons for steps; knows every channel only by its lanes."""

    def __init__(
        self,
        ids: Ids,
        channel_of: Callable[[str], Channel],
        outbox: Outbox,
        clock: Clock,
        new_id: Callable[[], str],
        names: wording.Names,
        queue_limit: int,
        receipts: bool,
    ) -> None:
        self._ids = ids
        self._channel_of = channel_of
        self._outbox = outbox
        self._clock = clock
        self._new_id = new_id
        self._names = names
        self._queue_limit = queue_limit
        self._receipts = receipts

    # Inside a step ------------------------------------------------------------------------

    def of(self, commands: Iterable[Command], closed: int | None = None) -> Said:
        """The notices of one step. ``closed``: a turn whose own ending says why it ended."""
        deliveries: list[Delivery] = []
        written: list[Row] = []
        for command in commands:
            match command:
                case Tell(News.ENDED, _, turn) if turn is not None and turn.id == closed:
                    continue
                case Tell(news, lane, turn):
                    keyboard, buttons = self._buttons(news, lane, turn)
                    text = wording.tell(command, self._names)
                    deliveries += self._notice(lane, turn, text, keyboard, _kind(news))
                    written += buttons
                case Refuse(turn):
                    text = wording.refuse(command, self._queue_limit)
                    deliveries += self._notice(turn.lane, turn, text)
                case _:
                    pass
        return Said(deliveries, written)

    def closing(self, turn: Turn, answer: str, error: str, shown: bool) -> Said:
        """The visible end of a turn. ``shown``: there is a preview that must not stay as it is."""
        text = self._ending(turn, answer, error, shown)
        return Said(self._answer(turn, text)) if text else Said()

    def _ending(self, turn: Turn, answer: str, error: str, shown: bool) -> str:
        match turn.status:
            case Status.DONE:
                return answer if answer.strip() else wording.EMPTY_ANSWER
            case Status.FAILED:
                failed = wording.failed(turn.label, self._why(turn, error))
                return f"{wording.unfinished(answer)}\n\n{failed}" if answer.strip() else failed
            case _:
                # Who stopped it and what comes next is told in a notice of its own.
                return wording.unfinished(answer) if answer.strip() or shown else ""

    def _why(self, turn: Turn, error: str) -> str:
        if turn.stop is not None and turn.stop.kind is StopKind.LIMIT:
            return wording.TIME_LIMIT
        return error

    def _answer(self, turn: Turn, markdown: str) -> list[Delivery]:
        parts = self._channel_of(turn.lane).render(markdown)
        now = self._clock.now()
        return [
            Delivery(
                self._ids.delivery(), turn.lane, turn.id, DeliveryKind.ANSWER, part,
                seq=seq, created_at=now,
            )
            for seq, part in enumerate(parts)
        ]  # fmt: skip

    def _notice(
        self,
        lane: str,
        turn: Turn | None,
        markdown: str,
        keyboard: Keyboard = (),
        kind: DeliveryKind = DeliveryKind.NOTICE,
    ) -> list[Delivery]:
        parts = self._channel_of(lane).render(markdown)
        now = self._clock.now()
        last = len(parts) - 1
        return [
            Delivery(
                self._ids.delivery(), lane, turn.id if turn else None, kind, part,
                keyboard=keyboard if seq == last else (), created_at=now,
            )
            for seq, part in enumerate(parts)
        ]  # fmt: skip

    def _buttons(self, news: News, lane: str, turn: Turn | None) -> tuple[Keyboard, list[Row]]:
        action = ACTIONS.get(news)
        if action is None or turn is None:
            return (), []
        if news is News.INTERRUPTED and turn.kind is not Kind.MAIN:
            return (), []
        name, words = action
        button = ButtonRow(self._new_id(), lane, turn.id, name, {}, self._clock.now())
        return ((Button(button.id, words),),), [rows.button(button)]

    def stop_button(self, turn: Turn) -> tuple[Keyboard, list[Row]]:
        """What stands below a preview; it ends this turn and no later one."""
        limits = self._channel_of(turn.lane).limits
        if not (limits.buttons and limits.stop_button):
            return (), []
        button = ButtonRow(self._new_id(), turn.lane, turn.id, "stop", {}, self._clock.now())
        return ((Button(button.id, "Stop", Style.DANGER),),), [rows.button(button)]

    def closed_preview(self, turn: Turn, preview: Delivery) -> list[Delivery]:
        """What a crash left on the screen, marked as unfinished."""
        text = preview.part.text if isinstance(preview.part, Part) else ""
        body = wording.unfinished(text)
        part = self._channel_of(turn.lane).render(body)[-1]
        return [
            Delivery(
                self._ids.delivery(), turn.lane, turn.id, DeliveryKind.ANSWER, part,
                target=preview.message_id, created_at=self._clock.now(),
            )
        ]  # fmt: skip

    # After the commit ---------------------------------------------------------------------

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        if deliveries:
            self._outbox.deliver(deliveries)

    def receipt(self, turn: Turn, message_ids: Sequence[str]) -> None:
        """The reaction on the person's messages that says how far the turn is."""
        if not self._receipts:
            return
        receipt = RECEIPTS.get(turn.status, Receipt.NONE)
        for message_id in message_ids:
            self._outbox.react(turn.lane, message_id, receipt)

    # Files --------------------------------------------------------------------------------

    def file(self, turn: Turn, folder: Path, path: Path, name: str) -> Said:
        """A file of the agent, if it is a regular one inside the turn's workspace."""
        real = path.resolve()
        if not (real.is_file() and real.is_relative_to(folder.resolve())):
            log.warning("turn %d: a file outside of the workspace was not sent", turn.id)
            return Said(self._notice(turn.lane, turn, wording.not_sent(name)))
        size = real.stat().st_size
        most = self._channel_of(turn.lane).limits.file_out
        if size > most:
            return Said(self._notice(turn.lane, turn, wording.too_big_to_send(name, most)))
        delivery = Delivery(
            self._ids.delivery(), turn.lane, turn.id, DeliveryKind.FILE,
            FilePart(str(real), name), created_at=self._clock.now(),
        )  # fmt: skip
        return Said([delivery])
