"""What the thread is shown for what the lane rules decided: notices, endings, receipts.

It makes deliveries (and the buttons on them) inside the step that decided, so that what a person
is told is stored with what it tells. It must not know platforms; channels render, the outbox sends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core import inside, lane_words, wording
from core.channel import Channel
from core.folders import shown_name
from core.items import Said
from core.lane_commands import Command, News, Refuse, Tell
from core.messages import Keyboard, Part, Receipt, Style
from core.outbox import Outbox
from core.showing import Action, Choice, Showing
from core.store.records import Delivery, DeliveryKind, FilePart
from core.store.rows import Row
from core.turns import Kind, Result, Status, Turn

log = logging.getLogger("laneway.turn")

# The button below a notice, by its news.
OFFERED = {
    News.INTERRUPTED: (Action.CONTINUE, "Continue"),
    News.GIVEN_UP: (Action.RERUN, "Run again"),
    News.SIDE_CUT_OFF: (Action.RERUN, "Ask again"),
    News.STEER_UNCERTAIN: (Action.RERUN, "Send again"),
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


RENDERED_AT_ONCE = 4_000  # characters; longer texts are rendered in a thread


def _kind(news: News) -> DeliveryKind:
    if news in ANSWERS:
        return DeliveryKind.COMMAND
    # It is all that such a turn will ever answer: it takes the place of a preview.
    return DeliveryKind.ANSWER if news is News.GIVEN_UP else DeliveryKind.NOTICE


Closing = Callable[[Turn], Said]


@dataclass(frozen=True, slots=True)
class Remains:
    """What a turn leaves to be shown. ``shown``: a preview is there that must not stay as it is."""

    text: str
    error: str = ""
    shown: bool = False
    whole: Path | None = None  # all of it, when the text is only its beginning
    files: bool = False  # it sent some, so it was not without a word
    again: bool = True  # sending it again may help; else the error says what does
    besides: str = ""  # Markdown that a failure's notice ends with


class Telling:
    """Words and buttons for steps; knows every channel only by its lanes."""

    def __init__(
        self,
        showing: Showing,
        channel_of: Callable[[str], Channel],
        outbox: Outbox,
        names: wording.Names,
        queue_limit: int,
        receipts: bool,
        private: Sequence[Path] = (),
    ) -> None:
        """``private``: files and folders of the gateway that never leave, links resolved."""
        self._showing = showing
        self._channel_of = channel_of
        self._outbox = outbox
        self._names = names
        self._queue_limit = queue_limit
        self._receipts = receipts
        self._private = tuple(private)

    def renew(self, queue_limit: int, receipts: bool) -> None:
        """Go by these from now on."""
        self._queue_limit, self._receipts = queue_limit, receipts

    # Inside a step ------------------------------------------------------------------------

    def of(
        self,
        commands: Iterable[Command],
        closed: int | None = None,
        goes_on: Collection[int] = (),
        told: Collection[int] = (),
    ) -> Said:
        """The notices of one step. ``closed``: a turn whose own ending says why it ended.

        ``goes_on``: turns that were cut off and are continued without being asked. ``told``: turns
        of whose end is said elsewhere what there is to say.
        """
        deliveries: list[Delivery] = []
        written: list[Row] = []
        for command in commands:
            match command:
                case Tell(News.ENDED, _, turn) if turn and (turn.id == closed or turn.id in told):
                    continue
                case Tell(_, lane, turn) if turn is not None and turn.id in goes_on:
                    deliveries += self._notice(lane, turn, wording.goes_on(turn.label))
                case Tell(news, lane, turn):
                    keyboard, buttons = self._buttons(news, lane, turn)
                    text = lane_words.tell(command, self._names)
                    deliveries += self._notice(lane, turn, text, keyboard, _kind(news))
                    written += buttons
                case Refuse():
                    said = self._refused(command)
                    deliveries += said.deliveries
                    written += said.rows
                case _:
                    pass
        return Said(deliveries, written)

    async def closing(self, turn: Turn, result: Result, remains: Remains) -> Closing:
        """The visible end of a turn, for the step in which the rules say how it ended.

        Rendering a long answer takes a while, so it is done before that step and beside the loop,
        once for each end that is still possible.
        """
        ends = [Status.DONE] if result is Result.DONE else [Status.FAILED, Status.STOPPED]
        possible = [replace(turn, status=status) for status in ends]
        texts = {self._ending(over, remains) for over in possible} - {""}
        channel = self._channel_of(turn.lane)
        parts: dict[str, list[Part]] = {}
        for text in texts:
            beside = len(text) > RENDERED_AT_ONCE
            parts[text] = await asyncio.to_thread(channel.render, text) if beside else []

        def closing(over: Turn) -> Said:
            text = self._ending(over, remains)
            if not text.strip():
                return Said()
            rendered = parts.get(text) or channel.render(text)
            shown = self._showing.parts(over.lane, rendered, DeliveryKind.ANSWER, turn=over.id)
            return Said([*shown, *self._whole(over, remains)])

        return closing

    def _whole(self, turn: Turn, remains: Remains) -> list[Delivery]:
        """The file with all of an answer that is too long to show."""
        if remains.whole is None:
            return []
        file = FilePart(str(remains.whole), f"answer-{turn.id}.md")
        return [self._showing.one(turn.lane, file, DeliveryKind.FILE, turn=turn.id)]

    def _ending(self, turn: Turn, remains: Remains) -> str:
        answer, error = remains.text, remains.error
        if remains.whole is not None:
            answer = wording.cut_short(answer)
        match turn.status:
            case Status.DONE:
                said = answer.strip() or remains.files
                return answer if said else wording.EMPTY_ANSWER
            case Status.FAILED:
                failed = wording.failed(turn.label, error, again=remains.again)
                failed = f"{failed} {remains.besides}".rstrip()
                return f"{wording.unfinished(answer)}\n\n{failed}" if answer.strip() else failed
            case _:
                # Who stopped it and what comes next is told in a notice of its own.
                return wording.unfinished(answer) if answer.strip() or remains.shown else ""

    def note(self, turn: Turn, markdown: str) -> Said:
        """A notice about this turn, in its thread."""
        return Said(self._notice(turn.lane, turn, markdown))

    def remark(self, lane: str, markdown: str) -> Said:
        """A notice about no turn in particular."""
        return Said(self._notice(lane, None, markdown))

    def _notice(
        self,
        lane: str,
        turn: Turn | None,
        markdown: str,
        keyboard: Keyboard = (),
        kind: DeliveryKind = DeliveryKind.NOTICE,
    ) -> list[Delivery]:
        about = turn.id if turn else None
        return self._showing.text(lane, markdown, kind, turn=about, keyboard=keyboard)

    def _buttons(self, news: News, lane: str, turn: Turn | None) -> tuple[Keyboard, Sequence[Row]]:
        offered = OFFERED.get(news)
        if offered is None or turn is None:
            return (), ()
        if news is News.INTERRUPTED and turn.kind is not Kind.MAIN:
            return (), ()
        action, words = offered
        return self._showing.buttons(lane, (Choice(words, action, turn=turn.id),))

    def _refused(self, command: Refuse) -> Said:
        """A question that was refused on the side can still be asked in the queue."""
        turn = command.turn
        queue = (Choice("Queue it", Action.QUEUE, turn=turn.id),)
        aside = turn.kind is Kind.SIDE
        keyboard, buttons = self._showing.buttons(turn.lane, queue if aside else ())
        text = lane_words.refuse(command, self._queue_limit)
        return Said(self._notice(turn.lane, turn, text, keyboard), buttons)

    def stop_button(self, turn: Turn) -> tuple[Keyboard, list[Row]]:
        """What stands below a preview; it ends this turn and no later one."""
        limits = self._channel_of(turn.lane).limits
        if not (limits.buttons and limits.stop_button):
            return (), []
        stop = Choice("Stop", Action.STOP, turn=turn.id, style=Style.DANGER)
        keyboard, buttons = self._showing.buttons(turn.lane, (stop,))
        return keyboard, list(buttons)

    def closed_preview(self, turn: Turn, preview: Delivery) -> list[Delivery]:
        """What a crash left on the screen, marked as unfinished."""
        text = preview.part.text if isinstance(preview.part, Part) else ""
        body = wording.unfinished(text)
        part = self._channel_of(turn.lane).render(body)[-1]
        return [
            self._showing.one(
                turn.lane, part, DeliveryKind.ANSWER, turn=turn.id, target=preview.message_id
            )
        ]

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

    async def file(self, turn: Turn, folder: Path, path: Path, name: str, into: Path) -> Said:
        """A file of the agent, if it is a regular one inside the turn's workspace.

        What goes out is a copy made at the check: the agent may be exchanging the file meanwhile.
        """
        most = self._channel_of(turn.lane).limits.file_out
        name = shown_name(name)
        try:
            copy = await asyncio.to_thread(inside.take_out, folder, path, into, most, self._private)
        except inside.NotInside:
            log.warning("turn %d: a file outside of the workspace was not sent", turn.id)
            return Said(self._notice(turn.lane, turn, wording.not_sent(name)))
        except inside.Empty:
            return Said(self._notice(turn.lane, turn, wording.empty_file(name)))
        except inside.TooLarge:
            return Said(self._notice(turn.lane, turn, wording.too_big_to_send(name, most)))
        except OSError as fault:
            log.warning("turn %d: a file could not be copied to be sent: %s", turn.id, fault)
            reason = fault.strerror or "the disk refused it"
            return Said(self._notice(turn.lane, turn, wording.not_copied(name, reason)))
        file = FilePart(str(copy), name)
        return Said([self._showing.one(turn.lane, file, DeliveryKind.FILE, turn=turn.id)])
