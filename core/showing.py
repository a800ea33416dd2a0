"""From words and choices to what is sent: deliveries, and buttons with the rows that say what
they mean.

The one place where both are made, for every part of the gateway that says something. It must not
know what is said, nor when; channels render, the outbox sends.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from core.channel import Channel
from core.clock import Clock
from core.messages import Button, Keyboard, Part, Style
from core.store import rows
from core.store.records import ButtonRow, Delivery, DeliveryKind, FilePart
from core.store.rows import Row
from core.store.store import Ids
from core.wording import MORE_IN_THREAD

BUTTONS_IN_ROW = 3
PRIVATE_MOST = 3  # messages that one person is shown for one command


class Action(StrEnum):
    """What a button asks for. The words are stored with buttons that are out there: keep them."""

    STOP = "stop"  # end this turn
    DROP = "drop"  # of the presser's waiting messages the newest; so the next two
    STEER = "steer"
    SIDE = "side"
    CONTINUE = "continue"  # go on with a turn that was cut off
    RERUN = "rerun"  # ask the same once more
    QUEUE = "queue"  # a refused side question as a message that waits
    SET = "set"  # a command with a value
    ALLOW_PLACE = "allow place"
    APPROVAL = "approval"
    CHOSEN = "chosen"  # an answer to what an agent asked


@dataclass(frozen=True, slots=True)
class Choice:
    """A button that is to be shown: what it says and what it asks for."""

    label: str
    action: Action
    data: Mapping[str, object] = field(default_factory=dict)
    turn: int | None = None
    style: Style = Style.PLAIN


def new_id() -> str:
    """An id nobody can guess, short enough for every platform's buttons."""
    return secrets.token_urlsafe(16)


class Showing:
    """Makes deliveries and buttons; nothing is sent or stored by it."""

    def __init__(
        self,
        ids: Ids,
        channel_of: Callable[[str], Channel],
        clock: Clock,
        new_id: Callable[[], str] = new_id,
    ) -> None:
        self._ids = ids
        self._channel_of = channel_of
        self._clock = clock
        self._new_id = new_id

    def text(
        self,
        lane: str,
        markdown: str,
        kind: DeliveryKind = DeliveryKind.NOTICE,
        *,
        turn: int | None = None,
        keyboard: Keyboard = (),
        reply_to: str = "",
        target: str = "",
    ) -> list[Delivery]:
        """Text for a thread, in as many messages as it takes; the keyboard is under the last."""
        return self.parts(
            lane,
            self._channel_of(lane).render(markdown),
            kind,
            turn=turn,
            keyboard=keyboard,
            reply_to=reply_to,
            target=target,
        )

    def parts(
        self,
        lane: str,
        parts: Sequence[Part | FilePart],
        kind: DeliveryKind,
        *,
        turn: int | None = None,
        keyboard: Keyboard = (),
        reply_to: str = "",
        target: str = "",
    ) -> list[Delivery]:
        """The same of what is rendered already, or of files."""
        now, last = self._clock.now(), len(parts) - 1
        return [
            Delivery(
                self._ids.delivery(),
                lane,
                turn,
                kind,
                part,
                seq=seq,
                keyboard=keyboard if seq == last else (),
                reply_to=reply_to if seq == 0 else "",
                target=target if seq == 0 else "",
                created_at=now,
            )
            for seq, part in enumerate(parts)
        ]

    def in_private(self, lane: str, markdown: str) -> tuple[Part, ...]:
        """Text for one person alone, in a few messages at most; then it says that there is more."""
        parts = self._channel_of(lane).render(markdown)
        more = [Part(MORE_IN_THREAD)] if len(parts) > PRIVATE_MOST else []
        return (*parts[:PRIVATE_MOST], *more)

    def one(
        self,
        lane: str,
        part: Part | FilePart,
        kind: DeliveryKind,
        *,
        turn: int | None = None,
        keyboard: Keyboard = (),
        target: str = "",
    ) -> Delivery:
        """One message, whatever its text would come to."""
        return self.parts(lane, (part,), kind, turn=turn, keyboard=keyboard, target=target)[0]

    def buttons(self, lane: str, choices: Sequence[Choice]) -> tuple[Keyboard, tuple[Row, ...]]:
        """Buttons in rows, and what stores their meaning."""
        now = self._clock.now()
        shown: list[Button] = []
        meanings: list[Row] = []
        for choice in choices:
            ident = self._new_id()
            shown.append(Button(ident, choice.label, choice.style))
            meaning = ButtonRow(ident, lane, choice.turn, choice.action.value, choice.data, now)
            meanings.append(rows.button(meaning))
        lines = range(0, len(shown), BUTTONS_IN_ROW)
        return tuple(tuple(shown[at : at + BUTTONS_IN_ROW]) for at in lines), tuple(meanings)
