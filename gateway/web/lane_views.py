"""Lanes as the page shows them, one small object each: what runs, for whom, and what waits.

Made of what is stored and of what the runner knows; the same for everybody who may see the lane,
so that it is made once however many look. It must not know requests or streams.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.cards import visible
from core.lane_ids import LOCAL
from core.store import reads, threads
from core.store.records import ApprovalRow, LaneRow, TurnRow
from core.turns import Kind, Turn
from gateway.reports import delivery_of_turn, instant, state_of
from gateway.web.naming import name_of, straight
from gateway.web.site import Site
from gateway.web.theirs import Belonging

Json = dict[str, Any]
COMMAND_SHOWN = 4000  # characters of what an agent asks for; the card in the thread has it all


@dataclass(frozen=True, slots=True)
class Seen:
    """A lane as it is shown, and whose it is."""

    belonging: Belonging
    shown: Json


async def views(site: Site, rows: Iterable[LaneRow]) -> list[Seen]:
    """How these lanes are now, in the same order; a few queries for all of them."""
    rows = list(rows)
    store, ids = site.parts.store, [row.id for row in rows]
    writers: dict[str, set[str]] = {}
    for one in await store.fetch("lane.writers_of", lanes=json.dumps(ids)):
        writers.setdefault(one["lane"], set()).add(one["person"])
    last = await threads.last_turns(store, ids)
    numbers = json.dumps([turn.id for turn in last.values()])
    told: dict[int, set[tuple[str, str]]] = {}
    for made in await store.fetch("report.deliveries", turns=numbers):
        told.setdefault(made["turn"], set()).add((made["kind"], made["state"]))
    asking: dict[str, list[ApprovalRow]] = {}
    for approval in await reads.approvals_open(store):
        asking.setdefault(approval.lane, []).append(approval)
    making = _Making(site, last, told, asking)
    return [
        Seen(Belonging(row, frozenset(writers.get(row.id, ()))), making.view(row)) for row in rows
    ]


def key_of(person: str) -> str:
    """What stands for somebody where others see it; always the same, and no address."""
    return hashlib.sha256(f"person:{person}".encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class _Making:
    """What was read for all of the lanes."""

    site: Site
    last: Mapping[str, TurnRow]
    told: Mapping[int, set[tuple[str, str]]]
    asking: Mapping[str, list[ApprovalRow]]

    def view(self, row: LaneRow) -> Json:
        runner = self.site.parts.runner
        view = runner.view(row.id)
        main = view.main if view else None
        since = (runner.since(main.id) or main.arrived) if main else None
        local = row.address.channel == LOCAL
        return {
            "lane": row.id,
            "title": straight(row.title) or self._untitled(row),
            "named": bool(row.title),
            "channel": row.address.channel,
            "local": local,
            "away": row.address.channel not in self.site.parts.here,
            "state": state_of(view, halted=row.paused),
            "paused": [hold.value for hold in view.paused] if view else ["lane"] * row.paused,
            "turn": main.id if main else None,
            "label": straight(main.label) if main else "",
            "name": self._name(main.person if main else row.owner or row.person),
            "owner_name": self._name(row.owner) if local else "",
            "key": key_of(main.person) if main else "",
            "owner": key_of(row.owner) if local else "",
            "since": instant(since),
            "doing": straight(runner.doing(row.id)) if main else "",
            "place": view.place if view else 0,
            "waiting": [self._turn(turn) for turn in view.waiting] if view else [],
            "sides": [self._turn(turn) for turn in view.sides] if view else [],
            "asking": [self._question(one) for one in self.asking.get(row.id, ())],
            "engine": row.engine or self.site.settings.engine.value,
            "model": row.model,
            "last": self._last(row),
            "at": max(row.created_at, row.ended_at),
        }

    def _untitled(self, row: LaneRow) -> str:
        if row.address.channel == LOCAL:
            last = self.last.get(row.id)  # a thread is named by an answer; until then, this is it
            asked = straight(last.label) if last else ""
            return asked or "New thread" if row.id.startswith(THREAD) else row.id
        if row.direct:
            return f"Direct chat with {self._name(row.person)}"
        return row.id

    def _name(self, person: str) -> str:
        return name_of(self.site, person)

    def _turn(self, turn: Turn) -> Json:
        return {
            "turn": turn.id,
            "label": straight(turn.label),
            "name": self._name(turn.person),
            "key": key_of(turn.person),
            "since": instant(turn.arrived),
            "side": turn.kind is Kind.SIDE,
            "job": turn.origin.job,
        }

    def _question(self, row: ApprovalRow) -> Json:
        command = visible(row.command)
        return {
            "id": row.id,
            "tool": visible(row.tool)[:200],
            "command": command[:COMMAND_SHOWN],
            "whole": len(command) <= COMMAND_SHOWN,
            "turn": row.turn,
            "asked": instant(row.asked_at),
            "until": instant(row.expires_at),
        }

    def _last(self, row: LaneRow) -> Json | None:
        turn = self.last.get(row.id)
        if turn is None:
            return None
        return {
            "turn": turn.id,
            "status": turn.status.value,
            "delivery": delivery_of_turn(turn, self.told.get(turn.id, set())),
            "ended": instant(turn.ended_at),
        }


THREAD = "chat-"  # how names of threads begin that the page gave
