"""What the gateway knows, as the command line prints it: lanes, turns, people, usage.

The same functions answer over the local socket while it runs and from the database while it is
down; then nothing runs, and ``look`` is None. They read; what changes something goes through
``changes``.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Protocol

from core import usage as spending
from core.commands.knowing import let_in_text
from core.items import Item, Take
from core.lanes import LaneView, Phase
from core.messages import Part
from core.people import People
from core.store import reads, roster, rows, web
from core.store.records import (
    ALL_LANES,
    ENGINE_SCOPE,
    Delivery,
    DeliveryKind,
    DeliveryState,
    PersonRow,
    TurnRow,
)
from core.store.rows import Row
from core.store.store import Reader, Store
from core.wording import count
from gateway.control import OWNER

Json = dict[str, Any]
LATEST = 200  # turns that a listing shows
_DELIVERY = (  # the worst of an answer's parts is what the listing shows
    DeliveryState.FAILED,
    DeliveryState.UNCERTAIN,
    DeliveryState.HELD,
    DeliveryState.PENDING,
    DeliveryState.IN_FLIGHT,
    DeliveryState.SENT,
)
_SAID = ((DeliveryKind.ANSWER, DeliveryKind.FILE), (DeliveryKind.NOTICE,))
_UNDER_WAY = (DeliveryState.IN_FLIGHT, DeliveryState.HELD)


class Look(Protocol):
    """What runs now; the runner."""

    def view(self, lane: str) -> LaneView | None: ...

    def since(self, turn: int) -> int | None: ...


class Running(Look, Protocol):
    """The runner, where something is changed."""

    async def release(self) -> tuple[int, int]: ...

    async def take(self, *items: Item) -> list[bool]: ...


def instant(at: int | None) -> str | None:
    """ISO 8601 with offset, in UTC."""
    if not at:
        return None
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")


def _dollars(amount: float | None) -> float | None:
    """Without the last digits that a difference of two sums has too many."""
    return None if amount is None else round(amount, 9)


async def lanes(store: Reader, engine: str, look: Look | None) -> list[Json]:
    """Every lane, as ``laneway lanes --json`` shows it."""
    waiting = {row["lane"]: row["waiting"] for row in await store.fetch("report.waiting")}
    sessions = {
        (row["lane"], row["engine"]): row["session"] for row in await store.fetch("report.sessions")
    }
    pauses = {pause.scope for pause in await reads.pauses(store)}
    listed = []
    for row in await reads.lane_list(store):
        view = look.view(row.id) if look else None
        main = view.main if view else None
        named = row.engine or engine
        halted = row.paused or not pauses.isdisjoint((ALL_LANES, f"{ENGINE_SCOPE}{named}"))
        began = look.since(main.id) if look and main else None
        listed.append(
            {
                "lane": row.id,
                "title": row.title,
                "state": state_of(view, halted=halted, is_open=row.id in waiting),
                "turn": main.id if main else None,
                "since": instant(began),
                "waiting": len(view.waiting) if view else waiting.get(row.id, 0),
                "engine": named,
                "model": row.model,
                "session": sessions.get((row.id, named), ""),
                "person": main.person if main else row.person,
            }
        )
    return listed


def state_of(view: LaneView | None, *, halted: bool, is_open: bool = False) -> str:
    """The state of a lane in one word. ``halted``: a pause of it, its engine or all is stored.

    ``is_open``: a turn of it is not over. While the gateway is down such a turn waits for the next
    start, whatever it did at the end.
    """
    if view is not None and view.phase is not None:
        return view.phase.value
    if halted or (view is not None and view.halted):
        return "paused"
    if view is not None:
        return "waiting" if view.waiting else Phase.RUNNING.value  # only a side answer runs
    return "waiting" if is_open else "idle"


async def turns(store: Reader, lane: str | None, limit: int = LATEST) -> list[Json]:
    """The newest turns of a lane or of all, oldest of them first."""
    if lane is not None:
        named = await reads.lane_called(store, lane)
        if named is None:
            raise LookupError(f"there is no lane {lane!r}; laneway lanes lists them")
        lane = named.id
    found = await reads.turns_of(store, lane, limit)
    ids = json.dumps([row.id for row in found])
    texts: dict[int, list[str]] = {}
    for said in await store.fetch("report.texts", turns=ids):
        texts.setdefault(said["turn"], []).append(said["text"])
    told: dict[int, set[tuple[str, str]]] = {}
    for made in await store.fetch("report.deliveries", turns=ids):
        told.setdefault(made["turn"], set()).add((made["kind"], made["state"]))
    return [
        _turn(row, "\n\n".join(texts.get(row.id, ())), _told(row, told)) for row in reversed(found)
    ]


def _told(row: TurnRow, told: Mapping[int, set[tuple[str, str]]]) -> str:
    return delivery_of_turn(row, told.get(row.id, set()))


def _turn(row: TurnRow, text: str, delivery: str) -> Json:
    return {
        "id": row.id,
        "lane": row.lane,
        "kind": row.kind.value,
        "origin": row.origin.value,
        "person": row.person,
        "status": "running" if row.status.value == "starting" else row.status.value,
        "held": row.held,
        "received_at": instant(row.received_at),
        "started_at": instant(row.started_at),
        "ended_at": instant(row.ended_at),
        "delivery": delivery,
        "text": text,
        "answer": row.answer,
        "engine": row.engine,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "cost_usd": _dollars(row.cost),
        "error": row.error,
    }


def delivery_of_turn(row: TurnRow, told: set[tuple[str, str]]) -> str:
    """How the turn's answer stands, or what was told in place of one."""
    if not row.status.over and all(kind != DeliveryKind.ANSWER.value for kind, _ in told):
        return "pending"  # files go out while it works, and notices
    for kinds in _SAID:
        for state in _DELIVERY:
            if any((kind.value, state.value) in told for kind in kinds):
                return "pending" if state in _UNDER_WAY else state.value
    return "sent"  # what ended without a word, such as a dropped message, has nothing left to send


