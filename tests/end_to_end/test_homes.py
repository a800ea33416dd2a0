"""A home from its first start on: who may use it, what is wrong with it, copies of it."""

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from gateway.socket_path import socket_path
from tests.end_to_end.house import process
from tests.end_to_end.shell import Shell
from tests.end_to_end.starting import Child
from tests.fakes.telegram import ANA, TOKEN, FakeTelegram

PLAIN = {"LANEWAY_LOG_FORMAT": "text", "LANEWAY_LOG_LEVEL": "warning"}


async def ready(shell: Shell) -> Child:
    """A gateway that has printed its ready line in the text log."""
    child = await shell.start("run")
    assert child.stdout is not None
    async with asyncio.timeout(30):
        while (line := await child.stdout.readline()) != b"ready\n":
            assert line, (await child.communicate())[1].decode()
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_ready_is_a_line_of_its_own_and_an_orderly_end_is_0(
    tmp_path: Path, number: signal.Signals
) -> None:
    child = await ready(Shell(tmp_path / "home", **PLAIN))
    child.send_signal(number)
    out, err = await child.communicate()
    assert (child.returncode, out, err) == (0, b"", b"")
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


async def test_all_that_is_wrong_with_the_settings_is_listed_at_once(tmp_path: Path) -> None:
    wrong = {
        "LANEWAY_MAX_TURNS": "many", "LANEWAY_MAX_TURN": "8", "LANEWAY_STOP_GRACE": "soon",
        "LANEWAY_ADMINS": "@ana", "LANEWAY_ACP_COMMAND": "",
    }  # fmt: skip
    done = await Shell(tmp_path / "home", **wrong)("run")
    assert done.status == 2
    assert done.err.count("\n  - ") == len(wrong)
    assert all(name in done.err for name in wrong)
    assert "Traceback" not in done.err
    assert not (tmp_path / "home").exists()


async def test_a_home_has_one_gateway_and_an_address_too(tmp_path: Path) -> None:
    async with process(tmp_path / "home", None) as first:
        port = first.environ["LANEWAY_WEB_PORT"]
        second, other = await asyncio.gather(
            Shell(tmp_path / "home")("run"),
            Shell(tmp_path / "other", LANEWAY_WEB_PORT=port)("run"),
        )
        assert second.status == 1
        assert str(tmp_path / "home") in second.err
        assert other.status == 1
        assert f"127.0.0.1:{port}" in other.err
        assert "LANEWAY_WEB_PORT" in other.err
        assert "Traceback" not in second.err + other.err
        shell = Shell(tmp_path / "home")
        assert (await shell("say", "/say still here")).out == "still here\n"
        assert await first.end(signal.SIGTERM) == 0


