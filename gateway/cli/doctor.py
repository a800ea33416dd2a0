"""``laneway doctor``: every check, and how to mend what fails. It changes nothing."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from channels import registry
from core.clock import SystemClock
from core.engines.acp import AcpEngine
from core.engines.base import Engine, Finding
from core.engines.processes import NoLedger
from core.lane_ids import LOCAL
from core.store import glance, integrity
from core.store.errors import StoreError
from core.wording import count
from gateway import config
from gateway.cli.border import as_json, harmless
from gateway.config import BadSettings, Settings
from gateway.parts import make_engines, wanted_channels
from gateway.paths import DATABASE
from gateway.socket_path import answers, socket_path

LITTLE_SPACE = 200_000_000  # bytes free below which a disk is called almost full


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="an array of objects")


def main(options: argparse.Namespace) -> int:
    """0 when everything is well, 1 when something wants mending."""
    try:
        settings = config.load()
    except BadSettings as fault:
        findings = [Finding("settings", False, problem, "") for problem in fault.problems]
    else:
        findings = [Finding("settings", True, "all of them can be read")]
        findings += asyncio.run(_all(settings))
    if options.json:
        print(as_json([asdict(finding) for finding in findings]))
    else:
        _show(findings)
    return 0 if all(finding.ok for finding in findings) else 1


def _show(findings: Sequence[Finding]) -> None:
    for finding in findings:
        words = f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.detail}"
        print(harmless(words))
        if finding.fix:
            print(harmless(f"      → {finding.fix}"))
    wrong = sum(not finding.ok for finding in findings)
    print("All is well." if not wrong else f"{wrong} of {len(findings)} want mending.")


async def _all(settings: Settings) -> list[Finding]:
    findings = [*_home(settings.home), *_waiting(settings), _people(settings)]
    async for some in _parts(settings):
        findings += some
    return findings


def _home(home: Path) -> list[Finding]:
    """The home, the database in it, the disk it lies on, and whether a gateway runs there."""
    if not home.exists():
        return [Finding("home", True, f"{home} is made at the first start")]
    mode = home.stat().st_mode & 0o777
    closed = mode & 0o077 == 0
    found = [
        Finding("home", closed, f"{home}, mode {mode:o}", "" if closed else f"chmod 700 {home}")
    ]
    free = shutil.disk_usage(home).free
    fix = "" if free > LITTLE_SPACE else "free some space: nothing can be stored on a full disk"
    found.append(Finding("disk", free > LITTLE_SPACE, f"{free // 1_000_000} MB free", fix))
    database = home / DATABASE
    if database.exists():
        found.append(_database(database))
    running = answers(socket_path(home))
    found.append(Finding("gateway", True, "runs" if running else "does not run"))
    return found


def _database(path: Path) -> Finding:
    try:
        whole = integrity.check(path)
    except StoreError as fault:
        return Finding("database", False, str(fault), "laneway restore FILE puts a backup back")
    detail = "whole" if whole else "its structure is whole; it is too large to read it all here"
    return Finding("database", True, f"{path.name} ({path.stat().st_size // 1000} kB) is {detail}")


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
    if not settings.telegram_token:
        return Finding("people", True, "no platform is set up; the terminal of this machine is")
    admins = len(settings.admins)
    fix = (
        "" if admins else "send /whoami to the bot, then set LANEWAY_ADMINS, or: laneway pair CODE"
    )
    return Finding("people", bool(admins), f"{admins} admins, {len(settings.members)} members", fix)


async def _parts(settings: Settings) -> AsyncIterator[list[Finding]]:
    for wanted in wanted_channels(settings):
        found = await registry.CHECKS[wanted.name](**wanted.options)
        yield [Finding(*one) for one in found]
    with tempfile.TemporaryDirectory(prefix="laneway-doctor-") as elsewhere:
        # What an engine leaves behind at a check is none of the home's.
        apart = replace(settings, home=Path(elsewhere))
        engines = make_engines(apart, SystemClock(), NoLedger())
        try:
            async for some in _engines(apart, engines):
                yield some
        finally:
            for engine in engines.values():
                await engine.close()


async def _engines(
    settings: Settings, engines: Mapping[str, Engine]
) -> AsyncIterator[list[Finding]]:
    for name in sorted({settings.engine.value, "demo"} & set(engines)):
        engine = engines[name]
        yield list(await engine.check())
        if isinstance(engine, AcpEngine) and name != "demo" and settings.acp_readonly_mode:
            yield [await engine.prove_read_only()]
    if settings.engine.value not in engines:
        yield [
            Finding(
                "engine", False, f"{settings.engine.value} is not part of this version",
                "set LANEWAY_ENGINE to demo, or to acp with LANEWAY_ACP_COMMAND",
            )
        ]  # fmt: skip