async def people(store: Reader, people: People) -> list[Json]:
    """Who may talk, from settings and store, and who waits to be let in."""
    listed: dict[str, Json] = {}
    for ident in people.known():
        role = people.role(ident)
        if role:
            name = people.name(ident)
            listed[ident] = {
                "person": ident,
                "name": "" if name == ident else name,
                "role": role.value,
                "waiting": False,
                "until": None,
            }
    for row in await roster.pairings(store):
        if row.person not in listed:
            listed[row.person] = {
                "person": row.person,
                "name": row.name,
                "role": "",
                "waiting": True,
                "until": instant(row.expires_at),
            }
    return list(listed.values())


def span(typed: str, now: int) -> spending.Period:
    """The time span up to now that was typed; raises LookupError."""
    if (found := spending.period(typed, now)) is None:
        raise LookupError(f"{typed!r} is no time span; write it like 7d, 12h or 4w, or say all")
    return found


async def usage(store: Reader, typed: str, now: int) -> list[Json]:
    """What each lane and person has used within a time span such as 7d; raises LookupError."""
    within = span(typed, now)
    return [
        {
            "lane": lane,
            "person": person,
            "turns": used.turns,
            "tokens_in": used.tokens_in,
            "tokens_out": used.tokens_out,
            "cost_usd": _dollars(used.cost),
            "unpriced_turns": used.unpriced,
        }
        for lane, person, used in await spending.by_lane(store, within.since)
    ]


Answer = Callable[[Mapping[str, Any]], Awaitable[Any]]


class Reports:
    """The requests of the local socket, by name.

    ``released`` is called when what a backup held back was let go.
    """

    def __init__(
        self,
        store: Store,
        engine: str,
        runner: Running,
        known: People,
        released: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self.engine = engine  # of lanes that name none
        self._runner = runner
        self._people = known
        self._released = released

    def asks(self) -> dict[str, Answer]:
        return {
            "lanes": self._lanes,
            "turns": self._turns,
            "people": self._list_people,
            "usage": self._usage,
            "pair": self._pair,
            "release": self._release,
        }

    async def _lanes(self, _: Mapping[str, Any]) -> list[Json]:
        return await lanes(self._store.at_once, self.engine, self._runner)

    async def _turns(self, request: Mapping[str, Any]) -> list[Json]:
        limit = int(request.get("limit", LATEST))
        return await turns(self._store.at_once, request.get("lane"), limit)

    async def _list_people(self, _: Mapping[str, Any]) -> list[Json]:
        return await people(self._store.at_once, self._people)

    async def _usage(self, request: Mapping[str, Any]) -> list[Json]:
        within = str(request.get("within", ""))
        return await usage(self._store.at_once, within, self._store.clock.now())

    async def _release(self, _: Mapping[str, Any]) -> Json:
        turns, deliveries = await self._runner.release()
        await self._released()
        await self._store.save(released(self._store.clock.now(), turns, deliveries))
        return {"turns": turns, "deliveries": deliveries}

    async def _pair(self, request: Mapping[str, Any]) -> Json:
        code = str(request.get("code", ""))
        return await pair(self._store, self._people, code, self._runner.take)


def released(now: int, turns: int, deliveries: int) -> Row:
    """That the owner let go of what a restored backup held back."""
    let_go = f"{count(turns, 'turn')}, {count(deliveries, 'message')}"
    return web.act(now, OWNER, "backup.released", "", let_go)


async def pair(
    store: Store, known: People, code: str, take: Take | None = None, by: str = OWNER
) -> Json:
    """Let in the person who was given this code, as a member, and tell them where they asked.

    ``take`` sends it at once; without it, that is while the gateway is down, the next start does.
    LookupError when nobody waits with this code, or somebody else was faster.
    """
    now = store.clock.now()
    row = replace(await known.waiting(store, code, now), added_by=by)
    with known.letting_in(row.id):
        act = web.act(now, by, "person.let_in", row.id, row.name)
        written = (roster.person(row), roster.remove_pairing(row.id), act)
        told = await _welcome(store, row)
        if take is not None:
            await take(Item(rows=written, deliveries=told))
        else:
            await store.save(*written, *map(rows.delivery, told))
        known.let_in(row)
    return {"person": row.id, "name": row.name, "role": row.role}


async def _welcome(store: Store, row: PersonRow) -> list[Delivery]:
    """Plain text, which every channel shows as it is: here none may be there to render."""
    lane = await reads.lane_direct(store, row.id.partition(":")[0], row.id)
    if lane is None:
        return []
    part, now = Part(let_in_text()), store.clock.now()
    kind = DeliveryKind.NOTICE
    return [Delivery(store.ids.delivery(), lane.id, None, kind, part, created_at=now)]
