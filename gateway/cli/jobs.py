"""``laneway jobs`` and ``laneway job``."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from gateway import saved
from gateway.cli import columns
from gateway.cli.border import as_json, harmless, plain
from gateway.cli.client import Down, ask
from gateway.cli.parser import Parser
from gateway.config import Settings
from gateway.trouble import Trouble

if TYPE_CHECKING:
    from core.people import People
    from core.store.store import Store

_COLUMNS = {
    "id": "ID", "kind": "KIND", "lane": "LANE", "when": "WHEN", "state": "STATE", "next": "NEXT",
    "last": "LAST", "last_result": "RESULT", "prompt": "PROMPT",
}  # fmt: skip
NOTES = """\
A lane of this machine is made when it is new. WHEN is what laneway when takes, and may go on with
"catch up 1h", "skip missed", "if busy queue" or "budget 0.50". For example:
  laneway job add --lane main "every weekday at 9:00" "sum up what is new in the inbox"
  laneway job 3 pause
Works while the gateway runs and while it is down.
"""
_USAGE = 'job add --lane LANE "WHEN" PROMPT, or job ID pause|resume|run|cancel'


def jobs_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="an array of objects")


def job_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"laneway {_USAGE}"
    parser.epilog = NOTES
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="add|ID", help=_USAGE)


def jobs(options: argparse.Namespace) -> int:
    settings = saved.load()
    found = asyncio.run(ask(settings, {"do": "jobs"}, _down(settings, "list", {})))
    print(as_json(found) if options.json else columns.shown(found, _COLUMNS))
    return 0


def job(options: argparse.Namespace) -> int:
    words: list[str] = options.words
    if words[:1] == ["add"]:
        return _add(words[1:])
    parser = Parser(prog="laneway job", usage=f"laneway {_USAGE}")
    parser.add_argument("id", type=int, metavar="ID")
    parser.add_argument("verb", choices=("pause", "resume", "run", "cancel"))
    given = parser.parse_args(words)
    request = {"id": given.id, "verb": given.verb}
    settings = saved.load()
    done = asyncio.run(ask(settings, {"do": "job", **request}, _down(settings, "change", request)))
    later = " The gateway is down: it runs at the next start." if done["later"] else ""
    print(harmless(done["said"]) + (later if given.verb == "run" else ""))
    return 0


def _add(words: list[str]) -> int:
    parser = Parser(prog="laneway job add", epilog=NOTES)
    parser.add_argument("--lane", required=True, metavar="LANE", help="laneway lanes lists them")
    parser.add_argument("when", metavar="WHEN", help='"every day at 09:00 catch up 1h"')
    parser.add_argument("prompt", nargs="+", metavar="PROMPT", help="what to do then")
    given = parser.parse_args(words)
    request = {"lane": given.lane, "when": given.when, "prompt": " ".join(given.prompt)}
    settings = saved.load()
    made = asyncio.run(ask(settings, {"do": "job_add", **request}, _down(settings, "add", request)))
    print(plain(f"Job {made['id']} is set in {made['lane']}: {made['when']}. Next:"))
    for moment in made["coming"]:
        print(moment)
    return 0


def _down(settings: Settings, what: str, request: dict[str, Any]) -> Down:
    """The same in the database, while the gateway is down."""

    async def down(store: Store, people: People) -> Any:
        from gateway.job_parts import job_limits, zone_name
        from gateway.job_reports import JobReports

        reports = JobReports(store, people, job_limits(settings), zone_name(settings))
        try:
            return await getattr(reports, what)(request)
        except LookupError as fault:
            raise Trouble(str(fault)) from fault

    return down
