"""What the store keeps, as it is read: one frozen value for each kind of row.

No SQL and no decisions here. Instants are milliseconds since 1970 (UTC); an instant that has not
come yet is None where the schema says so, and 0 where "never" is as good as "long ago".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from core.channel import Mark
from core.messages import Address, FileRef, Keyboard, Part, Quote
from core.turns import Kind, LaneFacts, Origin, Rank, Status, Stop, StopKind, Turn


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A lane. Empty settings mean: whatever the gateway's setting is."""

    id: str
    address: Address
    direct: bool = False
    title: str = ""
    created_at: int = 0
    engaged_at: int = 0
    listen: str = "all"
    ended_at: int = 0
    epoch: int = 0
    paused: bool = False
    busy: str = ""
    engine: str = ""
    model: str = ""
    effort: str = ""
    approvals: str = ""
    workspace: str = ""
    person: str = ""  # who wrote last
    owner: str = ""  # who began it, of a direct chat

    def facts(self, engine: str, folder: str) -> LaneFacts:
        """What the lane rules look at, with engine and folder as the settings resolve them."""
        return LaneFacts(self.ended_at, self.epoch, self.paused, engine, folder)


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn with its content. ``held``: it came out of a backup and waits for its release."""

    id: int
    lane: str
    kind: Kind
    origin: Origin
    person: str
    label: str
    status: Status
    rank: Rank
    pieces: int
    last_piece: int
    offered_to: int | None
    epoch: int
    attempts: int
    unsent: int
    stop: Stop | None
    of_turn: int | None
    held: bool
    received_at: int
    started_at: int | None
    prompted_at: int | None
    ended_at: int | None
    engine: str
    model: str
    session: str
    answer: str
    error: str
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    pressed_by: str = ""  # who wanted it to go on; "": nobody did

    def turn(self) -> Turn:
        """The part of it that the lane rules look at. Open questions do not outlive a process."""
        return Turn(
            id=self.id,
            lane=self.lane,
            person=self.person,
            origin=self.origin,
            kind=self.kind,
            arrived=self.received_at,
            label=self.label,
            status=self.status,
            rank=self.rank,
            last_piece=self.last_piece,
            pieces=self.pieces,
            offered_to=self.offered_to,
            epoch=self.epoch,
            attempts=self.attempts,
            unsent=self.unsent,
            stop=self.stop,
        )


@dataclass(frozen=True, slots=True)
class MessageRow:
    """Something that was said. ``turn`` is None while it is being gathered."""

    seq: int
    identity: str
    lane: str
    turn: int | None
    person: str
    person_name: str
    message_id: str
    text: str
    at: int
    files: tuple[FileRef, ...] = ()
    quote: Quote | None = None
    album: str = ""


@dataclass(frozen=True, slots=True)
class ThreadMark:
    """The newest accepted message of a thread."""

    address: Address
    direct: bool
    mark: Mark


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a channel was read; ms by the platform's clock.

    ``runs_from``: when a backup was restored; what was sent before may have been answered.
    """

    at: int
    runs_from: int = 0


@dataclass(frozen=True, slots=True)
class SessionRow:
    """An engine's conversation. ``quarantined`` says why it may never be used again."""

    lane: str
    engine: str
    epoch: int
    session: str
    saved_at: int
    quarantined: str = ""


class DeliveryKind(StrEnum):
    ANSWER = "answer"
    NOTICE = "notice"
    WAITING = "waiting"
    COMMAND = "command"
    CARD = "card"
    PREVIEW = "preview"
    FILE = "file"


class DeliveryState(StrEnum):
    """How far a delivery is. ``held`` came out of a backup and waits for its release."""

    PENDING = "pending"
    IN_FLIGHT = "in_flight"
    SENT = "sent"
    UNCERTAIN = "uncertain"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file on this machine as it will be shown."""

    path: str
    name: str
    caption: Part | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message (or edit, when ``target`` is set) that goes out, and what came of it."""

    id: int
    lane: str
    turn: int | None
    kind: DeliveryKind
    part: Part | FilePart
    seq: int = 0
    keyboard: Keyboard = ()
    reply_to: str = ""
    target: str = ""
    message_id: str = ""
    state: DeliveryState = DeliveryState.PENDING
    error: str = ""
    created_at: int = 0
    sent_at: int | None = None


@dataclass(frozen=True, slots=True)
class ButtonRow:
    """What a button of ours means."""

    id: str
    lane: str
    turn: int | None
    action: str
    data: Mapping[str, object] = field(default_factory=dict)
    created_at: int = 0


class ApprovalState(StrEnum):
    ASKED = "asked"
    ALLOWED = "allowed"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class ApprovalRow:
    """A question of an engine. ``hash`` is of engine, tool and command."""

    id: int
    lane: str
    turn: int
    engine_ref: str
    tool: str
    command: str
    hash: str
    asked_at: int
    expires_at: int
    state: ApprovalState = ApprovalState.ASKED
    delivery: int | None = None
    decided_at: int | None = None
    decided_by: str = ""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """An *always here*: exactly this command of this engine and tool, in this lane and folder.

    ``folder``: the workspace it was given for, without links.
    """

    id: int
    lane: str
    engine: str
    tool: str
    command: str
    hash: str
    folder: str
    made_at: int
    made_by: str
    revoked_at: int | None = None


@dataclass(frozen=True, slots=True)
class PersonRow:
    id: str
    name: str = ""
    role: str = ""
    zone: str = ""
    added_at: int = 0
    added_by: str = ""


@dataclass(frozen=True, slots=True)
class PairingRow:
    code: str
    person: str
    name: str
    asked_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class PlaceRow:
    id: str
    title: str
    added_at: int
    added_by: str


@dataclass(frozen=True, slots=True)
class SettingRow:
    name: str
    value: str
    saved_at: int
    saved_by: str


ALL_LANES = "all"  # scopes of pauses: everything, or this and the name of an engine
ENGINE_SCOPE = "engine:"


@dataclass(frozen=True, slots=True)
class PauseRow:
    """``scope`` is ``all`` or ``engine:NAME``; a lane's pause stands in its own row.

    ``until``: when it ends by itself; None: when somebody says so.
    """

    scope: str
    reason: str
    at: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """A process of an engine; ``created`` tells it from a later one with the same number."""

    pid: int
    created: float
    lane: str
    marker: str


def stop_of(kind: str, by: str) -> Stop | None:
    """A stored stop; an empty kind is none."""
    return Stop(StopKind(kind), by) if kind else None


def revises(delivery: int) -> str:
    """A ``target``: the message that comes of an earlier delivery of the same lane and kind.

    So a card or a notice can be changed before it is known what its message is called.
    """
    return f"#{delivery}"


LEFT_BEHIND = "left:"  # before the id of a message in a chat that has moved on since


def left_behind(message_id: str) -> bool:
    """Whether it stands where its chat was: where that lives now the id is another message's."""
    return message_id.startswith(LEFT_BEHIND)


def revised(target: str) -> int | None:
    """The delivery that ``target`` names by number; None if it names a message itself."""
    return int(target[1:]) if target.startswith("#") else None
