"""A local thread as the page shows it: what was said and what was shown, each once, in order.

What was shown is folded from the deliveries as a platform would: one message for each id, with its
newest text; what is newer than the store is asked of the channel. A message's id says where it
stands. It must not know requests or streams.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from channels.local.channel import LocalChannel, Shown, message_of
from core.finding import nonce_of
from core.messages import FileKind, FileRef, Keyboard
from core.store import threads
from core.store.records import Delivery, DeliveryKind, DeliveryState, FilePart, MessageRow, TurnRow
from core.store.threads import Spoken
from core.turns import Kind, Status
from gateway.web.lane_views import key_of
from gateway.web.site import Site

Json = dict[str, Any]
PAGE = 40  # of each: turns, commands, messages that were shown
NEWEST = 1 << 53  # an instant after all others
SAID = "local:say:"  # how identities begin of what was said on the page
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_NOT_SHOWN = frozenset({DeliveryState.PENDING, DeliveryState.IN_FLIGHT})
_NOTES = {
    DeliveryState.UNCERTAIN: "perhaps not delivered",
    DeliveryState.FAILED: "not delivered",
}
_RECEIPTS = {
    Status.WAITING: "waiting",
    Status.STARTING: "running",
    Status.RUNNING: "running",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a thread. ``text`` is Markdown where there is no ``author``."""

    id: str
    at: int  # ms
    kind: str
    text: str = ""
    author: str = ""  # a person
    name: str = ""
    turn: int | None = None
    keyboard: Keyboard = ()
    files: tuple[Json, ...] = ()
    receipt: str = ""
    note: str = ""
    ref: str = ""  # what the browser called it that sent it

    def as_json(self) -> Json:
        """For the page; all markup in it was written here."""
        from channels.markup import html  # with the first message that is shown, not at each start

        body = html.plain(self.text) if self.author else html.render(self.text)
        return {
            "id": self.id,
            "at": self.at,
            "kind": self.kind,
            "html": body,
            "key": key_of(self.author) if self.author else "",
            "name": self.name,
            "turn": self.turn,
            "buttons": [[_button(one) for one in row] for row in self.keyboard],
            "files": list(self.files),
            "receipt": self.receipt,
            "note": self.note,
            "ref": self.ref,
        }


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a thread, oldest first. ``more``: there is something before it."""

    entries: tuple[Entry, ...]
    more: bool


async def read(site: Site, lane: str, before: int = NEWEST) -> Page:
    """The end of a thread, or what stands before an instant (ms), up to and with it."""
    store = site.parts.store
    turns = await threads.turns_before(store, lane, before, PAGE)
    said = await threads.said_in(store, [turn.id for turn in turns])
    spoken = await threads.spoken_before(store, lane, before, PAGE)
    made = await threads.made_before(store, lane, before, PAGE)
    changes = await threads.changes_of(
        store, lane, [row.message_id for row in made if row.message_id]
    )
    # From here on nothing is waited for, so that what is read in memory fits together.
    entries = [
        *_said(said, turns),
        *map(_spoken, spoken),
        *_folded(site.local, made, changes),
    ]
    since = _since(turns, spoken, made)
    kept = [one for one in entries if one.at >= since]
    return Page(tuple(sorted(kept, key=lambda one: (one.at, one.id))), since > 0)


async def again(site: Site, lane: str, entries: Sequence[Entry]) -> dict[str, Entry | None]:
    """How these entries of a thread are now; None where one is there no more."""
    store = site.parts.store
    shown = [one.id for one in entries if not one.author]
    turns = await threads.turns_of(store, {one.turn for one in entries if one.author and one.turn})
    changes = await threads.changes_of(store, lane, shown)
    by_id = {turn.id: turn for turn in turns}
    found: dict[str, Entry | None] = dict.fromkeys(map(ident_of, changes))
    found |= {one.id: one for one in _folded(site.local, (), changes)}
    for one in entries:
        if one.author:
            turn = by_id.get(one.turn or 0)
            found[one.id] = replace(one, receipt=receipt(turn)) if turn else one
    return found


def _since(turns: Sequence[TurnRow], spoken: Sequence[Spoken], made: Sequence[Delivery]) -> int:
    """Where a page begins: before this instant one of the three has more than was read."""
    begins = [
        found[-1]
        for found in (
            [turn.received_at for turn in turns],
            [one.at for one in spoken],
            [row.created_at for row in made],
        )
        if len(found) == PAGE
    ]
    return max(begins, default=0)


# What people said ---------------------------------------------------------------------------


def _said(said: Iterable[MessageRow], turns: Iterable[TurnRow]) -> Iterable[Entry]:
    by_id = {turn.id: turn for turn in turns}
    for row in said:
        turn = by_id.get(row.turn or 0)
        if not row.message_id or not row.identity.startswith("local:"):
            continue  # said again for a later turn, or by nobody
        if turn is not None and turn.kind is Kind.COMPACT:
            continue  # the command that asked for it stands there
        yield Entry(
            row.message_id,
            row.at,
            "said",
            row.text,
            row.person,
            row.person_name,
            row.turn,
            files=tuple(_received(file) for file in row.files),
            receipt=receipt(turn) if turn else "",
            ref=ref_of(row.identity),
        )


def receipt(turn: TurnRow) -> str:
    """How far what was said is; its words are chosen by the page."""
    return _RECEIPTS.get(turn.status, turn.status.value)


def _spoken(one: Spoken) -> Entry:
    return Entry(
        one.message_id, one.at, "said", one.text, one.person, one.person_name,
        ref=ref_of(one.identity),
    )  # fmt: skip


def identity_of(person: str, ref: str) -> str:
    """What a message is told by, so that it is one however often the browser sends it."""
    return f"say:{hashlib.sha256(person.encode()).hexdigest()[:12]}:{ref}"


def ref_of(identity: str) -> str:
    """What the browser called it; "" where it did not come from one."""
    return identity.rpartition(":")[2] if identity.startswith(SAID) else ""


# What was shown -----------------------------------------------------------------------------


def _folded(
    local: LocalChannel, made: Iterable[Delivery], changes: Iterable[Delivery]
) -> Iterable[Entry]:
    """One entry for each message that stands there now."""
    first: dict[str, Delivery] = {}
    newest: dict[str, Delivery] = {}
    for row in sorted((*made, *changes), key=lambda one: one.id):
        ident = ident_of(row)
        first.setdefault(ident, row)
        newest[ident] = row
    for ident, row in newest.items():
        shown = local.shown(ident)
        if row.state is DeliveryState.HELD or (row.state in _NOT_SHOWN and shown is None):
            continue
        if first[ident].state is DeliveryState.WITHDRAWN and shown is None:
            continue
        if (entry := _entry(ident, row, shown)) is not None:
            yield entry


def ident_of(row: Delivery) -> str:
    """The id of the message that a delivery makes, also before it has made it."""
    if row.message_id:
        return row.message_id
    preview = row.kind is DeliveryKind.PREVIEW
    return message_of(nonce_of(row.id, row.created_at, preview))


def _entry(ident: str, row: Delivery, shown: Shown | None) -> Entry | None:
    at = at_of(ident) or row.created_at
    note = _NOTES.get(row.state, "")
    kind = row.kind.value
    if isinstance(row.part, FilePart):
        file = sent_json(ident, row.part.name)
        text = row.part.caption.text if row.part.caption else ""
        return Entry(ident, at, "file", text, turn=row.turn, files=(file,), note=note)
    text, keyboard = row.part.text, row.keyboard
    if shown is not None:
        if shown.kind == "deleted":
            return None
        text, keyboard = shown.text, shown.keyboard
    if not text.strip() and not keyboard:
        return None  # taken away
    return Entry(ident, at, kind, text, turn=row.turn, keyboard=keyboard, note=note)


def at_of(ident: str) -> int:
    """When a message was made, as its id says; 0 where it does not."""
    when, dot, _ = ident.partition(".")
    try:
        return int(when, 16) if dot and len(when) == 11 else 0
    except ValueError:
        return 0


# Files --------------------------------------------------------------------------------------


def _received(file: FileRef) -> Json:
    return {
        "name": file.name,
        "url": _url(f"in-{file.ref}", file.name),
        "size": file.size,
        "image": file.kind is FileKind.IMAGE and file.mime in IMAGES,
    }


def sent_json(message_id: str, name: str) -> Json:
    """A file of the agent, as the page shows it."""
    return {
        "name": name,
        "url": _url(f"out-{message_id}", name),
        "size": None,
        "image": name.lower().endswith((".png", ".jpg", ".jpeg", ".gif", ".webp")),
    }


def _url(ident: str, name: str) -> str:
    return f"/api/files/{quote(ident, safe='')}/{quote(name or 'file', safe='')}"


def _button(button: Any) -> Mapping[str, str]:
    return {"id": button.id, "label": button.label, "style": button.style.value}
