"""What is stored of local threads for the page, which no platform keeps: rows and readers.

What was said is in ``messages`` where it became a turn and in ``spoken`` where it did not; what was
shown is in ``deliveries``. It must not know how any of it looks.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from core.lane_ids import LOCAL
from core.messages import Message, clean
from core.store import reads
from core.store.records import Delivery, LaneRow, MessageRow, TurnRow
from core.store.rows import Row
from core.store.store import Reader


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something that was said and became no turn: a command, or what was refused."""

    identity: str
    lane: str
    message_id: str
    person: str
    person_name: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came by the page. ``lane``: of the message that names it; "" while none does."""

    id: str
    person: str
    name: str
    mime: str
    size: int
    at: int
    lane: str = ""


def spoken(message: Message, lane: str) -> Row:
    """What a person said, as it is shown to them; once, however often it came."""
    return "spoken.new", {
        "identity": message.identity,
        "lane": lane,
        "message_id": message.message_id,
        "person": message.sender,
        "person_name": clean(message.sender_name),
        "text": clean(message.text),
        "at": message.at,
    }


def upload(one: Upload) -> Row:
    return "upload.new", {
        "id": one.id,
        "person": one.person,
        "name": one.name,
        "mime": one.mime,
        "size": one.size,
        "at": one.at,
    }


def upload_named(ident: str, lane: str) -> Row:
    """A message of this lane names the file; its first one counts."""
    return "upload.named", {"id": ident, "lane": lane}


def remove_upload(ident: str) -> Row:
    """Forget a file that no message names."""
    return "upload.remove", {"id": ident}


async def upload_of(store: Reader, ident: str) -> Upload | None:
    found = await store.fetch("upload.by_id", id=ident)
    return Upload(**found[0]) if found else None


async def uploads_unused(store: Reader, person: str) -> list[Upload]:
    """What somebody sent up and no message names yet."""
    return [Upload(**row) for row in await store.fetch("upload.unused", person=person)]


async def uploads_old(store: Reader, before: int) -> list[Upload]:
    """Those of everybody that are older."""
    return [Upload(**row) for row in await store.fetch("upload.old", before=before)]


# A thread, newest first; ``before`` in ms ---------------------------------------------------


async def turns_before(store: Reader, lane: str, before: int, limit: int) -> list[TurnRow]:
    found = await store.fetch("thread.turns", lane=lane, before=before, limit=limit)
    return [reads.turn_of(row) for row in found]


async def turns_of(store: Reader, turns: Collection[int]) -> list[TurnRow]:
    found = await store.fetch("thread.turns_again", turns=json.dumps(list(turns)))
    return [reads.turn_of(row) for row in found]


async def said_in(store: Reader, turns: Collection[int]) -> list[MessageRow]:
    """What was said in these turns, in order."""
    found = await store.fetch("thread.said", turns=json.dumps(list(turns)))
    return [reads.message_of(row) for row in found]


async def spoken_before(store: Reader, lane: str, before: int, limit: int) -> list[Spoken]:
    found = await store.fetch("thread.spoken", lane=lane, before=before, limit=limit)
    return [Spoken(**row) for row in found]


async def made_before(store: Reader, lane: str, before: int, limit: int) -> list[Delivery]:
    """The deliveries that made messages; not those that change one."""
    found = await store.fetch("thread.made", lane=lane, before=before, limit=limit)
    return [reads.delivery_of(row) for row in found]


async def changes_of(store: Reader, lane: str, message_ids: Collection[str]) -> list[Delivery]:
    """What came of these messages since, in order: edits, and answers in a preview's place."""
    names = json.dumps(list(message_ids))
    found = await store.fetch("thread.changes", lane=lane, message_ids=names)
    return [reads.delivery_of(row) for row in found]


# Lanes for the page -------------------------------------------------------------------------


async def newest(store: Reader, limit: int) -> list[LaneRow]:
    """Lanes in which something happened last."""
    return [reads.lane_of(row) for row in await store.fetch("lane.newest", limit=limit)]


async def named_like(store: Reader, words: str, limit: int) -> list[LaneRow]:
    """Lanes whose title or id has these words in it; reads them all."""
    found = await store.fetch("lane.like", words=words, limit=limit)
    return [reads.lane_of(row) for row in found]


async def begun_by(store: Reader, people: Collection[str], limit: int) -> list[LaneRow]:
    """The local lanes that these people began, the newest first."""
    names = json.dumps(list(people))
    found = await store.fetch("lane.begun_by", people=names, channel=LOCAL, limit=limit)
    return [reads.lane_of(row) for row in found]


async def rows_of(store: Reader, lanes: Collection[str]) -> list[LaneRow]:
    found = await store.fetch("lane.some", lanes=json.dumps(list(lanes)))
    return [reads.lane_of(row) for row in found]


async def last_turns(store: Reader, lanes: Collection[str]) -> dict[str, TurnRow]:
    """The newest turn of each lane that is over."""
    found = await store.fetch("thread.last", lanes=json.dumps(list(lanes)))
    return {row["lane"]: reads.turn_of(row) for row in found}
