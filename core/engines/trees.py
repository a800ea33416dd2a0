"""Trees of processes as the system shows them: found by mark or descent, and swept at a start.

A process is recognised by its pid together with its start time, or by the marker that every
process of a lane inherits; a reused pid is never touched. Starts nothing and knows no protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

MARK = "LANEWAY_TURN_MARK"  # in the environment of everything an engine starts
SWEEP = 1.0  # seconds after KILL until what is still alive is set aside


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of a started process, so that a later start can find what is left."""

    pid: int
    created: float
    lane: str
    marker: str


def home_mark(home: Path) -> str:
    """The part of every marker that tells this home from another one on the same machine."""
    return hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]


def lane_mark(home: Path, lane: str) -> str:
    """A new marker, unique to one process tree of one lane of this home."""
    return f"{home_mark(home)}:{lane}:{secrets.token_hex(8)}"


def living(process: psutil.Process) -> bool:
    """Whether this very process runs; a zombie is over, its parent only has not looked yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def created(pid: int) -> float:
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0  # gone already; matches no other process


def marked(fits: Callable[[str], bool]) -> list[psutil.Process]:
    """Every process whose environment carries a fitting marker, except our own."""
    return [process for process, mark in _marks() if fits(mark)]


def _marks() -> Iterator[tuple[psutil.Process, str]]:
    for pid in psutil.pids():
        if pid == os.getpid():
            continue
        try:
            process = psutil.Process(pid)  # its start time is read before its environment
            mark = process.environ().get(MARK)
        except (psutil.Error, OSError):  # not ours to look at, or gone
            continue
        if mark is not None:
            yield process, mark


def tree(record: Record) -> list[psutil.Process]:
    found = marked(lambda mark: mark == record.marker)
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(record.pid)
        if abs(root.create_time() - record.created) < 0.01:
            # while the root is there its number cannot be another session's
            found += [root, *root.children(recursive=True), *_session(record.pid)]
    return found


def _session(number: int) -> list[psutil.Process]:
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(pid) == number:
                found.append(psutil.Process(pid))
    return found


@dataclass(frozen=True, slots=True)
class Swept:
    """How many processes a sweep ended, and a record of each that would not die."""

    ended: int
    survivors: tuple[Record, ...]


async def sweep(home: Path, records: Iterable[Record], grace: float = 2.0) -> Swept:
    """End what an earlier life of this home left behind; before any lane runs."""
    prefix = f"{home_mark(home)}:"
    left: dict[psutil.Process, Record] = {}
    records = tuple(records)
    loop = asyncio.get_running_loop()

    def note(process: psutil.Process, lane: str, marker: str) -> None:
        if process not in left:
            left[process] = Record(process.pid, created(process.pid), lane, marker)

    def look() -> list[psutil.Process]:
        for record in records:
            for process in tree(record):
                note(process, record.lane, record.marker)
        for process, mark in _marks():
            if mark.startswith(prefix):
                note(process, mark.removeprefix(prefix).rpartition(":")[0], mark)
        return [process for process in left if living(process)]

    alive = await asyncio.to_thread(look)
    start = loop.time()
    while alive and loop.time() < start + grace + SWEEP:
        number = signal.SIGTERM if loop.time() < start + grace / 2 else signal.SIGKILL
        for process in alive:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
        await asyncio.sleep(0.05)
        alive = await asyncio.to_thread(look)
    survivors = sorted((left[process] for process in alive), key=lambda record: record.pid)
    return Swept(len(left) - len(survivors), tuple(survivors))
