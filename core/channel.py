"""The Channel port: what core asks of a platform, and how a platform says what went wrong.

What a platform cannot do is declared in its limits; core never asks a channel for its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from core.messages import Address, FileRef, Incoming, Keyboard, Part, Receipt


@dataclass(frozen=True, slots=True)
class ChannelLimits:
    """What a platform can do and how often. Times are seconds, sizes bytes."""

    preview_every_direct: float = 1.0
    preview_every_group: float = 3.0
    preview_text: int = 3800  # units of the platform's own counting, shown while a turn works
    preview_footer: bool = True  # a line under the preview that says what is going on
    stream_text: int = 0  # characters that Stream can show of a growing text; 0: there is none
    stream_every: float = 1.0
    typing_every: float = 4.0  # 0: the platform has no typing sign
    file_in: int = 20_000_000
    file_out: int = 50_000_000
    album_quiet: float = 1.2  # an album is complete after this long without a piece
    gather_most: float = 5.0  # and never waits longer than this
    paste_units: int = 3500  # a text at least this long may go on in the next message
    paste_quiet: float = 2.0
    chat_rate: float = 1.0  # sends a second into one chat, on average
    group_rate: float = 20 / 60
    total_rate: float = 30.0
    threads_share_rate: bool = True  # else ``group_rate`` is that of each thread
    idempotent_sends: bool = False  # a Send repeated with the same nonce makes no second message
    finds_sends: bool = False  # Find can tell whether a send arrived
    history: bool = False  # what was said is shown from our store; no platform keeps it
    recalls: bool = False  # Recall can read what was said in a thread before
    edits: bool = True
    buttons: bool = True
    stop_button: bool = True  # below previews; a terminal has its keyboard for that
    titles: bool = False
    named_threads: bool = False  # in groups every thread has a name, also one we were not told
    bare_commands: bool = False  # in groups a known command needs no mention
    receipts: Mapping[Receipt, str] = field(default_factory=dict)


# What core can ask for. Each is carried out once; a retry is the outbox's decision.


@dataclass(frozen=True, slots=True)
class Send:
    address: Address
    part: Part
    keyboard: Keyboard = ()
    reply_to: str = ""
    nonce: str = ""  # the same for every try of one delivery


@dataclass(frozen=True, slots=True)
class SendFile:
    address: Address
    path: Path
    name: str
    caption: Part | None = None
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class Revise:
    """Replace a sent message's text and keyboard. Doing it twice changes nothing."""

    address: Address
    message_id: str
    part: Part
    keyboard: Keyboard = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """Show how far a turn is; only where the limits have ``stream_text``.

    Once a message was made of it, later ones name it in ``message_id``. The channel decides each
    time how it is shown: as a text of its own that grows, or like any message by ``part`` and
    ``keyboard``; or not yet, and then ``Done.message_id`` stays empty. A Revise or Delete of the
    message ends it.
    """

    address: Address
    message_id: str
    text: str  # all of the turn's Markdown so far; empty while there is none
    part: Part  # the same as a frame
    keyboard: Keyboard = ()
    person: str = ""  # for whom the turn works
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    address: Address
    message_id: str


@dataclass(frozen=True, slots=True)
class Typing:
    address: Address


@dataclass(frozen=True, slots=True)
class React:
    address: Address
    message_id: str
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Retitle:
    address: Address
    title: str


@dataclass(frozen=True, slots=True)
class AnswerPress:
    """What the person who pressed sees, and nobody else. ``parts`` are rendered, and come first."""

    press: str
    text: str = ""
    alert: bool = False
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenThread:
    address: Address
    title: str


@dataclass(frozen=True, slots=True)
class Find:
    """Look for the message that an uncertain call with this nonce may have made.

    ``Done.message_id`` is empty when the message is certainly not there.
    """

    address: Address
    nonce: str
    since: int  # ms; it was not sent before
    streamed: bool = False  # it was asked for by a Stream


@dataclass(frozen=True, slots=True)
class Recall:
    """Read what was said in a thread before a message: how it began, and the last ``most``.

    Our own words are left out; of the thread's first message it is told even if it is ours.
    """

    address: Address
    before: str  # the message's id; "" all that was said so far
    most: int


@dataclass(frozen=True, slots=True)
class Said:
    """One message of those that Recall reads. Where and when it stands is no part of its words."""

    author: str  # a name
    text: str
    message_id: str = field(default="", compare=False)
    at: int = field(default=0, compare=False)  # ms, by the platform's clock


Action = (
    Send
    | SendFile
    | Revise
    | Stream
    | Delete
    | Typing
    | React
    | Retitle
    | AnswerPress
    | OpenThread
    | Find
    | Recall
)


@dataclass(frozen=True, slots=True)
class Done:
    """An action that took effect; ``message_id`` is set where it made a message or a thread."""

    message_id: str = ""
    growing: bool = False  # of a Stream: its message goes on growing by itself
    said: tuple[Said, ...] = ()  # of a Recall, oldest first


