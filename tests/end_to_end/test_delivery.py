"""Messages in and answers out, through redelivery, refusals and silence of the platform."""

import logging
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from tests.end_to_end.house import TIMES, House, until
from tests.end_to_end.looking import quick, quiet, said, sends, turns, typing
from tests.fakes.telegram import ANA, BEN, FORUM, GROUP, SUPERGROUP, TOKEN, Flood

LANE = f"telegram:{ANA}"
PERSON = {"id": ANA, "is_bot": False, "first_name": "Ana", "username": "ana_t"}
PRIVATE = {"id": ANA, "type": "private"}
CONFLICT = (
    "Conflict: terminated by other getUpdates request;"
    " make sure that only one bot instance is running"
)


def update(number: int, text: str, message: int = 10) -> dict[str, object]:
    content = {"message_id": message, "date": 1_798_000_000, "chat": PRIVATE, "from": PERSON}
    return {"update_id": number, "message": {**content, "text": text}}


# In ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [201, 202, 350])
async def test_a_message_delivered_twice_is_one_turn_and_one_answer(
    tmp_path: Path, again: int
) -> None:
    async with House(tmp_path) as house:
        house.fake.push_raw(update(201, "/say once"))
        await house.fake.until(lambda: house.fake.texts(ANA) == ["once"])
        house.fake.push_raw(update(again, "/say once"))
        house.fake.user_says("/say next")
        await house.fake.until(lambda: house.fake.texts(ANA)[-1:] == ["next"])
        assert house.fake.texts(ANA) == ["once", "next"]
        assert len(await turns(house)) == 2


