"""``laneway usage``: tokens and cost of each lane and person, and the sum of all."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gateway import saved
from gateway.cli import columns
from gateway.cli.border import as_json
from gateway.cli.client import ask
from gateway.trouble import Refused

if TYPE_CHECKING:
    from core.people import People
    from core.store.store import Store

_COLUMNS = {
    "lane": "LANE", "person": "PERSON", "turns": "TURNS", "tokens_in": "TOKENS IN",
    "tokens_out": "TOKENS OUT", "cost": "COST",
}  # fmt: skip


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "within", nargs="?", default="", metavar="7d", help="the time span up to now, or all (30d)"
    )
    parser.add_argument("--json", action="store_true", help="an array of objects")


def main(options: argparse.Namespace) -> int:
    settings = saved.load()
    if options.within:
        _check(options.within)

    async def down(store: Store, _: People) -> Any:
        from gateway import reports

        return await reports.usage(store, options.within, time.time_ns() // 1_000_000)

    request = {"do": "usage", "within": options.within}
    found = asyncio.run(ask(settings, request, down))
    if options.json:
        print(as_json(found))
    else:
        print(shown(found))
    return 0


def _check(within: str) -> None:
    """A wrong command line is one whether the gateway runs or not."""
    from gateway.reports import span

    try:
        span(within, 0)
    except LookupError as fault:
        raise Refused(str(fault)) from None


def shown(found: Sequence[Mapping[str, Any]]) -> str:
    """As a table for people, with the sum below it."""
    from core.usage import Used, cost  # brings the store, which a listing by script needs not

    rows, everything = [], Used()
    for row in found:
        used = Used(
            row["turns"],
            row["tokens_in"],
            row["tokens_out"],
            row["cost_usd"],
            row["unpriced_turns"],
        )
        everything += used
        rows.append({**row, "cost": cost(used)})
    if len(rows) > 1:
        total = {
            "lane": "all",
            "turns": everything.turns,
            "tokens_in": everything.tokens_in,
            "tokens_out": everything.tokens_out,
        }
        rows.append({**total, "cost": cost(everything)})
    return columns.shown(rows, _COLUMNS)