class SendError(Exception):
    """The platform did not do what was asked."""


class RateLimited(SendError):
    """Too many calls. Nothing was done; try again after ``retry_after`` seconds."""

    def __init__(self, retry_after: float, everywhere: bool = False) -> None:
        super().__init__(f"rate limited for {retry_after} s")
        self.retry_after = retry_after
        self.everywhere = everywhere  # the penalty is the token's, not the chat's


class NotSent(SendError):
    """The request certainly never reached the platform; it may be repeated."""


class Uncertain(SendError):
    """The request may have taken effect: time-out while reading, connection lost, 5xx."""


class FormatRefused(SendError):
    """The platform did not accept the markup; plain text may go."""


class MessageGone(SendError):
    """The message to edit or delete is not there any more."""


class ThreadGone(SendError):
    """The thread was deleted or closed; nothing may go anywhere else instead."""


class ChatMoved(SendError):
    """The chat lives on under a new id."""

    def __init__(self, new_chat: str) -> None:
        super().__init__(f"the chat moved to {new_chat}")
        self.new_chat = new_chat


class Forbidden(SendError):
    """We may not write there: blocked, removed, or without the right."""


class Refused(SendError):
    """The platform said no for good; its reason is the message."""


class FileTooBig(SendError):
    """The platform does not hand out a file of this size."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(f"{name} is larger than {limit // 1_000_000} MB")
        self.name = name
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Connection:
    """How a channel's connection is. ``reason`` is empty while it works."""

    reason: str = ""
    fatal: bool = False  # no retry will help before a person acts (token revoked)

    @property
    def up(self) -> bool:
        return not self.reason


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest message of a thread that was accepted."""

    message_id: str
    at: int  # ms, by the platform's clock


@dataclass(frozen=True, slots=True)
class Marks:
    """How far a channel that must ask for what it missed had come.

    ``since``: everything the platform sent up to this instant (ms, its clock) was accepted; 0 when
    it never listened, and then nothing was missed. ``threads``: direct chats and threads in which a
    message may be for us without a mention; a thread that is missing here was never engaged.
    """

    since: int = 0
    threads: Mapping[Address, Mark] = field(default_factory=dict)
    places: frozenset[str] = frozenset()  # chats in which people may talk to us
    runs_from: int = 0  # ms; what was sent before may have been answered: ``Missed``, never run


class Intake(Protocol):
    """What a channel is handed. It acknowledges to its platform only after ``accept`` returned."""

    async def accept(self, incoming: Sequence[Incoming]) -> None:
        """Store everything of one batch that has an effect; returns once it is durable.

        Waits as long as the store cannot write.
        """

    def glance(self, incoming: Sequence[Incoming]) -> None:
        """Carry out stops without storing anything; for while ``accept`` waits for the disk."""

    async def marks(self, channel: str) -> Marks:
        """Where to go on reading, for a platform that does not send again what was missed.

        Asked at every start and reconnect, before anything is handed in: from then on it is kept.
        """

    def reached(self, channel: str, at: int) -> None:
        """Everything up to ``at`` (ms, the platform's clock) was handed to ``accept``."""

    def connection(self, channel: str, connection: Connection) -> None:
        """Report a change of the connection; ``readyz`` and the log say it."""


class Channel(Protocol):
    """One platform. Four methods; all of them may raise only SendError or CancelledError."""

    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> ChannelLimits: ...

    async def listen(self, intake: Intake) -> None:
        """Receive until cancelled. Outages are healed or backed off inside, and reported."""

    def render(self, markdown: str) -> list[Part]:
        """Markdown as the messages that would be sent. Pure; never raises; never empty."""

    async def do(self, action: Action) -> Done:
        """Carry out one action, once."""

    async def fetch(self, file: FileRef, target: Path) -> None:
        """Download a file of a received message to ``target``."""


class Took(StrEnum):
    """What became of something that a platform posted to us."""

    STORED = "stored"  # or it means nothing to us
    NOT_OURS = "not ours"  # its secret or signature is wrong
    NO_SENSE = "no sense"  # it is not what the platform posts
    LATER = "later"  # it could not be stored in time; the platform is to post it again


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a post. ``text`` is what the platform wants to read, if anything."""

    took: Took
    text: str = ""
    again_after: int = 0  # seconds, of LATER


class Hook(Protocol):
    """Where a platform posts what happened, instead of being asked for it.

    ``headers`` have lower-case names. The channel checks the platform's own secret or signature.
    """

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Whether the body may be read at all, as far as the headers tell."""

    async def posted(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """Take one post; returns once what it tells is durable, or will not be soon."""


@runtime_checkable
class Hooked(Protocol):
    """A channel that may be posted to; ``hook`` is None in a mode in which nothing is."""

    @property
    def hook(self) -> Hook | None: ...
