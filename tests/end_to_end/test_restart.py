"""Shutting down and coming back: what runs gets its time, what comes meanwhile is kept."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.end_to_end.house import BUSY, House, ask, process, until
from tests.end_to_end.looking import cards, in_state, quick, said, turns, typing
from tests.end_to_end.test_stop import agents, stamps
from tests.fakes.telegram import ANA, BEN, FORUM, FakeTelegram

LANE = f"telegram:{ANA}"
TOPIC = f"telegram:{FORUM}:36"


@contextlib.asynccontextmanager
async def shutting_down(house: House) -> AsyncIterator[asyncio.Task[None]]:
    """The gateway has been asked to end and still runs; it is gone afterwards."""
    house.running.stop()
    ending = asyncio.create_task(house.stop_gateway(), name="the end of the gateway")
    await until(lambda: house.running.reasons() == ["shutting down"])
    yield ending
    await ending


async def working(house: House, script: str) -> None:
    house.fake.user_says(script)
    await in_state(house, LANE, "running")


# Draining ----------------------------------------------------------------------------------


async def test_a_turn_that_ends_within_the_drain_is_delivered_whole(tmp_path: Path) -> None:
    async with quick(tmp_path, LANEWAY_DRAIN_TIMEOUT="32s") as house:
        fake = house.fake
        await working(house, "/say half\n/sleep 1\n/say  whole")
        async with shutting_down(house):
            fake.user_says("/say meanwhile")
            fake.user_says("/say meanwhile too", user=BEN)
            await fake.until(lambda: said(fake, ANA, "restarting"))
            await fake.until(lambda: said(fake, BEN, "restarting"))
        assert "half whole" in fake.texts(ANA)
        await house.start_gateway()
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["meanwhile"])
        await fake.until(lambda: fake.texts(BEN)[-1:] == ["meanwhile too"])
        await house.idle(LANE)
        assert [turn["status"] for turn in await turns(house)] == ["done"] * 3
        await fake.until(lambda: not said(fake, ANA, "restarting"))


async def test_a_turn_that_outlasts_the_drain_is_closed_told_once_and_can_be_continued(
    tmp_path: Path,
) -> None:
    more = {"LANEWAY_DRAIN_TIMEOUT": "4s"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        await working(house, "/say half\n/sleep 60")
        await fake.until(lambda: said(fake, ANA, "half"))
        began = time.monotonic()
        async with shutting_down(house):
            fake.user_says("/say meanwhile")
        assert time.monotonic() - began < 1 + 1 + 5 + BUSY
        assert agents(tmp_path) == []
        assert said(fake, ANA, "(unfinished)") == said(fake, ANA, "cut off") == 1
        for _ in range(2):
            await house.start_gateway()
            await fake.until(lambda: "meanwhile" in fake.texts(ANA))
            await house.idle(LANE)
            assert said(fake, ANA, "cut off") == 1
            await house.stop_gateway()
        assert ["Continue"] in map(fake.buttons, fake.shown(ANA))


async def test_continue_goes_on_in_the_same_session_once(tmp_path: Path) -> None:
    more = {"LANEWAY_DRAIN_TIMEOUT": "0s"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        await working(house, "/say half\n/sleep 60")
        await house.stop_gateway()
        await house.start_gateway()
        await fake.until(lambda: said(fake, ANA, "cut off"))
        fake.press("Continue")
        await in_state(house, LANE, "running")
        told, going_on = await turns(house)
        assert (told["status"], going_on["origin"]) == ("interrupted", "continue")
        fake.press("Continue", message=next(m for m in fake.shown(ANA) if "cut off" in m["text"]))
        fake.user_says("/stop")
        await in_state(house, LANE, "idle")
        assert len(await turns(house)) == 2


async def test_commands_stops_and_approvals_work_while_it_shuts_down(tmp_path: Path) -> None:
    more = {"LANEWAY_DRAIN_TIMEOUT": "120s"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        fake.user_says("/approve rm x\n/say after\n/hang on")
        await fake.until(lambda: cards(fake, ANA))
        async with shutting_down(house) as ending:
            fake.user_says("/status")
            await fake.until(lambda: said(fake, ANA, "State:"))
            fake.press("Allow")
            await fake.until(lambda: said(fake, ANA, "Allowed"))
            await fake.until(lambda: said(fake, ANA, "after"))
            fake.user_says("/stop")
            await asyncio.wait((ending,), timeout=10)
            assert ending.done()
        assert said(fake, ANA, "Ana stopped") == 1
        assert not said(fake, ANA, "cut off")


async def test_what_waited_when_it_shut_down_runs_in_its_old_order_afterwards(
    tmp_path: Path,
) -> None:
    more = {"LANEWAY_DRAIN_TIMEOUT": "0s"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        await working(house, "/hang on")
        for word in ("one", "two", "three"):
            fake.user_says(f"/say {word}")
        await fake.until(lambda: said(fake, ANA, "Waiting: 3"))
        await house.stop_gateway()
        await house.start_gateway()
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["three"])
        texts = fake.texts(ANA)
        assert texts.index("one") < texts.index("two") < texts.index("three")
        await fake.until(lambda: not said(fake, ANA, "Waiting"))


async def test_a_drain_before_the_prompt_left_runs_the_message_after_the_restart(
    tmp_path: Path,
) -> None:
    more = {"LANEWAY_DRAIN_TIMEOUT": "0s"}
    async with quick(tmp_path, **more) as house:
        command = house.running._settings.acp_command
        await house.stop_gateway()
        slow = " ".join((*command, "--slow-start", "60"))
        await house.start_gateway(LANEWAY_ACP_COMMAND=slow)
        house.fake.user_says("/say at last")
        await in_state(house, LANE, "starting")
        await house.stop_gateway()
        await house.start_gateway()
        await house.fake.until(lambda: "at last" in house.fake.texts(ANA))
        assert not said(house.fake, ANA, "cut off")


async def test_a_drain_does_not_wait_for_files_and_they_are_fetched_after_the_restart(
    tmp_path: Path,
) -> None:
    more = {"LANEWAY_DRAIN_TIMEOUT": "0s"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        fake.download_pause = 40
        fake.user_sends(b"data", "a.txt", caption="/say with a file")
        await fake.until(lambda: fake.called("download"))
        began = time.monotonic()
        await house.stop_gateway()
        assert time.monotonic() - began < 4 + BUSY
        fake.download_pause = 0
        await house.start_gateway()
        await fake.until(lambda: said(fake, ANA, "with a file"))
        assert next(turn["status"] for turn in await turns(house)) in ("running", "done")


async def test_a_platform_that_hangs_and_an_agent_that_hangs_do_not_keep_it_from_ending(
    tmp_path: Path,
) -> None:
    more = {"LANEWAY_DRAIN_TIMEOUT": "0s"}
    async with quick(tmp_path, **more) as house:
        await working(house, "/ignore-cancel\n/ignore-term\n/hang on")
        house.fake.hang("*", times=0)
        began = time.monotonic()
        await house.stop_gateway()
        assert time.monotonic() - began < 0 + 1 + 5 + BUSY
        house.fake.heal()
        await house.start_gateway()
        house.fake.user_says("/say works")
        await house.fake.until(lambda: house.fake.texts(ANA)[-1:] == ["works"])


async def test_an_open_card_ends_with_the_drain_and_is_asked_anew_by_continue(
    tmp_path: Path,
) -> None:
    more = {"LANEWAY_DRAIN_TIMEOUT": "0s"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        fake.user_says("/approve rm x")
        await in_state(house, LANE, "asking")
        await fake.until(lambda: cards(fake, ANA))
        await house.stop_gateway()
        assert said(fake, ANA, "Cancelled") == said(fake, ANA, "cut off") == 1
        await house.start_gateway()
        fake.press("Continue", user=BEN)
        fake.press("Continue")
        await fake.until(lambda: cards(fake, ANA))
        fake.press("Allow")
        await fake.until(lambda: said(fake, ANA, "ran: rm x"))
        assert len(await turns(house)) == 2


# As a process ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_orderly_end_has_exit_status_0_and_leaves_no_process(
    tmp_path: Path, number: signal.Signals
) -> None:
    more = {"LANEWAY_DRAIN_TIMEOUT": "1s", "LANEWAY_STOP_GRACE": "1s"}
    async with FakeTelegram() as fake, process(tmp_path / "home", fake, **more) as gateway:
        fake.user_says("/ignore-cancel\n/spawn 60\n/hang on")
        await until(lambda: stamps(tmp_path))
        assert await gateway.end(number, within=7 + BUSY) == 0
        assert agents(tmp_path) == []
        assert said(fake, ANA, "cut off") == 1


async def test_a_killed_gateways_agents_are_gone_before_their_lane_runs_again(
    tmp_path: Path,
) -> None:
    async with FakeTelegram() as fake:
        async with process(tmp_path / "home", fake) as gateway:
            fake.user_says("@gw_bot /spawn 60\n/hang on", chat=FORUM, thread=36)
            await until(lambda: stamps(tmp_path))
            await gateway.end(signal.SIGKILL)
        killed_at = time.monotonic()
        async with process(tmp_path / "home", fake):
            left = agents(tmp_path)
            assert len([pid for pid in left if is_engine(pid)]) == 0
            await fake.until(lambda: said(fake, FORUM, "cut off", 36))
            assert time.monotonic() - killed_at < 15 + BUSY
            fake.user_says("/say works", chat=FORUM, thread=36)
            await fake.until(lambda: fake.texts(FORUM, 36)[-1:] == ["works"])
            again = [turn["status"] for turn in await ask(tmp_path / "home", "turns")]
            assert sorted(again) == ["done", "interrupted"]
            told_at = [c.at for c in fake.called("sendMessage") if "cut off" in c.fields["text"]]
            assert len(told_at) == 1
            assert not [at for at in typing(fake, FORUM) if killed_at < at < told_at[0]]


def is_engine(pid: int) -> bool:
    """Whether it is an agent or a child of one, and not the gateway itself."""
    with contextlib.suppress(OSError):
        return b"gateway" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


async def test_an_idle_gateway_ends_at_once(tmp_path: Path) -> None:
    async with quick(tmp_path, LANEWAY_DRAIN_TIMEOUT="120s") as house:
        house.fake.user_says("/say hi")
        await house.fake.until(lambda: house.fake.texts(ANA) == ["hi"])
        began = time.monotonic()
        await house.stop_gateway()
        assert time.monotonic() - began < 2 + BUSY
