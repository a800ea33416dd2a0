"""Caps on money in a whole gateway, over an agent that tells its costs, and one that does not."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.house import House
from tests.fakes.telegram import ANA

CHAT = f"telegram:{ANA}"


async def says(house: House, text: str, answer: str) -> str:
    """The first new text with this in it."""
    before = len(house.fake.texts(ANA))
    house.fake.user_says(text)

    def found() -> list[str]:
        return [one for one in house.fake.texts(ANA)[before:] if answer in one]

    await house.fake.until(found)
    return found()[0]


async def test_a_turn_is_stopped_at_its_cap_told_what_it_cost_and_its_session_goes_on(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        await says(house, "/say cheap\n/usage 10 5 0.01", "cheap")
        assert "may cost $0.15" in await says(house, "/budget 0.15", "The next turn")
        digging = "/say digging\n/usage 10 5 0.05\n/usage 10 5 0.20\n/sleep 60\n/say too far"
        told = await says(house, digging, "stopped at its cap")
        assert "of $0.15" in told
        assert "$0.25" in told
        await house.idle(CHAT)
        # The cap was that turn's alone, and the conversation is the same one.
        assert "echo[" in await says(house, "and now?", "and now?")
        await says(house, "/say dear\n/usage 10 5 3", "dear")
        turns = await house.ask("turns", lane=CHAT)
        costs = [(turn["status"], turn["cost_usd"]) for turn in turns]
        assert costs[1] == ("stopped", 0.25)
        assert costs[3] == ("done", 3.0)
        assert not any("too far" in text for text in house.fake.texts(ANA))


async def test_a_restart_between_the_cap_and_its_turn_neither_loses_nor_doubles_it(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        await says(house, "/budget 0.15", "The next turn")
        await house.stop_gateway()
        await house.start_gateway()
        await says(house, "/say one\n/usage 10 5 0.2\n/sleep 60", "stopped at its cap")
        await house.idle(CHAT)
        assert "No cap on money here." in await says(house, "/budget", "Write it like this")
        await says(house, "/say two\n/usage 10 5 0.2\n/say free", "free")


async def test_where_the_agent_tells_no_cost_a_cap_is_refused_once_that_is_known(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        await says(house, "/budget 1", "The next turn")
        assert "could not be kept" in await says(house, "hello", "did not tell")
        assert "Not set" in await says(house, "/budget 1", "nobody tells")
        assert "echo[" in await says(house, "go on", "go on")


async def test_a_run_of_a_job_is_stopped_at_its_own_cap_and_says_so_in_the_list(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        await says(house, "/in 1s budget 0.10 : /usage 10 5 0.2\n/sleep 60", "is set")
        await house.fake.until(
            lambda: any("stopped at its cap" in one for one in house.fake.texts(ANA))
        )
        await house.idle(CHAT)
        assert "stopped at its cap" in await says(house, "/job 1", "Last times")
