"""Processes of engines: what they get, how they end, and what is found after a crash."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from core.engines import processes
from core.engines.base import EngineUnready
from core.engines.processes import Child, NoLedger, environment, spawn
from core.engines.trees import MARK, Record, home_mark, lane_mark, living, sweep
from tests.contracts.engine_contract import processes_of, until

SLEEP = "import time; time.sleep(60)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", sys.argv[1]], start_new_session=True)
print(child.pid, flush=True)
sys.stdin.read()
"""


class Book(NoLedger):
    """A ledger in memory."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    async def add(self, record: Record) -> None:
        self.records.append(record)

    def remove(self, record: Record) -> None:
        self.records.remove(record)


class BrokenBook(NoLedger):
    async def add(self, record: Record) -> None:
        raise OSError("the disk is full")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for process in processes_of(tmp_path):
        process.kill()


@pytest.fixture
def book() -> Book:
    return Book()


async def start(home: Path, ledger: NoLedger, *arguments: str) -> Child:
    env = environment((), marker=lane_mark(home, "one"), tmp=home)
    return await spawn(
        [sys.executable, "-I", "-S", "-c", *arguments],
        folder=home, env=env, lane="one", ledger=ledger,
    )  # fmt: skip


@pytest.fixture
async def parent(home: Path, book: Book) -> AsyncIterator[tuple[Child, psutil.Process]]:
    """A process with a child in another session that ignores TERM."""
    child = await start(home, book, PARENT, DEAF)
    grandchild = psutil.Process(int(await child.read_line()))
    yield child, grandchild
    await child.end(0.2)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of ours."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEP])
    yield process
    process.kill()
    process.wait()


# Environment ------------------------------------------------------------------------------


def test_the_environment_is_an_allow_list(tmp_path: Path) -> None:
    source = {
        "HOME": "/home/ana", "PATH": "/bin", "LANG": "C.UTF-8", "TZ": "UTC", "KEY": "k",
        "CLAUDECODE": "1", "CLAUDE_CODE_SSE_PORT": "1", "LANEWAY_SLACK_APP_TOKEN": "x",
        "PYTHONPATH": "/x", "LD_PRELOAD": "/x", "TMPDIR": "/var/tmp", MARK: "outer",
    }  # fmt: skip
    assert environment(("KEY", "MISSING"), marker="m", tmp=tmp_path, source=source) == {
        "HOME": "/home/ana", "PATH": "/bin", "LANG": "C.UTF-8", "TZ": "UTC", "KEY": "k",
        "TMPDIR": str(tmp_path), MARK: "m",
    }  # fmt: skip


def test_markers_tell_homes_lanes_and_times_apart(tmp_path: Path) -> None:
    one, two = lane_mark(tmp_path, "a"), lane_mark(tmp_path, "a")
    assert one != two
    assert one.startswith(f"{home_mark(tmp_path)}:a:")
    assert home_mark(tmp_path) != home_mark(tmp_path / "other")


# Starting and ending ------------------------------------------------------------------------


async def test_a_process_is_on_record_while_it_lives(home: Path, book: Book) -> None:
    child = await start(home, book, SLEEP)
    assert [record.pid for record in book.records] == [child.pid]
    assert await child.end(1.0) == ()
    assert book.records == []


async def test_what_cannot_be_recorded_does_not_run(home: Path) -> None:
    with pytest.raises(OSError, match="disk is full"):
        await start(home, BrokenBook(), SLEEP)
    assert processes_of(home) == []


async def test_a_program_that_never_reads_is_ended_before_its_answers_fill_the_memory(
    home: Path, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "UNREAD_LIMIT", 500_000)
    child = await start(home, book, SLEEP)
    written = 0
    while child.write(b"x" * 100_000):
        written += 1
        assert written < 20
    assert await child.exited(5)
    assert not child.write(b"y")
    assert await child.end(1.0) == ()


async def test_an_empty_command_says_what_to_set(home: Path) -> None:
    with pytest.raises(EngineUnready, match="LANEWAY_ACP_COMMAND"):
        await spawn([], folder=home, env={}, lane="one", ledger=NoLedger())


async def test_the_end_of_input_is_enough_for_a_polite_program(home: Path, book: Book) -> None:
    child = await start(home, book, "import sys; sys.stdin.read()")
    start_time = time.monotonic()
    assert await child.end(40.0) == ()
    assert time.monotonic() - start_time < 20
    assert child.exit_code == 0


async def test_last_words_that_come_after_the_exit_is_known_are_heard(
    home: Path, book: Book
) -> None:
    child = await start(
        home,
        book,
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.close(1); time.sleep(0.1); sys.stderr.write('out of ink')\n",
    )
    assert await child.last_words(5.0) == "out of ink"
    await child.end(0.2)


async def test_last_words_are_not_waited_for_where_somebody_holds_the_pipe(
    parent: tuple[Child, psutil.Process],
) -> None:
    child, _ = parent
    os.kill(child.pid, signal.SIGKILL)
    assert await child.last_words(0.05) == ""


async def test_term_before_kill(home: Path, book: Book) -> None:
    child = await start(home, book, SLEEP)
    await child.end(1.0)
    await child.exited(1.0)
    assert child.exit_code == -signal.SIGTERM


async def test_children_that_ignore_term_die_with_the_rest(
    parent: tuple[Child, psutil.Process],
) -> None:
    child, grandchild = parent
    assert await child.end(0.8) == ()
    assert not living(grandchild)


async def test_children_outlive_their_parent_only_until_the_end(
    parent: tuple[Child, psutil.Process],
) -> None:
    child, grandchild = parent
    os.kill(child.pid, signal.SIGKILL)
    assert await child.exited(5.0)
    assert living(grandchild)
    assert await child.end(0.4) == ()
    assert not living(grandchild)


async def test_ending_twice_is_ending_once(home: Path, book: Book) -> None:
    child = await start(home, book, DEAF)
    async with asyncio.TaskGroup() as group:
        group.create_task(child.end(0.4))
        group.create_task(child.end(0.4))
    assert child.over
    assert await child.end(5.0) == ()


async def test_a_cancelled_end_kills_at_once(home: Path, book: Book) -> None:
    child = await start(home, book, DEAF)
    async with asyncio.TaskGroup() as group:
        ending = group.create_task(child.end(30.0))
        await until(lambda: child.stdin.is_closing())
        ending.cancel()
    await until(lambda: not processes_of(home))
    await child.end(0.0)


async def test_a_reused_pid_is_not_touched(
    home: Path, book: Book, stranger: subprocess.Popen[bytes]
) -> None:
    child = await start(home, book, "pass")
    await child.exited(5.0)
    child.record = Record(stranger.pid, child.record.created - 5, "one", child.record.marker)
    book.records = [child.record]
    await child.end(0.2)
    assert stranger.poll() is None


async def test_writing_to_a_dead_process_says_that_nothing_left(home: Path, book: Book) -> None:
    child = await start(home, book, "pass")
    await child.exited(5.0)
    assert not child.write(b"hello\n")
    await child.end(0.0)


# After a crash of the gateway ----------------------------------------------------------------

CRASHING = """
import asyncio, os, pathlib, signal, sys
sys.path.insert(0, sys.argv[1])
from core.engines.processes import NoLedger, environment, spawn
from core.engines.trees import lane_mark