async def test_a_message_twice_in_one_batch_is_one_turn(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        await house.stop_gateway()
        house.fake.push_raw(update(201, "/say once"))
        house.fake.push_raw(update(202, "/say once"))
        house.fake.push_raw(update(203, "/say other", 11))
        await house.start_gateway()
        await house.fake.until(lambda: house.fake.texts(ANA) == ["once", "other"])
        assert len(await turns(house)) == 2


async def test_a_command_delivered_twice_acts_once(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        for number in (201, 202):
            house.fake.push_raw(update(number, "/pause"))
        house.fake.push_raw(update(203, "/resume", 11))
        house.fake.push_raw(update(204, "/pause"))
        house.fake.push_raw(update(205, "/say runs", 12))
        await house.fake.until(lambda: house.fake.texts(ANA)[-1:] == ["runs"])
        assert said(house.fake, ANA, "Paused") == 1


async def test_a_restart_answers_nothing_again_and_loses_nothing(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.push_raw(update(210, "/say before", 20))
        await fake.until(lambda: fake.texts(ANA) == ["before"])
        await house.idle(LANE)
        await house.stop_gateway()
        fake.push_raw(update(210, "/say before", 20))  # not confirmed, say
        fake.push_raw(update(211, "/say while down", 21))
        await house.start_gateway()
        await fake.until(lambda: fake.texts(ANA) == ["before", "while down"])
        await house.idle(LANE)
        await house.stop_gateway()
        await house.start_gateway()
        fake.user_says("/say after")
        await fake.until(lambda: fake.texts(ANA) == ["before", "while down", "after"])
        assert len(await turns(house)) == 3


MALFORMED: list[object] = [
    {"update_id": 230, "message": {"message_id": 1, "date": 1_798_000_000, "text": "no chat"}},
    {"update_id": 230, "message": "text"},
    {"update_id": 230, "message": {"chat": {"id": "x"}, "from": PERSON, "text": "hi"}},
    {"update_id": 230, "callback_query": {"id": 5}},
    {"update_id": 230, "edited_message": []},
    {"update_id": 230},
]


@pytest.mark.parametrize("bad", MALFORMED)
async def test_an_update_that_cannot_be_read_holds_up_no_other(tmp_path: Path, bad: object) -> None:
    async with quick(tmp_path) as house:
        await house.stop_gateway()
        house.fake.push_raw(bad)
        house.fake.push_raw(update(231, "/say still here", 2))
        polls = len(house.fake.called("getUpdates"))
        await house.start_gateway()
        await house.fake.until(lambda: house.fake.texts(ANA) == ["still here"])
        assert len(house.fake.called("getUpdates")) - polls <= 4


async def test_a_set_aside_update_is_one_log_entry_with_its_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "channels.telegram")
    async with quick(tmp_path) as house:
        house.fake.push_raw(MALFORMED[0])
        house.fake.push_raw(update(231, "/say still here", 2))
        await house.fake.until(lambda: house.fake.texts(ANA) == ["still here"])
        await house.fake.until(lambda: "still cannot be read" in caplog.text)
        lines = [r for r in caplog.records if "230" in r.getMessage() and r.levelno > logging.INFO]
        assert len(lines) == 1
        assert len(house.fake.called("getUpdates")) < 8


async def test_pictures_sent_quickly_all_reach_the_agent_in_order(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        house.fake.download_pause = 0.2
        for caption in ("/say one\n/sleep 0.4", "/say two", "/say three"):
            house.fake.user_sends(b"\x89PNG picture", kind="photo", caption=caption)
        await house.fake.until(lambda: "three" in "".join(house.fake.texts(ANA)))
        await house.idle(LANE)
        words = "".join(house.fake.texts(ANA))
        assert words.index("one") < words.index("two") < words.index("three")
        assert len(house.fake.called("download")) == 3


async def test_another_instance_is_named_once_and_polling_goes_on_after_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with quick(tmp_path) as house:
        await house.stop_gateway()
        house.fake.fail("getUpdates", 409, CONFLICT, times=2)
        house.fake.user_says("/say patience")
        polls = len(house.fake.called("getUpdates"))
        await house.start_gateway()
        await house.fake.until(lambda: house.fake.texts(ANA) == ["patience"])
        assert caplog.text.count("second instance") == 1
        assert len(house.fake.called("getUpdates")) - polls <= 6
        assert len(await turns(house)) == 1


# Out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [True, False])
async def test_an_answer_that_may_have_arrived_is_not_sent_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, cut: bool
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        if cut:
            fake.drop("sendMessage", after=True)
        else:
            fake.fail("sendMessage", 502, "Bad Gateway")
        fake.user_says("/say short answer")
        await fake.until(lambda: "is uncertain" in caplog.text)
        await house.idle(LANE)
        fake.user_says("/again")
        await fake.until(lambda: len(fake.called("sendMessage")) == 2)
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["short answer"])
        (turn,) = await turns(house)
        assert (turn["status"], turn["delivery"]) == ("done", "uncertain")


async def test_a_send_that_is_never_answered_leaves_the_lane_free(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        fake = house.fake
        fake.hang("sendMessage", after=True)
        fake.user_says("/say short answer")
        await fake.until(lambda: fake.texts(ANA) == ["short answer"])
        await house.idle(LANE)
        fake.user_says("/say works", user=BEN)
        await fake.until(lambda: fake.texts(BEN) == ["works"])
        fake.heal()  # the connection is cut at last
        fake.user_says("/say next")
        await fake.until(lambda: fake.texts(ANA) == ["short answer", "next"])


async def test_a_refused_answer_waits_as_long_as_it_is_told_and_holds_up_no_other_chat(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        fake = house.fake
        fake.fail("sendMessage", 429, "Too Many Requests: retry after 2", retry_after=2, chat=ANA)
        fake.user_says("/say patient")
        await fake.until(lambda: fake.called("sendMessage", ANA))
        fake.user_says("/say at once", user=BEN)
        await fake.until(lambda: fake.texts(BEN) == ["at once"])
        await fake.until(lambda: fake.texts(ANA) == ["patient"])
        first, second = fake.called("sendMessage", ANA)
        assert (second.at - first.at) * TIMES >= 2
        assert fake.called("sendMessage", BEN)[0].at < second.at


async def test_a_penalty_of_one_topic_counts_for_its_chat_and_delays_nothing_else(
    tmp_path: Path,
) -> None:
    async with House(tmp_path, times=1) as house:
        fake = house.fake
        fake.fail("sendMessage", 429, "Too Many Requests: retry after 1", retry_after=1, chat=FORUM)
        fake.user_says("@gw_bot /say one", chat=FORUM, thread=11)
        await fake.until(lambda: fake.called("sendMessage", FORUM))
        fake.user_says("@gw_bot /say two", chat=FORUM, thread=12)
        fake.user_says("/say private")
        await fake.until(lambda: fake.texts(FORUM, 11) == ["one"])
        await fake.until(lambda: fake.texts(FORUM, 12) == ["two"])
        limited, *later = fake.called("sendMessage", FORUM)
        assert min(call.at for call in later) - limited.at >= 1
        assert fake.called("sendMessage", ANA)[0].at - limited.at < 1


async def test_an_outage_of_the_platform_loses_no_answer_and_no_message(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/sleep 0.5\n/say after the outage")
        await fake.until(lambda: typing(fake, ANA))
        await fake.stop()
        fake.user_says("/say written meanwhile")
        await house.idle(LANE)
        await fake.start(fake.port)
        await fake.until(lambda: fake.texts(ANA) == ["after the outage", "written meanwhile"])


@pytest.mark.parametrize("gone", [True, False])
async def test_an_answer_for_a_topic_that_is_gone_is_told_to_the_person_and_goes_nowhere_else(
    tmp_path: Path, gone: bool
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/say hello")
        await fake.until(lambda: fake.texts(ANA) == ["hello"])
        fake.user_says("@gw_bot /sleep 0.5\n/say secret", chat=FORUM, thread=36)
        await fake.until(lambda: typing(fake, FORUM))
        fake.close_topic(FORUM, 36, gone=gone)
        await fake.until(lambda: said(fake, ANA, "I cannot write in"))
        await house.idle(f"telegram:{FORUM}:36")
        assert fake.texts(FORUM) == []
        assert not said(fake, ANA, "secret ")
        assert len(fake.texts(ANA)) == 2


async def test_many_talkative_turns_keep_to_the_platforms_limits(tmp_path: Path) -> None:
    async with House(tmp_path, times=1, LANEWAY_MAX_TURNS_PER_PERSON="9") as house:
        fake = house.fake
        fake.flood = Flood()
        for thread in (11, 12, 13):
            text = f"@gw_bot /stream 15 0.1\n/say end{thread}"
            fake.user_says(text, chat=FORUM, thread=thread)
        fake.user_says("/stream 15 0.1\n/say end")
        for command in ("/status", "/help", "/queue"):
            fake.user_says(command)
        for thread in (11, 12, 13):
            await fake.until(partial(said, fake, FORUM, f"end{thread}", thread))
        await fake.until(lambda: said(fake, ANA, "end"))
        limited = [call.chat for call in fake.calls if call.status == 429]
        assert len(limited) == len(set(limited))  # no call was made inside a penalty


async def test_a_revoked_token_loses_no_answer(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/sleep 0.4\n/say kept")
        await fake.until(lambda: typing(fake, ANA))
        fake.revoke()
        await house.idle(LANE)
        await until(lambda: any("token" in reason for reason in house.running.reasons()))
        await house.stop_gateway()
        fake.revoke(TOKEN)
        await house.start_gateway()
        await fake.until(lambda: fake.texts(ANA) == ["kept"])


async def test_a_person_who_blocked_the_bot_leaves_no_lane_busy(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/sleep 0.4\n/say words")
        await fake.until(lambda: typing(fake, ANA))
        fake.blocked.add(ANA)
        await house.idle(LANE)
        await fake.until(lambda: fake.called("sendMessage"))
        fake.blocked.discard(ANA)
        fake.user_says("/again")
        await fake.until(lambda: fake.texts(ANA) == ["words"])


async def test_without_previews_and_receipts_there_is_the_answer_alone(tmp_path: Path) -> None:
    more = {"LANEWAY_PREVIEW": "off", "LANEWAY_RECEIPTS": "off"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        fake.user_says("/say some\n/sleep 0.6\n/say  words")
        await fake.until(lambda: fake.texts(ANA) == ["some words"])
        await house.idle(LANE)
        assert fake.called("setMessageReaction") == []
        assert fake.called("editMessageText") == []


# Typing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["429", "500", "hang"])
async def test_typing_that_fails_delays_nothing_and_is_not_seen(tmp_path: Path, how: str) -> None:
    async with House(tmp_path) as house:
        fake = house.fake
        match how:
            case "429":
                words = "Too Many Requests: retry after 30"
                fake.fail("sendChatAction", 429, words, times=0, retry_after=30)
            case "500":
                fake.fail("sendChatAction", 500, times=0)
            case _:
                fake.hang("sendChatAction", times=0)
        fake.user_says("/sleep 0.6\n/say the answer")
        await fake.until(lambda: fake.texts(ANA) == ["the answer"], 8.0)
        await house.idle(LANE)
        assert len(sends(fake)) == 1
        if how == "429":
            fake.user_says("/say more")
            await fake.until(lambda: fake.texts(ANA) == ["the answer", "more"], 8.0)
            assert len(typing(fake, ANA)) == 1  # none inside the penalty
        fake.heal()


ENDINGS = {ANA: "/say normal", BEN: "/error broken", GROUP: "/hang on", SUPERGROUP: "/crash 3"}


async def test_typing_ends_with_the_turn_however_it_ends(tmp_path: Path) -> None:
    more = {"LANEWAY_MAX_TURNS_PER_PERSON": "9", "LANEWAY_STOP_GRACE": "3s"}
    async with quick(tmp_path, 8, **more) as house:
        fake = house.fake
        for chat, ending in ENDINGS.items():
            text = f"@gw_bot /say begun\n/sleep 1.2\n{ending}"
            fake.user_says(text, user=BEN if chat == BEN else ANA, chat=chat)
        await fake.until(lambda: all(len(typing(fake, chat)) > 1 for chat in ENDINGS))
        fake.user_says("/stop", chat=GROUP)
        for chat in ENDINGS:
            await house.idle(f"telegram:{chat}")
        await fake.until(lambda: all("⏳" not in "".join(fake.texts(chat)) for chat in ENDINGS))
        await quiet(0.7)  # the next sign would have come
        for chat in ENDINGS:
            shown = (*sends(fake, chat), *fake.called("editMessageText", chat))
            assert typing(fake, chat)[-1] < max(call.at for call in shown) + 0.5


async def test_typing_goes_on_through_text_and_tools_without_a_gap(tmp_path: Path) -> None:
    async with quick(tmp_path, 4) as house:
        fake = house.fake
        fake.user_says("/say text\n/tool one\n/sleep 1.1\n/tool two\n/sleep 1.1\n/say end")
        await fake.until(lambda: said(fake, ANA, "end"))
        marks = [at * 4 for at in typing(fake, ANA)]
        assert len(marks) >= 3
        assert max(b - a for a, b in pairwise(marks)) <= 5.0
