"""Jobs in a whole gateway: set up in a chat, fired by the clock, answered in their thread."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.house import House
from tests.fakes.telegram import ANA

CHAT = f"telegram:{ANA}"


async def test_what_is_set_up_in_a_chat_runs_there_and_is_listed(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/in 5s : the kettle boils")
        await house.fake.until(lambda: len(house.fake.texts(ANA)) == 2)
        made, answer = house.fake.texts(ANA)
        assert made.startswith('Job 1 is set, in 5s: "the kettle boils". It runs once, ')
        assert answer.startswith("echo[0]: (Job 1, a wake-up: in 5s. Due ")
        assert answer.endswith("the kettle boils")
