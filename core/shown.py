"""What is known of the one message that shows a running turn. Plain state; sends nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from core.finding import nonce_of
from core.messages import Keyboard, Part
from core.store.records import Delivery, DeliveryKind
from core.store.rows import Row


class Fate(StrEnum):
    """What became of the message."""

    NONE = "none"  # certainly nothing there
    SHOWN = "shown"
    DOUBT = "doubt"  # it may be there, and the platform can tell
    UNKNOWN = "unknown"  # it may be there, nobody knows under which id
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Growing:
    """All of a turn's text so far, for platforms that can show how it grows."""

    text: str
    person: str = ""  # for whom the turn works


@dataclass(slots=True, eq=False)
class Preview:
    turn: int
    lane: str
    text: str = ""
    footer: str = ""
    keyboard: Keyboard = ()  # below every frame; the answer that takes its place has none
    growing: Growing | None = None
    streamed: bool = False  # its first call was a Stream
    shown: str | None = None  # None: nothing, or not known
    fate: Fate = Fate.NONE
    message_id: str = ""
    row: int = 0  # the delivery that records it
    created_at: int = 0  # of that record; ms
    closed: bool = False
    ended: bool = False  # no further frame will be tried
    stuck: bool = False  # its message is there, and the platform lets nobody change it
    late: bool = False  # an edit may still land although nobody waits for it any more
    waiting: bool = False  # for its turn at the gate, with no call under way
    calling: bool = False
    began: float = 0.0  # when it was first sent
    search: asyncio.Task[None] | None = None  # asks whether it is there
    failures: int = 0
    not_before: float = 0.0
    saved_at: float = 0.0
    saved: str = ""
    place: str = ""  # of the chat it was sent to
    task: asyncio.Task[None] | None = None

    def broke(self, fault: Exception) -> None:
        """No further frame; the answer still finds what is there."""
        self.ended = True

    @property
    def nonce(self) -> str:
        return nonce_of(self.row, self.created_at, preview=True)

    @property
    def frame(self) -> str:
        return "\n\n".join(piece for piece in (self.text, self.footer) if piece)


@dataclass(frozen=True, slots=True)
class Takeover:
    """What an answer finds. ``late``: edit once more, for an edit may still be on its way."""

    message_id: str = ""
    late: bool = False
    rows: tuple[Row, ...] = ()


def removal(delivery: int, lane: str, message_id: str, now: int) -> Delivery:
    """What takes a preview's message away; like any edit it is tried again after a crash."""
    return Delivery(
        delivery, lane, None, DeliveryKind.NOTICE, Part(""), target=message_id, created_at=now
    )
