"""``laneway`` beside a running gateway and without one."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.house import Process, ask, process
from tests.end_to_end.shell import Shell
from tests.fakes.telegram import ANA, BEN, FORUM, MAL, FakeTelegram

LANE_FIELDS = {
    *("lane", "title", "state", "turn", "since", "waiting", "engine", "model", "session"),
    "person",
}
TURN_FIELDS = {
    *("id", "lane", "kind", "origin", "person", "status", "received_at", "started_at", "ended_at"),
    *("delivery", "text", "answer", "engine", "tokens_in", "tokens_out", "cost_usd", "error"),
}
LISTINGS = ("lanes", "turns", "people")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d")


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Process]:
    async with process(tmp_path / "home", None) as running:
        yield running


async def listed(shell: Shell) -> list[Any]:
    """Every listing, as scripts read it."""
    found = await asyncio.gather(*(shell(name, "--json") for name in LISTINGS))
    return [one.json() for one in found]


def shell_of(gateway: Process) -> Shell:
    """A terminal with the settings of a running gateway."""
    shell = Shell(gateway.home)
    shell.environ = {**shell.environ, **gateway.environ}
    return shell


async def test_what_is_said_in_a_terminal_is_answered_there_as_it_streams(
    gateway: Process,
) -> None:
    shell = shell_of(gateway)
    said = await shell("say", "/say hello\n/say  there")
    assert (said.status, said.out, said.err) == (0, "hello there\n", "")
    said = await shell("say", "--lane", "second", "-", text="/say from standard input")
    assert (said.status, said.out) == (0, "from standard input\n")
    streaming = await shell.start("say", "/say first\n/sleep 2.5\n/say  last")
    assert streaming.stdout is not None
    async with asyncio.timeout(30):
        assert await streaming.stdout.readexactly(5) == b"first"
    assert streaming.returncode is None
    out, _ = await streaming.communicate()
    assert out == b" last\n"
    failed = await shell("say", "/say half\n/error out of memory")
    assert failed.status == 1
    assert "half" in failed.out
    assert "out of memory" in failed.out


async def test_commands_work_in_a_terminal_and_reach_no_agent(gateway: Process) -> None:
    shell = shell_of(gateway)
    helped = await shell("say", "/help")
    assert helped.status == 0
    assert "/stop" in helped.out
    assert "Nothing to stop" in (await shell("say", "/stop")).out
    assert "/help" in (await shell("say", "/hepl")).out
    assert (await shell("turns", "--json")).json() == []


async def test_what_cannot_be_said_is_refused_in_words(gateway: Process) -> None:
    shell = shell_of(gateway)
    names = ("../other", "telegram:700000001", "a b", "x" * 65)
    for refused in await asyncio.gather(*(shell("say", "--lane", name, "hi") for name in names)):
        assert refused.status == 1
        assert "cannot name a lane" in refused.err
        assert "Traceback" not in refused.err
    unknown = await shell("turns", "nowhere")
    assert unknown.status == 1
    assert "there is no lane 'nowhere'" in unknown.err
    wrong = await shell("pair", "ABCDEFGH")
    assert wrong.status == 1
    assert "nobody waits with this code" in wrong.err
    empty = await shell("say", "  ")
    assert "no text" in empty.out
    assert (await shell("lanes", "--json")).status == 0  # it still runs


async def test_nobody_to_ask_is_a_no(gateway: Process) -> None:
    shell = shell_of(gateway)
    asked = await shell("say", "/approve rm -rf build\n/say done without it")
    assert asked.status == 0
    assert "rm -rf build" in asked.out
    assert "done without it" in asked.out
    assert "ran:" not in asked.out
    assert "terminal" in asked.err


async def test_an_end_of_the_terminal_does_not_end_the_turn(gateway: Process) -> None:
    shell = shell_of(gateway)
    leaving = await shell.start("say", "/sleep 2\n/say heard by nobody")
    while not any("heard by" in one["text"] for one in await ask(gateway.home, "turns")):
        await asyncio.sleep(0.01)
    leaving.send_signal(signal.SIGINT)
    _, told = await leaving.communicate()
    assert leaving.returncode == 130
    assert b"The turn goes on." in told
    assert b"laneway say --lane main /stop stops it" in told
    async with asyncio.timeout(30):
        while (await shell("turns", "--json")).json()[0]["status"] != "done":
            pass
    assert (await shell("say", "/say works")).out == "works\n"


async def test_listings_have_the_promised_fields_up_and_down(tmp_path: Path) -> None:
    async with FakeTelegram() as fake, process(tmp_path / "home", fake) as gateway:
        shell = shell_of(gateway)
        fake.user_says("@gw_bot /say hi\n/usage 10 5 0.25", chat=FORUM, thread=36)
        await fake.until(lambda: fake.texts(FORUM, 36) == ["hi"])
        await shell("say", "/say hello")
        up = await listed(shell)
        tables = await asyncio.gather(*(shell(name) for name in LISTINGS))
        assert all(table.out.count("\n") >= 2 for table in tables)
        one = (await shell("turns", f"telegram:{FORUM}:36", "--json")).json()
        assert [row["lane"] for row in one] == [f"telegram:{FORUM}:36"]
        assert await gateway.end(signal.SIGTERM) == 0
    down = await listed(shell)
    assert down[:2] == up[:2]
    assert [(row["person"], row["role"]) for row in down[2]] == [
        (row["person"], row["role"]) for row in up[2]
    ]
    lanes, turns, people = down
    assert {row["lane"] for row in lanes} == {f"telegram:{FORUM}:36", "main"}
    assert all(set(row) >= LANE_FIELDS and row["state"] == "idle" for row in lanes)
    assert all(set(row) >= TURN_FIELDS for row in turns)
    assert [(row["status"], row["delivery"], row["answer"]) for row in turns] == [
        ("done", "sent", "hi"),
        ("done", "sent", "hello"),
    ]
    assert (turns[0]["tokens_in"], turns[0]["tokens_out"], turns[0]["cost_usd"]) == (10, 5, 0.25)
    for row in turns:
        assert all(
            INSTANT.fullmatch(row[f"{when}_at"]) for when in ("received", "started", "ended")
        )
    roles = {row["person"]: row["role"] for row in people}
    assert roles[f"telegram:{ANA}"] == "admin"
    assert roles[f"telegram:{BEN}"] == "member"
    said = await shell("say", "hello")
    assert said.status == 1
    assert "laneway run" in said.err
    assert (await shell("turns", "nowhere")).status == 1


async def test_somebody_unknown_is_let_in_by_their_code(tmp_path: Path) -> None:
    async with FakeTelegram() as fake, process(tmp_path / "home", fake) as gateway:
        shell = shell_of(gateway)
        fake.user_says("hello", user=MAL)
        fake.user_says("/whoami", user=MAL)
        await fake.until(lambda: fake.shown(MAL))
        (told,) = fake.texts(MAL)
        assert f"telegram:{MAL}" in told
        found = re.search(r"laneway pair ([A-Z2-9]{8})", told)
        assert found, told
        people = (await shell("people", "--json")).json()
        (waiting,) = [row for row in people if row["person"] == f"telegram:{MAL}"]
        assert (waiting["role"], waiting["waiting"]) == ("", True)
        let_in = await shell("pair", found[1].lower())
        assert let_in.status == 0
        assert f"telegram:{MAL}" in let_in.out
        await fake.until(lambda: fake.texts(MAL)[-1].startswith("You are in"))
        fake.user_says("/say welcome", user=MAL)
        await fake.until(lambda: fake.texts(MAL)[-1] == "welcome")
        assert (await shell("pair", found[1])).status == 1  # a code is good once
        assert await gateway.end(signal.SIGINT) == 0
