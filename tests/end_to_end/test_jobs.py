"""Jobs in a whole gateway: set up in a chat, fired by the clock, answered in their thread."""

from __future__ import annotations

import asyncio
from pathlib import Path

from core.clock import Clock
from core.folders import folder_name
from tests.end_to_end.house import House
from tests.fakes.telegram import ANA


class AheadClock:
    """A clock whose wall is ahead of another's by so many seconds."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._ahead = round(seconds * 1000)

    def now(self) -> int:
        return self._clock.now() + self._ahead

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


CHAT = f"telegram:{ANA}"


async def test_what_is_set_up_in_a_chat_runs_there_and_is_listed(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/in 1s : the kettle boils")
        await house.fake.until(lambda: len(house.fake.texts(ANA)) == 2)
        made, answer = house.fake.texts(ANA)
        assert made.startswith('Job 1 is set, in 1s: "the kettle boils". It runs once, ')
        assert answer.startswith("echo[0]: (Job 1, a wake-up: in 1s. Due ")
        assert answer.endswith("the kettle boils")


async def test_what_falls_due_in_a_drain_runs_once_after_the_restart(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/in 1m : the kettle boils")
        await house.fake.until(lambda: house.fake.texts(ANA))
        (job,) = await house.ask("jobs")
        assert (job["state"], job["kind"], job["lane"]) == ("active", "wakeup", CHAT)
        await house.stop_gateway()
        house.clock = AheadClock(house.clock, 120)
        await house.start_gateway()
        await house.fake.until(lambda: len(house.fake.texts(ANA)) == 2)
        assert "late by" in house.fake.texts(ANA)[1]
        async with asyncio.timeout(30):
            while (await house.ask("jobs"))[0]["running"]:
                await asyncio.sleep(0.02)
        (job,) = await house.ask("jobs")
        assert job["state"] == "done"
        assert job["last_result"].startswith("late by ")


async def test_what_a_watch_waits_for_runs_once_and_members_reach_no_private_address(
    tmp_path: Path,
) -> None:
    async with House(tmp_path, LANEWAY_MIN_INTERVAL="1s") as house:
        house.fake.user_says('/watch run "cat flag" contains "go now" every 1s : begin')
        await house.fake.until(lambda: house.fake.texts(ANA))
        assert house.fake.texts(ANA)[0].startswith('Job 1 is set: I look at run "cat flag"')
        folder = house.home / "workspaces" / folder_name(CHAT)
        async with asyncio.timeout(30):
            while not folder.is_dir():
                await asyncio.sleep(0.02)
        (folder / "flag").write_text("ready\ngo now\n")
        # A preview comes before the whole of it.
        await house.fake.until(lambda: "> go now" in house.fake.texts(ANA)[-1])
        assert len(house.fake.texts(ANA)) == 2
        assert "begin" in house.fake.texts(ANA)[1]
        async with asyncio.timeout(30):
            while (await house.ask("jobs"))[0]["state"] != "done":
                await asyncio.sleep(0.02)
        (job,) = await house.ask("jobs")
        assert (job["kind"], job["when"]) == ("watch", 'run "cat flag" contains "go now" every 1s')
        assert job["last_result"] == 'it contains "go now"'
        port = house.running.web_port
        house.fake.user_says(f"/watch url http://127.0.0.1:{port}/ changed every 1s : x")
        await house.fake.until(lambda: any("private address" in t for t in house.fake.texts(ANA)))
