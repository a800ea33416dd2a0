"""The words that channels and core share: who said what, where, and what is shown back.

Everything here is a frozen value. It must not know any platform, the store, or the lane rules.
Instants are milliseconds since 1970 (UTC); people and places are ids, never names.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Address:
    """Where a thread lives on its platform. An empty thread is the chat's main timeline."""

    channel: str
    chat: str
    thread: str = ""

    def __str__(self) -> str:
        return ":".join(part for part in (self.channel, self.chat, self.thread) if part)

    @property
    def place(self) -> str:
        """The chat as ``LANEWAY_PLACES`` names it; threads belong to their parent."""
        return f"{self.channel}:{self.chat}"


class FileKind(StrEnum):
    """How the platform sent a file; only voice notes are treated apart from the rest."""

    IMAGE = "image"
    DOCUMENT = "document"
    VOICE = "voice"
    AUDIO = "audio"
    VIDEO = "video"


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file still on the platform; ``ref`` is opaque to all but its channel's ``fetch``."""

    ref: str
    kind: FileKind
    name: str
    mime: str = ""
    size: int | None = None  # bytes, where the platform says


@dataclass(frozen=True, slots=True)
class Quote:
    """What a message replies to, quotes or forwards. Never an instruction, always context."""

    text: str
    author: str = ""
    origin: str = ""  # title of another chat, when it was quoted from there
    forwarded: bool = False
    files: tuple[FileRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One message of one person. ``identity`` is the message's, never that of its delivery."""

    identity: str  # e.g. telegram:800000001:-1001:41
    message_id: str  # the platform's own id within its chat
    address: Address
    sender: str  # e.g. telegram:700000001
    sender_name: str
    text: str  # own mention removed
    at: int
    direct: bool = False  # a direct message: no mention is needed
    addressed: bool = False  # a mention of us or a reply to us
    engages: bool = False  # a thread that stays engaged once a message was accepted in it
    from_bot: bool = False
    files: tuple[FileRef, ...] = ()
    quote: Quote | None = None
    album: str = ""  # pieces that carry the same album id were sent as one
    title: str = ""  # the thread's or chat's title, when the update names it
    press: str = ""  # what the platform wants answered (an application command), as of a Press
    no_thread: bool = False  # a command given where threads begin, and so in no conversation


@dataclass(frozen=True, slots=True)
class Edit:
    """A message's text changed. Only a message that still waits takes the new text."""

    identity: str
    of: str  # identity of the edited message
    address: Address
    sender: str
    text: str


@dataclass(frozen=True, slots=True)
class Press:
    """A button was pressed. ``button`` is our id, ``press`` what the platform wants answered."""

    identity: str
    press: str
    address: Address
    sender: str
    sender_name: str
    button: str
    message_id: str
    direct: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """A chat has a new id (a Telegram group became a supergroup)."""

    identity: str
    channel: str
    old_chat: str
    new_chat: str


@dataclass(frozen=True, slots=True)
class Titled:
    """A thread was named or renamed on its platform."""

    identity: str
    address: Address
    title: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An update that could not be understood; kept aside, so that it never holds up others.

    ``about`` are the people and places it seems to be from, as far as they can be made out.
    """

    identity: str
    channel: str
    raw: str
    error: str
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missed:
    """Messages for us that came while nobody listened and that are not run: too old, or too many.

    The thread is told of them. ``labels`` are their first words, oldest first.
    """

    identity: str
    address: Address
    direct: bool
    count: int
    oldest: int  # ms
    newest: int
    labels: tuple[str, ...] = ()
    message_id: str = ""  # the newest one's; it was read up to there


Incoming = Message | Edit | Press | Moved | Titled | Unreadable | Missed


@dataclass(frozen=True, slots=True)
class Part:
    """One message as it will be shown. ``markup`` is JSON that only the channel reads.

    The text may go on below what the markup is about: a card that was decided says so there.
    """

    text: str
    markup: str = ""

    def plain(self) -> Part:
        """The same text without markup, for a platform that refused the format."""
        return Part(self.text)


class Style(StrEnum):
    """How a button looks where the platform can colour it."""

    PLAIN = ""
    PRIMARY = "primary"
    SUCCESS = "success"
    DANGER = "danger"


@dataclass(frozen=True, slots=True)
class Button:
    """``id`` is opaque and at most 64 bytes; what it means stands in the store."""

    id: str
    label: str
    style: Style = Style.PLAIN


Keyboard = tuple[tuple[Button, ...], ...]


class Receipt(StrEnum):
    """What the reaction on a person's message says."""

    RECEIVED = "received"
    WAITING = "waiting"
    NONE = "none"
    FAILED = "failed"


def clean(text: str) -> str:
    """Text as every store and platform can hold it: lone surrogates replaced, NUL dropped."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")


def units(text: str) -> int:
    """Length in UTF-16 units, which no platform counts more strictly."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
