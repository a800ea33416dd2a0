"""``laneway doctor``: every check, and how to mend what fails. It changes nothing."""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import zip_longest
from pathlib import Path

from channels import registry
from core import prices
from core.clock import SystemClock
from core.engines.acp import AcpEngine
from core.engines.base import Engine, Finding
from core.engines.processes import NoLedger
from core.lane_ids import LOCAL
from core.people import Role
from core.store import glance
from core.store.errors import StoreError
from core.wording import count
from gateway import saved
from gateway.channel_parts import wanted_channels
from gateway.choices import EngineName
from gateway.cli.border import as_json, plain
from gateway.cli.doctor_home import living
from gateway.cli.doctor_names import misspelled
from gateway.cli.doctor_signin import key_file, signing_in
from gateway.config import NO_HOME, BadSettings, Settings
from gateway.engine_parts import hearing, make_engines
from gateway.paths import DATABASE
from gateway.saved import Loaded

SETTINGS_FIX = "see .env.example for every setting and what it takes; change it where it was set"
HOME_FIX = "see its owner and mode with: ls -ld FOLDER"
SAVED_FIX = "open the settings page and enter it anew; it counts as not set until then"
FIRST_ADMIN = (
    "send /whoami to the bot, which tells your id; then set LANEWAY_ADMINS to it, like "
    "LANEWAY_ADMINS=telegram:700000001, and start again"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="an array of objects")


def main(options: argparse.Namespace) -> int:
    """0 when everything is well, 1 when something wants mending."""
    try:
        loaded = saved.look()
    except BadSettings as fault:
        findings = _wrong(fault.problems)
    else:
        settings = loaded.settings
        findings = [Finding("settings", True, "all of them can be read")]
        findings += misspelled(os.environ, (Path.cwd() / ".env", settings.home / ".env"))
        findings += _left_out(loaded)
        findings += asyncio.run(_all(settings))
    if options.json:
        print(as_json([asdict(finding) for finding in findings]))
    else:
        _show(findings)
    return 0 if all(finding.ok for finding in findings) else 1


def _show(findings: Sequence[Finding]) -> None:
    for finding, after in zip_longest(findings, findings[1:]):
        words = f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.detail}"
        print(plain(words))
        if finding.fix and (after is None or after.fix != finding.fix):  # once for all of them
            print(plain(f"      → {finding.fix}"))
    wrong = sum(not finding.ok for finding in findings)
    wants = "wants" if wrong == 1 else "want"
    print("All is well." if not wrong else f"{wrong} of {len(findings)} {wants} mending.")


def _wrong(problems: Iterable[str]) -> list[Finding]:
    """Settings that a start would refuse."""
    return [
        Finding("settings", False, one, HOME_FIX if one.startswith(NO_HOME) else SETTINGS_FIX)
        for one in problems
    ]


def _left_out(loaded: Loaded) -> list[Finding]:
    """What was saved on the page and does not count, and how much of it does."""
    if wrong := saved.problems(loaded.settled, loaded.key_trouble):
        return [Finding("saved settings", False, problem, SAVED_FIX) for problem in wrong]
    if not loaded.saved.values:
        return []
    return [Finding("saved settings", True, count(len(loaded.saved.values), "value"))]


async def _all(settings: Settings) -> list[Finding]:
    findings = [*living(settings), *key_file(settings.home), *_prices(settings.home)]
    findings += [*_waiting(settings), _people(settings), *await signing_in(settings)]
    async for some in _parts(settings):
        findings += some
    return findings


def _prices(home: Path) -> list[Finding]:
    """The table that tells what tokens cost, where there is one."""
    if not (home / prices.FILE).exists():
        return []
    engines = set(EngineName)
    if wrong := prices.problems(home, engines):
        fix = f"mend {home / prices.FILE}, or remove it: then costs are not known"
        return [Finding("prices", False, problem, fix) for problem in wrong]
    return [Finding("prices", True, f"of {count(len(prices.load(home, engines)), 'model')}")]


