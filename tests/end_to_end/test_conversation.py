"""A conversation over Telegram, from the update to the answer in the chat."""

from pathlib import Path

from tests.end_to_end.house import House
from tests.fakes.telegram import ANA, FORUM


async def test_a_message_is_answered_once(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/say hello there")
        await house.fake.until(lambda: house.fake.texts(ANA) == ["hello there"])
        await house.idle(f"telegram:{ANA}")
        assert len(house.fake.called("sendMessage")) == 1


async def test_two_topics_are_answered_side_by_side_each_in_its_own_thread(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("@gw_bot /sleep 1\n/say slow", chat=FORUM, thread=11)
        house.fake.user_says("@gw_bot /say quick", chat=FORUM, thread=12)
        await house.fake.until(lambda: house.fake.texts(FORUM, 12) == ["quick"])
        assert house.fake.texts(FORUM, 11) == []
        await house.fake.until(lambda: house.fake.texts(FORUM, 11) == ["slow"])


async def test_two_messages_in_one_topic_run_in_order(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("@gw_bot /sleep 0.5\n/say first", chat=FORUM, thread=11)
        house.fake.user_says("/say second", chat=FORUM, thread=11)
        await house.fake.until(lambda: house.fake.texts(FORUM, 11) == ["first", "second"])


async def test_what_was_said_while_the_gateway_was_down_is_answered_once_it_is_up(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/say before")
        await house.fake.until(lambda: house.fake.texts(ANA) == ["before"])
        await house.stop_gateway()
        house.fake.user_says("/say while down")
        await house.start_gateway()
        await house.fake.until(lambda: house.fake.texts(ANA) == ["before", "while down"])


async def test_the_preview_has_a_stop_button_that_is_gone_with_the_answer(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/say working on it\n/sleep 30")
        await house.fake.until(lambda: house.fake.texts(ANA))
        (preview,) = house.fake.shown(ANA)
        assert house.fake.buttons(preview) == ["Stop"]
        house.fake.press("Stop")
        await house.idle(f"telegram:{ANA}")
        await house.fake.until(lambda: "unfinished" in house.fake.texts(ANA)[0])
        assert not any(house.fake.buttons(shown) for shown in house.fake.shown(ANA))
        turns = await house.ask("turns")
        assert [turn["status"] for turn in turns] == ["stopped"]
