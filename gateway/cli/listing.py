"""``laneway lanes``, ``turns``, ``people`` and ``pair``."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from core.wording import count
from gateway import saved
from gateway.cli import columns
from gateway.cli.border import as_json, plain
from gateway.cli.client import ask
from gateway.trouble import Trouble

if TYPE_CHECKING:
    from core.people import People
    from core.store.store import Store

_COLUMNS = {
    "lanes": {
        "lane": "LANE", "title": "TITLE", "state": "STATE", "turn": "TURN", "since": "SINCE",
        "waiting": "WAITING", "engine": "ENGINE",
    },
    "turns": {
        "id": "ID", "lane": "LANE", "status": "STATUS", "delivery": "DELIVERY", "origin": "ORIGIN",
        "received_at": "RECEIVED", "text": "TEXT", "answer": "ANSWER", "error": "ERROR",
    },
    "people": {"person": "PERSON", "name": "NAME", "role": "ROLE", "waiting": "WAITING"},
}  # fmt: skip


def lanes_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="an array of objects")


def turns_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lane", nargs="?", metavar="LANE", help="only of this lane")
    parser.add_argument("--json", action="store_true", help="an array of objects")
    parser.add_argument(
        "--release", action="store_true", help="let go of what a restored backup holds back"
    )


def people_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="an array of objects")


def pair_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", metavar="CODE", help="what the person was given by /whoami")


def lanes(options: argparse.Namespace) -> int:
    settings = saved.load()

    async def down(store: Store, _: People) -> Any:
        from gateway import reports

        return await reports.lanes(store, settings.engine.value, None)

    _show("lanes", asyncio.run(ask(settings, {"do": "lanes"}, down)), options.json)
    return 0


def turns(options: argparse.Namespace) -> int:
    settings = saved.load()
    if options.release:
        released = asyncio.run(ask(settings, {"do": "release"}, _release))
        if options.json:
            print(as_json(released))
            return 0
        let_go = count(released["turns"], "turn"), count(released["deliveries"], "message")
        print(f"Released {let_go[0]} and {let_go[1]}.")
        return 0

    async def down(store: Store, _: People) -> Any:
        from gateway import reports

        try:
            return await reports.turns(store, options.lane)
        except LookupError as fault:
            raise Trouble(str(fault)) from fault

    _show(
        "turns",
        asyncio.run(ask(settings, {"do": "turns", "lane": options.lane}, down)),
        options.json,
    )
    return 0


async def _release(store: Store, _: People) -> Any:
    """While the gateway is down the next start lets everything run and go out."""
    from core.store import reads, rows
    from gateway.reports import released

    turns, deliveries = await reads.held_turns(store), await reads.deliveries_held(store)
    let_go = released(store.clock.now(), len(turns), len(deliveries))
    await store.save(*rows.release(), let_go)
    return {"turns": len(turns), "deliveries": len(deliveries)}


def people(options: argparse.Namespace) -> int:
    async def down(store: Store, known: People) -> Any:
        from gateway import reports

        return await reports.people(store, known)

    _show("people", asyncio.run(ask(saved.load(), {"do": "people"}, down)), options.json)
    return 0


def pair(options: argparse.Namespace) -> int:
    async def down(store: Store, known: People) -> Any:
        from gateway import reports

        try:
            return await reports.pair(store, known, options.code)
        except LookupError as fault:
            raise Trouble(str(fault)) from fault

    let_in = asyncio.run(ask(saved.load(), {"do": "pair", "code": options.code}, down))
    name = let_in["name"] or let_in["person"]
    print(plain(f"{name} ({let_in['person']}) is a member now."))
    return 0


def _show(what: str, rows: list[dict[str, Any]], scripted: bool) -> None:
    if scripted:
        print(as_json(rows))
        return
    for row in rows:
        if row.get("held"):  # of a restored backup: it waits for its release
            row["status"] = f"{row['status']}, held"
    print(columns.shown(rows, _COLUMNS[what]))
