"""What is known of one delivery while it is tried, and how it can end. Plain state; sends nothing.

It must not know when something is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.channel import Action, Delete, Revise, Send, SendError, SendFile
from core.finding import nonce_of
from core.messages import Address, Keyboard, Part
from core.rates import Rank
from core.store.records import Delivery, DeliveryState, FilePart
from core.store.rows import Row


@dataclass(frozen=True, slots=True)
class Outcome:
    state: DeliveryState
    message_id: str = ""
    error: SendError | None = None


@dataclass(slots=True, eq=False)
class Attempt:
    """What has been learned about a delivery so far."""

    delivery: Delivery
    rank: Callable[[], Rank]
    part: Part | FilePart
    target: str
    began: float
    in_flight: bool = False
    doubt: SendError | None = None  # why an earlier try may have arrived
    ask_at: float = 0.0  # the platform is not asked before
    plain: bool = False
    moved: bool = False
    anew: bool = False  # its message was gone
    lost: str = ""  # the message that was gone
    late: bool = False  # a preview's edit may land after ours
    tries: int = 0
    doubts: int = 0  # tries that may have arrived, and had not
    rows: tuple[Row, ...] = ()  # to be stored with the next mark

    @property
    def edits(self) -> bool:
        return bool(self.target)

    @property
    def deletes(self) -> bool:
        return self.edits and takes_away(self.part, self.delivery.keyboard)

    def without_markup(self) -> None:
        """The platform refused the format."""
        self.plain, part = True, self.part
        if isinstance(part, Part):
            self.part = part.plain()
        else:
            caption = part.caption.plain() if part.caption else None
            self.part = FilePart(part.path, part.name, caption)

    def action(self, address: Address) -> Action:
        """The call that carries it out at this place."""
        delivery, part = self.delivery, self.part
        nonce = nonce_of(delivery.id, delivery.created_at)
        if isinstance(part, FilePart):
            return SendFile(address, Path(part.path), part.name, part.caption, nonce)
        if self.deletes:
            return Delete(address, self.target)
        if self.edits:
            return Revise(address, self.target, part, delivery.keyboard)
        return Send(address, part, delivery.keyboard, delivery.reply_to, nonce)


def takes_away(part: Part | FilePart, keyboard: Keyboard) -> bool:
    """An edit to nothing at all takes the message away."""
    return isinstance(part, Part) and not part.text and not keyboard
