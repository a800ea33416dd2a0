"""Stops, failures and agents that would not go: in the end the lane is free and told about it."""

import os
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.house import BUSY, House, until
from tests.end_to_end.looking import cards, in_state, quick, said, sends, turns
from tests.fakes.telegram import ANA, BEN, FORUM

LANE = f"telegram:{ANA}"
TOPIC = f"telegram:{FORUM}:36"
GRACE = {"LANEWAY_STOP_GRACE": "1s"}
STUBBORN = "/ignore-cancel\n/ignore-term\n/say begun\n/hang on"


def stamps(folder: Path) -> Path | None:
    """The file in which a child of the agent leaves its marks."""
    return next(folder.rglob("stamps.txt"), None)


def agents(folder: Path) -> list[int]:
    """Processes of this gateway's engines that are alive."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(folder) in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.info["pid"])
    return [pid for pid in found if pid != os.getpid()]


def last_is(house: House, text: str) -> bool:
    return house.fake.texts(ANA)[-1:] == [text]


async def working(house: House, script: str) -> None:
    house.fake.user_says(script)
    await in_state(house, LANE, "running")


# Stop --------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["/say begun\n/hang on", STUBBORN])
async def test_a_stop_frees_the_lane_in_time_and_the_next_message_starts_at_once(
    tmp_path: Path, script: str
) -> None:
    async with House(tmp_path, times=1, **GRACE) as house:
        fake = house.fake
        await working(house, script)
        began = time.monotonic()
        fake.user_says("/stop")
        await in_state(house, LANE, "idle")
        assert time.monotonic() - began < 2.5 + BUSY
        fake.user_says("/say next")
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["next"])
        assert not [call for call in sends(fake) if "Waiting" in call.fields["text"]]
        assert said(fake, ANA, "Ana stopped") == 1
        assert [turn["status"] for turn in await turns(house)] == ["stopped", "done"]
        await until(lambda: len(agents(tmp_path)) == 1)  # the warm one of the second turn


async def test_a_stop_before_the_agent_is_ready_gives_it_no_prompt(tmp_path: Path) -> None:
    async with House(tmp_path, times=1, **GRACE) as house:
        command = house.running._settings.acp_command
        await house.stop_gateway()
        slow = " ".join((*command, "--slow-start", "60"))
        await house.start_gateway(LANEWAY_ACP_COMMAND=slow)
        house.fake.user_says("/say never")
        await in_state(house, LANE, "starting")
        house.fake.user_says("/stop")
        await in_state(house, LANE, "idle", 4.0)
        await house.fake.until(lambda: said(house.fake, ANA, "Ana stopped"))
        assert [turn["status"] for turn in await turns(house)] == ["stopped"]
        await until(lambda: agents(tmp_path) == [])


@pytest.mark.parametrize("slow", ["getFile", "the download"])
async def test_a_stop_does_not_wait_for_files_that_are_slow_to_come(
    tmp_path: Path, slow: str
) -> None:
    async with House(tmp_path, times=1, **GRACE) as house:
        fake = house.fake
        if slow == "getFile":
            fake.hang("getFile")
        else:
            fake.download_pause = 5
        fake.user_sends(b"data", "a.txt", caption="/say never")
        await fake.until(lambda: fake.called("getFile" if slow == "getFile" else "download"))
        fake.user_says("/stop")
        await in_state(house, LANE, "idle", 2.0)
        await fake.until(lambda: said(fake, ANA, "Ana stopped"))
        assert [turn["status"] for turn in await turns(house)] == ["stopped"]
        fake.heal()


@pytest.mark.parametrize("together", [True, False])
async def test_stops_one_after_the_other_end_one_turn(tmp_path: Path, together: bool) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        await working(house, "/ignore-cancel\n/hang on")
        for command in ("/stop", "/stop", "/skip", "!stop"):
            fake.user_says(command)
            if not together:  # each is fetched and carried out while the turn is still ending
                await fake.until(lambda: not fake.updates)
        fake.user_says("/say next")
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["next"])
        assert [turn["status"] for turn in await turns(house)] == ["stopped", "done"]
        assert said(fake, ANA, "Ana stopped") == 1


async def test_a_stop_drops_what_waited_and_names_it(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        await working(house, "/hang on")
        fake.user_says("/say waits one")
        fake.user_says("/say waits two")
        await fake.until(lambda: said(fake, ANA, "Waiting: 2"))
        fake.user_says("/stop")
        fake.user_says("/say after")
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["after"])
        notice = next(text for text in fake.texts(ANA) if "Ana stopped" in text)
        assert "waits one" in notice
        assert "waits two" in notice
        ends = [turn["status"] for turn in await turns(house)]
        assert ends == ["stopped", "dropped", "dropped", "done"]
        await fake.until(lambda: not said(fake, ANA, "Waiting"))


async def test_a_stop_by_another_person_leaves_what_others_wait_for(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("@gw_bot /hang on", chat=FORUM, thread=36)
        await in_state(house, TOPIC, "running")
        fake.user_says("/say of ana", chat=FORUM, thread=36)
        fake.user_says("/say of ben", user=BEN, chat=FORUM, thread=36)
        fake.user_says("/stop", user=BEN, chat=FORUM, thread=36)
        await fake.until(lambda: "of ana" in fake.texts(FORUM, 36))
        await house.idle(TOPIC)
        assert said(fake, FORUM, 'Ben stopped "/hang on" of Ana') == 1
        assert "of ben" not in fake.texts(FORUM, 36)


async def test_a_skip_ends_the_running_turn_and_the_queue_goes_on(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        await working(house, "/hang on")
        fake.user_says("/say next")
        fake.user_says("/skip")
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["next"])
        assert said(fake, ANA, "Ana skipped") == 1
        assert [turn["status"] for turn in await turns(house)] == ["stopped", "done"]


async def test_a_stop_with_nothing_to_stop_says_so_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    async with House(tmp_path, times=1, **GRACE) as house:
        fake = house.fake
        fake.user_says("/stop")
        await fake.until(lambda: said(fake, ANA, "Nothing to stop"))
        fake.user_says("/say runs")
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["runs"])


async def test_a_stop_in_one_topic_touches_no_other(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        for thread in (36, 37):
            fake.user_says(f"@gw_bot /sleep 1\n/say of {thread}", chat=FORUM, thread=thread)
            await in_state(house, f"telegram:{FORUM}:{thread}", "running")
        fake.user_says("/stop", chat=FORUM, thread=36)
        await fake.until(lambda: fake.texts(FORUM, 37) == ["of 37"])
        assert [turn["status"] for turn in await turns(house)] == ["stopped", "done"]


async def test_a_stop_while_a_card_is_open_closes_the_card(tmp_path: Path) -> None:
    async with House(tmp_path, times=1, **GRACE) as house:
        fake = house.fake
        fake.user_says("/approve rm x")
        await fake.until(lambda: cards(fake, ANA))
        fake.user_says("/stop")
        await in_state(house, LANE, "idle", 2.5)
        await fake.until(lambda: said(fake, ANA, "Cancelled"))
        assert cards(fake, ANA) == []
        assert not said(fake, ANA, "ran:")


# Failures ----------------------------------------------------------------------------------

FAILURES = {
    "/exit-after 1\n/crash 1": "failed",
    "/kill x": "failed",
    "/error the provider timed out": "provider timed out",
    "/say half\n/error broken": "broken",
    "/halfline x": "failed",
    "/stop-reason refusal": "refused",
    "/stop-reason max_tokens": "cut off",
}


async def test_each_failure_is_told_once_and_the_lane_answers_again(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake

        def lasting() -> list[str]:
            """What stays in the chat; that something waits is taken away some time later."""
            return [text for text in fake.texts(ANA) if "Waiting" not in text]

        for number, (script, words) in enumerate(FAILURES.items()):
            shown = len(lasting())
            fake.user_says(script)
            fake.user_says(f"/say ping {number}")
            await fake.until(partial(last_is, house, f"ping {number}"))
            told = lasting()[shown:-1]
            again = [text for text in told if "sent your message" in text]
            assert len(again) == ("refusal" in script)  # once more in a fresh conversation
            told = [text for text in told if text not in again]
            assert len(told) == 1, (script, told)
            assert words in told[0]
        await house.idle(LANE)


async def test_an_agent_that_never_starts_is_told_once_and_its_lane_is_free(
    tmp_path: Path,
) -> None:
    async with quick(tmp_path) as house:
        command = house.running._settings.acp_command
        await house.stop_gateway()
        dead = " ".join((*command, "--crash-start", "3"))
        await house.start_gateway(LANEWAY_ACP_COMMAND=dead)
        house.fake.user_says("/say never")
        await house.fake.until(lambda: said(house.fake, ANA, "could not be reached"))
        await in_state(house, LANE, "idle")
        assert len(house.fake.texts(ANA)) == 1
        await house.stop_gateway()
        await house.start_gateway()
        house.fake.user_says("/say ping")
        await house.fake.until(lambda: house.fake.texts(ANA)[-1:] == ["ping"])


async def test_a_silent_agent_is_ended_told_about_and_the_lane_is_free(tmp_path: Path) -> None:
    more = {"LANEWAY_TURN_IDLE_TIMEOUT": "1s", **GRACE}
    async with House(tmp_path, **more) as house:
        fake = house.fake
        fake.user_says("/say begun\n/hang on")
        fake.user_says("/say ping")
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["ping"])
        told = [text for text in fake.texts(ANA) if "no sign of life" in text]
        assert len(told) == 1


async def test_a_fault_while_the_answer_is_sent_leaves_no_lane_busy(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.fail("sendMessage", 400, "Bad Request: something new")
        fake.user_says("/say lost")
        await fake.until(lambda: said(fake, ANA, "could not be shown"))
        fake.user_says("/say ping")
        await fake.until(lambda: "ping" in fake.texts(ANA))
        await house.idle(LANE)
        fake.user_says("/queue")
        await fake.until(lambda: said(fake, ANA, "Nothing waits"))
        assert [turn["delivery"] for turn in await turns(house)] == ["failed", "sent"]


# Processes ---------------------------------------------------------------------------------


async def test_an_agent_that_does_not_exit_after_its_answer_holds_nothing_up(
    tmp_path: Path,
) -> None:
    async with House(tmp_path, times=1, **GRACE) as house:
        fake = house.fake
        fake.user_says("/ignore-term\n/say the result")
        await fake.until(lambda: fake.texts(ANA) == ["the result"])
        fake.user_says("/say works")
        await fake.until(lambda: fake.texts(ANA) == ["the result", "works"])
        await house.stop_gateway()
        assert agents(tmp_path) == []


@pytest.mark.parametrize("ending", ["stop", "limit", "failure", "drain"])
async def test_no_descendant_of_an_agent_outlives_an_ending(tmp_path: Path, ending: str) -> None:
    more = {"LANEWAY_TURN_TIMEOUT": "2s" if ending == "limit" else "1h"}
    async with House(tmp_path, times=1, LANEWAY_DRAIN_TIMEOUT="1s", **GRACE, **more) as house:
        last = "/crash 1" if ending == "failure" else "/hang on"
        house.fake.user_says(f"/ignore-cancel\n/spawn 60\n{last}")
        await until(lambda: stamps(tmp_path))
        if ending == "stop":
            house.fake.user_says("/stop")
        elif ending == "drain":
            await house.stop_gateway()
        else:
            await in_state(house, LANE, "idle", 8.0)
        await until(lambda: agents(tmp_path) == [], 3.5)
