"""``laneway say`` in a real terminal, and when the gateway goes away under it."""

import asyncio
import json
import os
import pty
import re
import signal
import time
from pathlib import Path

import pytest

from gateway.socket_path import socket_path
from tests.end_to_end.house import BUSY, ask, process
from tests.end_to_end.shell import Shell
from tests.end_to_end.starting import Child, start
from tests.fakes.telegram import MAL, FakeTelegram


class Terminal:
    """A person at a terminal: types lines, reads what is shown."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.shown = ""

    async def run(self, *words: str) -> Child:
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        files = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        child = await start(words, self._shell.environ, **files, session=True)
        os.close(theirs)
        return child

    async def until(self, words: str) -> None:
        end = time.monotonic() + 30
        while words not in self.shown:
            self.read()
            await asyncio.sleep(0.02)
            assert time.monotonic() < end, self.shown

    def read(self) -> None:
        try:
            self.shown += os.read(self._ours, 65536).decode()
        except (BlockingIOError, OSError):
            return

    def type(self, line: str) -> None:
        os.write(self._ours, line.encode() if line == "\x04" else f"{line}\n".encode())

    async def choose(self, label: str, question: str) -> None:
        """Type the number that stands for it, once the question is asked."""
        await self.until(question)
        while not (found := re.search(rf"(\d+) {label}", self.shown.rpartition(question)[2])):
            self.read()
            await asyncio.sleep(0.02)
        self.type(found[1])

    def close(self) -> None:
        self.read()
        os.close(self._ours)


async def test_a_person_at_a_terminal_decides_by_number(tmp_path: Path) -> None:
    async with process(tmp_path / "home", None):
        terminal = Terminal(Shell(tmp_path / "home"))
        child = await terminal.run("say", "/approve make clean\n/approve make all")
        await terminal.until("[1 Allow, 2 Always here, 3 Deny]")
        assert "make clean" in terminal.shown
        terminal.type("7")
        await terminal.until("a number from 1 to 3")
        terminal.type("1")
        await terminal.choose("Deny", "make all")
        await terminal.until("denied: make all")
        assert "ran: make clean" in terminal.shown
        async with asyncio.timeout(30):
            assert await child.wait() == 0
        terminal.close()


async def test_a_question_that_a_closed_terminal_left_is_answered_at_the_next(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with process(home, None):
        shell = Shell(home)
        left = Terminal(shell)
        leaving = await left.run("say", "/approve make clean\n/approve make all")
        await left.until("[1 Allow, 2 Always here, 3 Deny]")
        leaving.send_signal(signal.SIGINT)
        async with asyncio.timeout(30):
            assert await leaving.wait() == 130
        left.read()
        card = left.shown[: left.shown.index("[1 Allow")]
        left.close()

        piped = await shell.start("say", "/say by a script")  # it decides nothing for others
        here, there = Terminal(shell), Terminal(shell)
        children = [
            await one.run("say", f"/say {name}") for one, name in ((here, "h"), (there, "t"))
        ]
        for one in (here, there):
            await one.until("[1 Allow, 2 Always here, 3 Deny]")
            assert card in one.shown, "the same words"
        here.type("\x04")  # Ctrl-D
        await here.until("Nothing was decided.")
        here.type("1")  # what came since has numbers of its own
        await there.until("Allowed by Owner")
        await there.choose("Deny", "make all")  # asked while they wait
        await here.until("Denied by Owner")
        async with asyncio.timeout(30):
            assert [await child.wait() for child in children] == [0, 0]
            out, _ = await piped.communicate()
        for one in (here, there):
            one.close()
        assert b"asks to run" not in out
        first, *_ = (await shell("turns", "--json")).json()
        assert "ran: make clean" in first["answer"]
        assert "denied: make all" in first["answer"]


async def test_a_terminal_that_does_not_read_holds_up_nobody_and_no_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    limits = {"LANEWAY_DRAIN_TIMEOUT": "1s", "LANEWAY_STOP_GRACE": "1s"}
    async with process(home, None, **limits) as gateway:
        shell = Shell(home)
        # What is said is listed as it was said: more than a socket and its buffers take.
        assert (await shell("say", "-", text=f"/say ok\n/think {'x' * 2_000_000}")).out == "ok\n"
        deaf = [await asyncio.open_unix_connection(socket_path(home)) for _ in range(2)]
        for (_, writer), what in zip(deaf, ("turns", "say"), strict=True):
            request = {"do": what, "text": "/say hello\n/approve make\n/sleep 60"}
            writer.write(f"{json.dumps(request)}\n".encode())
        async with asyncio.timeout(30):
            while (await ask(home, "lanes"))[0]["state"] != "asking":
                await asyncio.sleep(0.02)
        began = time.monotonic()
        assert await gateway.end(signal.SIGTERM) == 0
        assert time.monotonic() - began < 1 + 1 + 5 + BUSY
        for _, writer in deaf:
            writer.close()


async def test_what_an_agent_writes_does_not_steer_the_terminal(tmp_path: Path) -> None:
    async with process(tmp_path / "home", None):
        terminal = Terminal(Shell(tmp_path / "home"))
        child = await terminal.run("say", "/say \x1b]0;owned\x07\x1b[2J\x9b31mred")
        await terminal.until(r"\x1b]0;owned\x07\x1b[2J\x9b31mred")
        assert "\x1b" not in terminal.shown
        async with asyncio.timeout(30):
            assert await child.wait() == 0
        terminal.close()


async def test_a_script_is_told_in_one_line_how_to_be_asked(tmp_path: Path) -> None:
    async with process(tmp_path / "home", None):
        asked = await Shell(tmp_path / "home")("say", "/approve make \u202eclean")
    assert asked.status == 0
    (told,) = asked.err.strip().splitlines()
    assert "laneway say in a terminal" in told
    assert "buttons of a chat" in told
    assert r"make \u202eclean" in asked.out
    assert "Denied: nobody could be asked" in asked.out
    assert "Owner" not in asked.out
    assert "denied: make" in asked.out


async def test_a_terminal_shows_its_own_turn_and_not_the_one_it_waits_behind(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with process(home, None):
        shell = Shell(home)
        first = await shell.start("say", "/say begun\n/sleep 2\n/approve make\n/say  ended")
        assert first.stdout is not None
        async with asyncio.timeout(30):
            assert await first.stdout.readexactly(5) == b"begun"
        second = await shell.start("say", "/say mine\n/sleep 1\n/say  too")
        assert second.stdout is not None
        async with asyncio.timeout(30):
            waits = (await second.stdout.readexactly(7)).decode()
        third = await shell("say", "/say last")
        waits += (await second.communicate())[0].decode()
        await first.communicate()
    for out, answer in ((waits, "mine too"), (third.out, "last")):
        *before, shown = out.splitlines()
        assert shown == answer
        assert before
        assert all(line.startswith("Waiting: ") for line in before)
    assert all(row["status"] == "done" for row in (await shell("turns", "--json")).json())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_gateway_that_goes_away_is_said_in_words(
    tmp_path: Path, number: signal.Signals
) -> None:
    home = tmp_path / "home"
    async with process(home, None, LANEWAY_DRAIN_TIMEOUT="1s", LANEWAY_STOP_GRACE="1s") as gateway:
        child = await Shell(home).start("say", "/say half\n/sleep 60")
        assert child.stdout is not None
        async with asyncio.timeout(30):
            assert await child.stdout.readexactly(4) == b"half"
        await gateway.end(number)
        async with asyncio.timeout(30):
            out, err = await child.communicate()
        assert child.returncode == 1
        assert b"Traceback" not in err
        assert b"unfinished" in out or b"laneway turns" in err
    doctor = await Shell(home)("doctor")
    assert "gateway: does not run" in doctor.out
    (turn,) = (await Shell(home)("turns", "--json")).json()
    assert turn["answer"] in ("half", "")


async def test_somebody_is_let_in_while_the_gateway_is_down(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with FakeTelegram() as fake:
        async with process(home, fake) as gateway:
            fake.user_says("/start", user=MAL)
            await fake.until(lambda: fake.shown(MAL))
            await gateway.end(signal.SIGTERM)
        found = re.search(r"laneway pair (\w{8})", fake.texts(MAL)[0])
        assert found
        shell = Shell(home, fake)
        people = (await shell("people", "--json")).json()
        assert [row["waiting"] for row in people if row["person"] == f"telegram:{MAL}"] == [True]
        assert (await shell("pair", found[1])).status == 0
        async with process(home, fake):
            await fake.until(lambda: fake.texts(MAL)[-1].startswith("You are in"))
            fake.user_says("/say welcome", user=MAL)
            await fake.until(lambda: fake.texts(MAL)[-1] == "welcome")
            assert (await shell("backup", str(tmp_path / "nowhere" / "copy.db"))).status == 1
            made = await shell("backup", str(tmp_path / "copy.db"))
            assert made.status == 0
            again = await shell("backup", str(tmp_path / "copy.db"))  # the newer one counts
            assert again.status == 0