async def test_commands_without_a_gateway_do_not_keep_each_other_or_a_start_away(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with process(home, None) as gateway:
        await gateway.end(signal.SIGTERM)
    shell = Shell(home, **PLAIN)
    looks = [asyncio.create_task(shell("lanes", "--json")) for _ in range(3)]
    child = await ready(shell)
    for done in await asyncio.gather(*looks):
        assert (done.status, done.out, done.err) == (0, "[]\n", "")
    child.send_signal(signal.SIGTERM)
    await child.communicate()
    assert child.returncode == 0


async def test_a_home_too_deep_for_a_socket_works_all_the_same(tmp_path: Path) -> None:
    home = tmp_path / "/".join(["deep" * 10] * 4)
    home.parent.mkdir(parents=True)
    async with process(home, None) as gateway:
        assert (await Shell(home)("say", "/say from below")).out == "from below\n"
        folder = socket_path(home).parent
        assert folder != home
        assert folder.stat().st_mode & 0o777 == 0o700
        assert await gateway.end(signal.SIGTERM) == 0
    assert not socket_path(home).exists()
    assert (await Shell(home)("turns", "--json")).json()[0]["answer"] == "from below"


async def test_a_damaged_database_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with process(home, None) as gateway:
        await gateway.end(signal.SIGTERM)
    database, shell = home / "laneway.db", Shell(home)
    whole = database.read_bytes()
    for content in (
        whole[:8192] + bytes(4096) + whole[12288:],
        whole[: len(whole) // 2],
        b"this is no database\n" * 1000,
    ):
        database.write_bytes(content)
        for done in await asyncio.gather(shell("run"), shell("lanes")):
            assert done.status == 1
            assert "laneway.db" in done.err
            assert "Traceback" not in done.err
        assert "laneway restore" in (await shell("run")).err
        assert database.read_bytes() == content
    doctor = await shell("doctor", "--json")
    assert doctor.status == 1
    assert not next(one for one in doctor.json() if one["name"] == "database")["ok"]


async def test_a_copy_is_made_while_it_runs_and_put_back_with_everything_held(
    tmp_path: Path,
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    async with FakeTelegram() as fake:
        async with process(home, fake) as gateway:
            shell = Shell(home, fake)
            fake.user_says("/say before\n/sleep 60")
            fake.user_says("/say waits")
            await fake.until(lambda: any("before" in text for text in fake.texts(ANA)))
            made = await shell("backup", str(copy))
            assert made.status == 0
            assert "key" in made.out
            assert (await shell("restore", str(copy))).status == 1  # it runs
            fake.user_says("/stop")
            await fake.until(lambda: any("stopped" in text for text in fake.texts(ANA)))
            await fake.until(lambda: not any("Waiting" in text for text in fake.texts(ANA)))
            await gateway.end(signal.SIGTERM)
        there = await shell("restore", str(copy))
        assert there.status == 1
        assert "--force" in there.err
        shown = fake.texts(ANA)
        back = await shell("restore", "--force", str(copy))
        assert back.status == 0
        assert "Held back: 2 turns" in back.out
        async with process(home, fake) as gateway:
            assert (await shell("say", "/say works")).out == "works\n"
            turns = (await shell("turns", f"telegram:{ANA}", "--json")).json()
            assert [row["held"] for row in turns] == [True, True]
            assert (await shell("turns")).out.count(", held") == 2
            assert fake.texts(ANA) == shown
            released = await shell("turns", "--release")
            assert "Released 2 turns" in released.out
            await fake.until(lambda: fake.texts(ANA)[-1] == "waits")
            await gateway.end(signal.SIGTERM)
        with closing(sqlite3.connect(home / "laneway.db")) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_copy_that_is_none_is_not_put_back(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    file = tmp_path / "letter.txt"
    file.write_text("dear reader")
    for name in (str(file), str(tmp_path / "nowhere.db")):
        done = await shell("restore", name)
        assert done.status == 1
        assert name in done.err
        assert "Traceback" not in done.err
    assert (await shell("backup", str(tmp_path / "copy.db"))).status == 1
    assert (await shell("lanes", "--json")).json() == []
    assert not (tmp_path / "home" / "laneway.db").exists()


async def test_a_copy_is_put_over_an_older_copy_and_over_nothing_else(tmp_path: Path) -> None:
    letter, empty, folder = tmp_path / "letter.txt", tmp_path / "empty.db", tmp_path / "folder"
    letter.write_text("dear reader")
    empty.touch()
    folder.mkdir()
    async with process(tmp_path / "home", None):
        shell = Shell(tmp_path / "home")
        for path in (letter, folder):
            refused = await shell("backup", str(path))
            assert refused.status == 1
            assert f"{path} is" in refused.err
            assert "name a" in refused.err
        assert letter.read_text() == "dear reader"
        for _ in range(2):
            assert (await shell("backup", str(empty))).status == 0


async def test_a_second_start_of_a_home_is_told_of_the_home_and_not_of_its_port(
    tmp_path: Path,
) -> None:
    async with process(tmp_path / "home", None) as first:
        port = first.environ["LANEWAY_WEB_PORT"]
        second = await Shell(tmp_path / "home", LANEWAY_WEB_PORT=port)("run")
        assert second.status == 1
        assert f"{tmp_path / 'home'} is in use by another Laneway" in second.err


async def test_a_start_refuses_a_mode_without_its_secret(tmp_path: Path) -> None:
    home = tmp_path / "home"
    hooks = Shell(home, LANEWAY_SLACK_MODE="webhook", LANEWAY_WEB_URL="https://example.org")
    refused, found = await asyncio.gather(hooks("run"), hooks("doctor", "--json"))
    assert refused.status == 2
    assert "LANEWAY_SLACK_MODE=webhook also needs LANEWAY_SLACK_SIGNING_SECRET" in refused.err
    (wrong,) = [one for one in found.json() if not one["ok"]]
    assert "LANEWAY_SLACK_MODE" in wrong["detail"]
    assert ".env.example" in wrong["fix"]


async def test_the_doctor_counts_who_was_let_in_and_shows_the_way_to_the_first_admin(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with FakeTelegram() as fake:
        nobody = Shell(home, fake, LANEWAY_ADMINS="")
        (people,) = [o for o in (await nobody("doctor", "--json")).json() if o["name"] == "people"]
        assert (people["ok"], people["detail"]) == (False, "0 admins, 1 member")
        assert "/whoami" in people["fix"]
        assert "LANEWAY_ADMINS" in people["fix"]
        assert "laneway pair" not in people["fix"]
        async with process(home, fake) as gateway:
            await gateway.end(signal.SIGTERM)
        with closing(sqlite3.connect(home / "laneway.db")) as database, database:
            for person, role in (("telegram:5", "admin"), ("telegram:6", "member")):
                database.execute(
                    "INSERT INTO people (id, name, role, added_at) VALUES (?, '', ?, 1)",
                    (person, role),
                )
        assert "people: 1 admin, 2 members" in (await nobody("doctor")).out


async def test_the_doctor_finds_what_is_well_and_what_is_not(tmp_path: Path) -> None:
    async with FakeTelegram() as fake:
        shell = Shell(tmp_path / "home", fake)
        well = await shell("doctor")
        assert well.status == 0, well.out
        assert "All is well." in well.out
        fake.revoke()
        token = await shell("doctor", "--json")
        assert token.status == 1
        wrong = [one for one in token.json() if not one["ok"]]
        assert [one["name"] for one in wrong] == ["telegram token"]
        assert all(one["fix"] for one in wrong)
        assert TOKEN not in token.out + token.err
    agent, bad = await asyncio.gather(
        Shell(tmp_path / "home", LANEWAY_ACP_COMMAND="/nowhere/agent")("doctor", "--json"),
        Shell(tmp_path / "home", LANEWAY_MAX_TURNS="many", LANEWAY_NO="1")("doctor"),
    )
    assert agent.status == 1
    assert "/nowhere/agent" in json.dumps([one for one in agent.json() if not one["ok"]])
    assert bad.status == 1
    assert bad.out.count("→") == 1, "both are mended in the same way"
    assert "2 of 2 want mending." in bad.out
    assert "LANEWAY_MAX_TURNS" in bad.out
    assert "LANEWAY_NO" in bad.out


async def test_the_doctor_says_what_waits_for_a_platform_that_is_not_set_up(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with FakeTelegram() as fake:
        async with process(home, fake) as gateway:
            fake.user_says("/say begun\n/hang")
            await fake.until(lambda: any("begun" in text for text in fake.texts(ANA)))
            await gateway.end(signal.SIGKILL)
        with_token, without = Shell(home, fake), Shell(home)
        async with process(home, None):  # the platform's turns wait, everything else goes on
            assert (await without("say", "/say works")).out == "works\n"
            beside = await without("doctor")
        after, again = await asyncio.gather(without("doctor"), with_token("doctor", "--json"))
    for found in (beside, after):
        assert found.status == 1
        assert "FAIL  telegram: not set up: 1 turn" in found.out
        assert "1 of " in found.out
    assert "telegram: not set up" not in again.out


async def test_the_doctor_proves_the_read_only_mode_and_leaves_no_agent(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home", LANEWAY_ACP_READONLY_MODE="read-only")
    proven = await shell("doctor", "--json")
    assert proven.status == 0, proven.out
    assert [one["detail"] for one in proven.json() if one["name"] == "acp: read-only mode"][-1] == (
        "“read-only” could not write a file"
    )
    state = str(tmp_path / "home-agent")
    lines = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if state in line] == []


async def test_before_the_first_start_nothing_is_known_and_a_job_can_be_set(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shell = Shell(home)
    for words in (("lanes",), ("turns",), ("jobs",), ("usage",)):
        done = await shell(*words, "--json")
        assert (done.status, done.json()) == (0, [])
        assert f"no database in {home} yet" in done.err
    assert (await shell("pair", "NOBODY")).status == 1
    assert not home.exists()
    assert (await shell("job", "add", "--lane", "main", "every day at 09:00", "news")).status == 0
    (job,) = (await shell("jobs", "--json")).json()
    assert (job["lane"], job["when"], job["prompt"]) == ("main", "every day at 09:00", "news")
    assert home.stat().st_mode & 0o777 == 0o700
