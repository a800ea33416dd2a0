"""Groups: pieces that were sent as one, and what waits behind them in their lane. Pure.

An album comes as many messages, a long text as several. An open group holds its place in the lane:
what comes later is stored and waits until it closes. It knows no clock and no store; instants are
seconds of a clock that never goes back, handed in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from core.channel import ChannelLimits
from core.messages import Address, Message, units
from core.prompt import PASTE
from core.store.records import MessageRow

ALBUMS_MOST = 64  # that are remembered without being for us
ALBUM_MOST = 20  # pieces of each; no platform has larger albums


@dataclass(slots=True)
class Entry:
    """One message, or one group of pieces. ``until`` is None once it is complete."""

    key: str
    person: str
    pieces: list[MessageRow]
    opened: float = 0.0
    until: float | None = None


@dataclass(slots=True)
class LaneGroups:
    """What is held in one lane, in order. Empty lanes are not kept."""

    entries: list[Entry] = field(default_factory=list)

    def key_for(self, message: Message, limits: ChannelLimits) -> str:
        """The group this message belongs to; "" for a message that stands alone."""
        if message.album:
            return message.album
        if message.files or not message.text:
            return ""
        open_paste = self._open_paste(message.sender)
        if open_paste is not None:
            return open_paste.key
        if units(message.text) >= limits.paste_units:
            return f"{PASTE}{message.identity}"
        return ""

    def add(self, row: MessageRow, now: float | None, limits: ChannelLimits) -> Entry:
        """Put a piece where it belongs. ``now`` None: its group's quiet time has not begun."""
        entry = self._open(row.album, row.person) if row.album else None
        if entry is None:
            entry = Entry(row.album, row.person, [])
            self.entries.append(entry)
            entry.opened = now if now is not None else float("inf")
        entry.pieces.append(row)
        if row.album:
            entry.until = deadline(entry, now, limits)
        return entry

    def opens(self, row: MessageRow) -> bool:
        """Whether the group of this piece is still open."""
        return self._open(row.album, row.person) is not None

    def has(self, piece: MessageRow) -> bool:
        """Whether this very piece is held here."""
        return any(row.seq == piece.seq for entry in self.entries for row in entry.pieces)

    def continues(self, message: Message) -> bool:
        """Whether its sender is still sending what this belongs to."""
        if message.album:
            return self._open(message.album, message.sender) is not None
        return _is_text(message) and self._open_paste(message.sender) is not None

    def start(self, now: float, limits: ChannelLimits) -> None:
        """Count the quiet time of groups that were found in the store from now on."""
        for entry in self.entries:
            if entry.until == float("inf"):
                entry.opened = now
                entry.until = deadline(entry, now, limits)

    def remove(self, piece: MessageRow) -> None:
        """A piece that turned out to be known already; what is known of it stays."""
        for entry in self.entries:
            entry.pieces = [row for row in entry.pieces if row.seq != piece.seq]
        self.entries = [entry for entry in self.entries if entry.pieces]

    def edit(self, identity: str, text: str) -> None:
        for entry in self.entries:
            entry.pieces = [
                replace(row, text=text) if row.identity == identity else row for row in entry.pieces
            ]

    def close(self, now: float, person: str = "") -> None:
        """End the groups whose time is over, and all of ``person``'s."""
        for entry in self.entries:
            due = entry.until is not None and entry.until <= now
            if due or (person and entry.person == person):
                entry.until = None

    def ready(self) -> list[Entry]:
        """Take out what nothing holds back any more, in order."""
        count = 0
        while count < len(self.entries) and self.entries[count].until is None:
            count += 1
        taken, self.entries = self.entries[:count], self.entries[count:]
        return taken

    def next(self) -> float | None:
        """When the next group closes."""
        return min(self._deadlines(), default=None)

    def _deadlines(self) -> Iterable[float]:
        return (entry.until for entry in self.entries if entry.until is not None)

    def _open(self, key: str, person: str) -> Entry | None:
        for entry in self.entries:
            if entry.key == key and entry.person == person and entry.until is not None:
                return entry
        return None

    def _open_paste(self, person: str) -> Entry | None:
        for entry in self.entries:
            paste = entry.key.startswith(PASTE) and entry.until is not None
            if paste and entry.person == person:
                return entry
        return None


@dataclass(slots=True)
class Unclaimed:
    """Pieces that were not for us so far: the mention may stand at a later picture of an album, or
    in a later part of a long text.

    They are known here only, for as long as their group is quiet, and never many.
    """

    _groups: dict[tuple[Address, str, str], _Pieces] = field(default_factory=dict)

    def keep(self, message: Message, now: float, limits: ChannelLimits) -> None:
        key, quiet = _group(message), limits.album_quiet
        pieces = self._groups.pop(key, None)
        if not message.album:
            if not _is_text(message):
                return  # what was written before it goes on no further
            if pieces is None and units(message.text) < limits.paste_units:
                return
            quiet = limits.paste_quiet
        pieces = pieces or _Pieces(now + limits.gather_most)
        pieces.until = min(now + quiet, pieces.last)
        if len(pieces.messages) < ALBUM_MOST and message.identity not in pieces.identities():
            pieces.messages.append(message)
        self._groups[key] = pieces  # the newest behind
        while len(self._groups) > ALBUMS_MOST:
            del self._groups[next(iter(self._groups))]

    def claim(self, message: Message) -> list[Message]:
        """What came before this piece of its album or long text, in order; once."""
        pieces = None
        if message.album or _is_text(message):
            pieces = self._groups.pop(_group(message), None)
        return pieces.messages if pieces else []

    def forget(self, now: float) -> None:
        """Let go of groups whose time is over."""
        for key in [key for key, pieces in self._groups.items() if pieces.until < now]:
            del self._groups[key]


@dataclass(slots=True)
class _Pieces:
    last: float
    until: float = 0.0
    messages: list[Message] = field(default_factory=list)

    def identities(self) -> set[str]:
        return {message.identity for message in self.messages}


def _group(message: Message) -> tuple[Address, str, str]:
    """Of a person's long texts in a chat there is one at a time."""
    return message.address, message.album or PASTE, message.sender


def _is_text(message: Message) -> bool:
    return bool(message.text) and not message.files


def deadline(entry: Entry, now: float | None, limits: ChannelLimits) -> float:
    """Quiet for long enough, and never longer open than the limit."""
    if now is None:
        return float("inf")
    quiet = limits.paste_quiet if entry.key.startswith(PASTE) else limits.album_quiet
    return min(now + quiet, entry.opened + limits.gather_most)