def _waiting(settings: Settings) -> list[Finding]:
    """What waits for a platform that is not set up any more."""
    if not (settings.home / DATABASE).exists():
        return []
    try:
        waiting = glance.open_by_channel(settings.home / DATABASE)
    except StoreError:
        return []  # the check of the database says it
    here = {LOCAL, *(wanted.name for wanted in wanted_channels(settings))}
    return [
        Finding(
            f"{name}: not set up",
            False,
            f"{count(left.turns, 'turn')} and {count(left.deliveries, 'message')} wait for it",
            "set its token again and restart: then they go on",
        )
        for name, left in sorted(waiting.items())
        if name not in here
    ]


def _people(settings: Settings) -> Finding:
    if not wanted_channels(settings):
        return Finding("people", True, "no platform is set up; the terminal of this machine is")
    roles: Mapping[str, str] = {}
    if (settings.home / DATABASE).exists():
        with suppress(StoreError):  # the check of the database says it
            roles = glance.roles(settings.home / DATABASE)
    admins = settings.admins | {who for who, role in roles.items() if role == Role.ADMIN}
    stored = {who for who, role in roles.items() if role == Role.MEMBER}
    members = (settings.members | stored) - admins
    return Finding(
        "people",
        bool(admins),
        f"{count(len(admins), 'admin')}, {count(len(members), 'member')}",
        "" if admins else FIRST_ADMIN,
    )


async def _parts(settings: Settings) -> AsyncIterator[list[Finding]]:
    for wanted in wanted_channels(settings):
        found = await registry.CHECKS[wanted.name](**wanted.options)
        yield [Finding(*one) for one in found]
    with tempfile.TemporaryDirectory(prefix="laneway-doctor-") as elsewhere:
        # What an engine leaves behind at a check is none of the home's.
        apart = replace(settings, home=Path(elsewhere))
        engines = make_engines(apart, SystemClock(), NoLedger())
        try:
            async for some in _engines(apart, engines, _used(settings)):
                yield some
        finally:
            for engine in engines.values():
                await engine.close()
    if ears := hearing(settings, SystemClock()):
        yield [await ears.check()]


async def _engines(
    settings: Settings, engines: Mapping[str, Engine], used: Collection[str]
) -> AsyncIterator[list[Finding]]:
    """Every engine that is set up or that somebody uses. ``used``: what threads have chosen."""
    stand_in = settings.fallback_engine.value if settings.fallback_engine is not None else ""
    if stand_in and stand_in not in engines:
        fix = f"set up {stand_in}, or name another in LANEWAY_FALLBACK_ENGINE"
        yield [Finding(f"{stand_in}: fallback", False, "it is not set up here", fix)]
    for name in sorted(set(used) - set(engines)):
        fix = f"set up {name}, or say /engine with another in the threads that use it"
        yield [Finding(f"{name}: threads", False, "some use it, and it is not set up here", fix)]
    wanted = {settings.engine.value, stand_in, "demo", *_set_up(settings), *used}
    for name in sorted(wanted & set(engines)):
        engine = engines[name]
        yield list(await engine.check())
        if isinstance(engine, AcpEngine) and name != "demo" and settings.acp_readonly_mode:
            yield [await engine.prove_read_only()]


def _set_up(settings: Settings) -> list[str]:
    """The engines that the settings tell how to reach; a program that merely lies here is none."""
    told = {
        EngineName.ACP: settings.acp_command,
        EngineName.OPENAI: settings.openai_base_url,
        EngineName.CLAUDE: settings.claude_command,
        EngineName.CODEX: settings.codex_command,
    }
    return [name.value for name, value in told.items() if value]


def _used(settings: Settings) -> frozenset[str]:
    """The engines that threads have chosen."""
    if (settings.home / DATABASE).exists():
        with suppress(StoreError):  # the check of the database says it
            return glance.lane_engines(settings.home / DATABASE)
    return frozenset()