async def main():
    home = pathlib.Path(sys.argv[2])
    env = environment((), marker=lane_mark(home, "one"), tmp=home)
    child = await spawn([sys.executable, "-I", "-S", "-c", *sys.argv[3:]],
                        folder=home, env=env, lane="one", ledger=NoLedger())
    print(int(await child.read_line()), child.record.pid, child.record.created, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def killed_gateway(home: Path) -> tuple[psutil.Process, Record]:
    """A gateway's process that died by KILL in the middle of a turn; what it left, its record."""
    project = str(Path(__file__).parents[2])
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CRASHING, project, str(home), PARENT, DEAF,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert program.stdout is not None
    grandchild, pid, created = (await program.stdout.readline()).split()
    assert await program.wait() == -signal.SIGKILL
    return psutil.Process(int(grandchild)), Record(int(pid), float(created), "one", "")


async def test_a_start_ends_what_a_killed_gateway_left(home: Path) -> None:
    left, record = await killed_gateway(home)
    assert living(left)
    swept = await sweep(home, [record], grace=0.4)
    assert swept.ended >= 1
    assert swept.survivors == ()
    assert not living(left)


async def test_another_homes_processes_are_left_alone(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    left, _ = await killed_gateway(home)
    other = tmp_path_factory.mktemp("other")
    assert (await sweep(other, [])).ended == 0
    assert living(left)
    await sweep(home, [], grace=0.2)
    assert not living(left)


async def test_a_record_whose_pid_was_reused_is_left_alone(
    home: Path, stranger: subprocess.Popen[bytes]
) -> None:
    swept = await sweep(home, [Record(stranger.pid, 1.0, "one", "gone")])
    assert swept.ended == 0
    assert stranger.poll() is None


async def test_a_sweep_of_nothing_is_quick(home: Path) -> None:
    start_time = time.monotonic()
    await sweep(home, [], grace=40.0)
    assert time.monotonic() - start_time < 20
