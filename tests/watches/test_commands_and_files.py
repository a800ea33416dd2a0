"""Looks at commands and files: real processes, real files, and what is no file."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from pathlib import Path

import psutil
import pytest

from core.engines.processes import NoLedger
from core.engines.trees import living
from core.watch_asking import read_what
from core.watch_rules import Seen, Unseen, What
from core.watching import files
from core.watching.commands import CommandLook
from core.watching.files import FileLook
from core.watching.looks import Looking
from core.watching.pages import PageLook

LANE = "telegram:1"


def commands(home: Path, **more: float) -> CommandLook:
    return CommandLook(home, NoLedger(), **more)  # type: ignore[arg-type]


async def run(home: Path, command: str, **more: float) -> Seen | Unseen:
    return await commands(home, **more).look(command, LANE, home)


def alive(folder: Path) -> bool:
    """Whether the process runs whose number is written there."""
    try:
        return living(psutil.Process(int((folder / "pid").read_text())))
    except psutil.NoSuchProcess:
        return False


async def test_a_command_is_seen_with_its_output_and_exit_status(tmp_path: Path) -> None:
    saw = await run(tmp_path, "pwd; echo bad >&2; exit 3")
    assert saw == Seen(f"{tmp_path}\n", 3, size=len(str(tmp_path)) + 1, noise="bad\n")


async def test_a_command_gets_a_short_list_of_variables_and_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_TELEGRAM_TOKEN", "secret")
    monkeypatch.setenv("HANDED_ON", "yes")
    look = CommandLook(tmp_path, NoLedger(), ("HANDED_ON",))
    saw = await look.look("cat; env", LANE, tmp_path)
    assert isinstance(saw, Seen)
    names = {line.partition("=")[0] for line in saw.text.splitlines()}
    assert "HANDED_ON" in names
    assert "LANEWAY_TELEGRAM_TOKEN" not in names
    assert names <= {
        *("HANDED_ON", "HOME", "PATH", "LANG", "LC_ALL", "TZ", "TERM", "TMPDIR", "PWD", "SHLVL"),
        *("_", "OLDPWD", "LANEWAY_TURN_MARK"),
    }


async def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    began = time.monotonic()
    saw = await run(tmp_path, "sleep 300 & echo $! > pid; setsid sleep 301 & sleep 302", limit=0.5)
    assert saw == Unseen("the command took longer than 0.5 seconds and was ended")
    assert time.monotonic() - began < 30
    assert not alive(tmp_path)


async def test_what_a_command_leaves_running_is_ended_as_well(tmp_path: Path) -> None:
    saw = await run(tmp_path, "sleep 300 & echo $! > pid; echo done")
    assert isinstance(saw, Seen)
    assert saw.text == "done\n"
    assert not alive(tmp_path)


async def test_a_command_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    saw = await run(tmp_path, "yes", most=100_000)
    assert saw == Unseen("the command printed more than 97 kB and was ended")


async def test_a_look_that_is_given_up_leaves_nothing_running(tmp_path: Path) -> None:
    task = asyncio.create_task(run(tmp_path, "echo $$ > pid; sleep 300"))
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text().strip()):
        await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not alive(tmp_path)


# Files ------------------------------------------------------------------------------------


async def test_a_file_is_read_from_where_the_agent_works(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    assert await FileLook().look(tmp_path, "a.txt") == Seen("one\n", size=4)
    assert await FileLook().look(Path("/"), str(tmp_path / "a.txt")) == Seen("one\n", size=4)
    assert await FileLook().look(tmp_path, "none/a.txt") == Seen(there=False)


async def test_of_a_long_file_the_end_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST", 10)
    (tmp_path / "log").write_text("0123456789the end!!!")
    assert await FileLook().look(tmp_path, "log") == Seen("the end!!!", cut=True, size=20)


async def test_a_pipe_or_a_device_is_no_file_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    look = FileLook(limit=5)
    for path in ("pipe", "/dev/zero", "/dev/tty"):
        saw = await look.look(tmp_path, path)
        assert isinstance(saw, Unseen), path
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


async def test_a_folder_is_seen_as_the_names_in_it(tmp_path: Path) -> None:
    (tmp_path / "in" / "b").mkdir(parents=True)
    (tmp_path / "in" / "a").touch()
    saw = await FileLook().look(tmp_path, "in")
    assert isinstance(saw, Seen)
    assert saw.text == "a\nb"


async def test_the_gateways_own_files_are_kept_out_also_behind_a_link(tmp_path: Path) -> None:
    work = tmp_path / "workspaces" / "lane"
    work.mkdir(parents=True)
    (tmp_path / "laneway.db").write_text("secret")
    (work / "mine").write_text("x")
    (work / "link").symlink_to(tmp_path / "laneway.db")
    look = FileLook((tmp_path,), (tmp_path / "workspaces",))
    for path in ("../../laneway.db", "link", str(tmp_path / "laneway.db")):
        assert await look.look(work, path) == Unseen("it is a file of the gateway's own", True)
    assert await look.look(work, "mine") == Seen("x", size=1)


async def test_a_disk_that_hangs_costs_one_look_and_no_second_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, tried = asyncio.Event(), []
    loop = asyncio.get_running_loop()

    def hangs(self: FileLook, folder: Path, path: str) -> Seen:
        tried.append(path)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        return Seen("late")

    monkeypatch.setattr(FileLook, "_read", hangs)
    look = FileLook(limit=0.02)
    assert await look.look(tmp_path, "a") == Unseen("the disk does not answer")
    assert await look.look(tmp_path, "a") == Unseen("the disk does not answer")
    assert tried == ["a"]
    go_on.set()
    while look._hung:
        await asyncio.sleep(0.001)
    look.limit = 30.0  # this one answers
    assert await look.look(tmp_path, "a") == Seen("late")


# Where ------------------------------------------------------------------------------------


@pytest.fixture
def looking(tmp_path: Path) -> Looking:
    return Looking(tmp_path, "", PageLook(), commands(tmp_path), FileLook())


def what(words: str) -> What:
    return read_what(words)


async def test_commands_and_files_are_those_of_the_threads_own_folder(
    looking: Looking, tmp_path: Path
) -> None:
    saw = await looking.look(what('run "pwd; touch made" exit 0'), LANE, "")
    assert isinstance(saw, Seen)
    assert saw.text.startswith(str(tmp_path / "workspaces"))
    assert await looking.look(what("file made exists"), LANE, "") == Seen("")


async def test_a_folder_that_somebody_named_is_not_made(looking: Looking, tmp_path: Path) -> None:
    saw = await looking.look(what("run ls changed"), LANE, str(tmp_path / "none"))
    assert isinstance(saw, Unseen)
    assert "does not exist" in saw.why


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no such file here")
async def test_what_the_system_tells_of_the_gateway_itself_is_kept_out(tmp_path: Path) -> None:
    for path in ("/proc/self/environ", f"/proc/{os.getpid()}/cmdline", "/proc/thread-self/comm"):
        saw = await FileLook().look(tmp_path, path)
        assert saw == Unseen("it is a file of the gateway's own", True)
