"""Where answers go: into the thread that asked, by every call and in every kind of chat."""

from pathlib import Path

import pytest

from tests.end_to_end.house import House
from tests.end_to_end.looking import cards, quick, refused, said, sends, talk, turns
from tests.fakes.telegram import ANA, FORUM, GROUP, SUPERGROUP

NEW_GROUP = -1_001_900_000_077
EVERYTHING = "@gw_bot /say some words\n/approve rm x\n/sleep 0.7\n/file a.txt hello\n/say done"


async def through_everything(house: House, chat: int, thread: int | None = None) -> None:
    """A turn with preview, card and file, one that waits behind it, and one that fails."""
    fake = house.fake
    fake.user_says(EVERYTHING, chat=chat, thread=thread)
    await fake.until(lambda: cards(fake, chat, thread))
    fake.user_says("@gw_bot /error on purpose", chat=chat, thread=thread)
    await fake.until(lambda: said(fake, chat, "Waiting:", thread))
    fake.press("Allow", chat=chat)
    await fake.until(lambda: said(fake, chat, "on purpose (scripted)", thread))
    await fake.until(lambda: not said(fake, chat, "Waiting:", thread))


async def test_the_general_topic_of_a_forum_is_written_to_without_a_thread(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        await through_everything(house, FORUM)
        assert {call.thread for call in sends(house.fake)} == {None}
        assert {c.thread for c in talk(house.fake, FORUM) if c.method.startswith("edit")} == {None}
        assert refused(house.fake) == []
        assert {turn["lane"] for turn in await turns(house)} == {f"telegram:{FORUM}:1"}


async def test_a_reply_chain_in_general_is_still_general(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        house.fake.user_says("@gw_bot /say one", chat=FORUM)
        house.fake.user_says("@gw_bot /say two", chat=FORUM, message_thread_id=41)
        house.fake.user_says("@gw_bot /say three", chat=FORUM, message_thread_id=1)
        await house.fake.until(lambda: house.fake.texts(FORUM) == ["one", "two", "three"])
        assert {call.thread for call in sends(house.fake)} == {None}
        assert len({turn["lane"] for turn in await turns(house)}) == 1


@pytest.mark.parametrize("chain", [55, 1, 61])
async def test_reply_chains_of_an_ordinary_group_are_one_lane(tmp_path: Path, chain: int) -> None:
    async with quick(tmp_path) as house:
        house.fake.user_says("@gw_bot /say one", chat=SUPERGROUP)
        house.fake.user_says("@gw_bot /say two", chat=SUPERGROUP, message_thread_id=chain)
        await house.fake.until(lambda: house.fake.texts(SUPERGROUP) == ["one", "two"])
        assert {call.thread for call in talk(house.fake, SUPERGROUP)} == {None}
        assert {turn["lane"] for turn in await turns(house)} == {f"telegram:{SUPERGROUP}"}


async def test_every_call_of_a_topic_carries_the_topic(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        await through_everything(house, FORUM, 36)
        fake = house.fake
        made = [c for c in talk(fake, FORUM) if c.method.startswith("send")]
        assert {call.method for call in made} >= {"sendMessage", "sendChatAction", "sendDocument"}
        assert {call.thread for call in made} == {36}
        assert len(fake.shown(FORUM)) == len(fake.shown(FORUM, 36))
        assert refused(fake) == []


async def test_a_card_stands_in_its_topic_and_is_edited_there_by_the_press(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("@gw_bot /approve do it\n/say then", chat=FORUM, thread=77)
        await fake.until(lambda: cards(fake, FORUM, 77))
        (card,) = cards(fake, FORUM, 77)
        (asked,) = [call for call in sends(fake) if "Allow" in str(call.fields.get("reply_markup"))]
        assert asked.thread == 77
        fake.press("Allow")
        await fake.until(lambda: said(fake, FORUM, "ran: do it. then", 77))
        await fake.until(lambda: not fake.buttons(fake.messages[FORUM, card["message_id"]]))
        assert "Allowed" in fake.messages[FORUM, card["message_id"]]["text"]
        assert {call.thread for call in sends(fake)} == {77}


async def test_what_waited_for_another_topic_is_answered_in_its_own(tmp_path: Path) -> None:
    async with quick(tmp_path, LANEWAY_MAX_TURNS="1") as house:
        fake = house.fake
        fake.user_says("@gw_bot /sleep 0.6\n/say slow", chat=FORUM, thread=11)
        await fake.until(lambda: fake.called("sendChatAction", FORUM))
        fake.user_says("@gw_bot /say quick", chat=FORUM, thread=12)
        await fake.until(lambda: said(fake, FORUM, "free slot", 12))
        await fake.until(lambda: fake.texts(FORUM, 12) == ["quick"])
        assert fake.texts(FORUM, 11) == ["slow"]
        first, second = await turns(house)
        assert (first["text"], second["text"]) == ("/sleep 0.6\n/say slow", "/say quick")
        assert all(call.thread in (11, 12) for call in sends(fake))


async def test_a_topic_and_general_never_share_a_turn(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("@gw_bot /sleep 0.5\n/say general", chat=FORUM)
        fake.user_says("@gw_bot /say topic", chat=FORUM, thread=36)
        await fake.until(lambda: fake.texts(FORUM, 36) == ["topic"])
        await fake.until(lambda: fake.texts(FORUM, 1) == ["general"])


@pytest.mark.parametrize("announced", [True, False])
async def test_a_group_that_became_a_supergroup_keeps_its_lane(
    tmp_path: Path, announced: bool
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("@gw_bot /say before", chat=GROUP)
        await fake.until(lambda: fake.texts(GROUP) == ["before"])
        await house.idle(f"telegram:{GROUP}")
        fake.user_says("@gw_bot /sleep 1.5\n/turns x\n/say  after", chat=GROUP)
        await fake.until(lambda: len(fake.called("sendChatAction", GROUP)) > 1)
        fake.migrate(GROUP, NEW_GROUP, announce=announced)
        await fake.until(lambda: fake.texts(NEW_GROUP) == ["1 after"])
        moved_at = fake.called("sendMessage", NEW_GROUP)[0].at
        # The lane, its session and the permission to talk there live on under the new id.
        fake.user_says("@gw_bot /turns x", chat=NEW_GROUP)
        await fake.until(lambda: fake.texts(NEW_GROUP) == ["1 after", "2"])
        assert len({turn["lane"] for turn in await turns(house)}) == 1
        assert [c for c in talk(fake, GROUP) if c.at > moved_at] == []
        assert fake.texts(GROUP) == ["before"]
        tries = [c for c in fake.called("sendMessage", GROUP) if "after" in c.fields["text"]]
        assert len(tries) <= (0 if announced else 1)


async def test_what_waits_when_a_group_moves_is_answered_there_also_after_a_restart(
    tmp_path: Path,
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("@gw_bot /say before", chat=GROUP)
        await fake.until(lambda: fake.texts(GROUP) == ["before"])
        await house.stop_gateway()
        fake.user_says("@gw_bot /say waited", chat=GROUP)
        fake.migrate(GROUP, NEW_GROUP)
        await house.start_gateway()
        await fake.until(lambda: fake.texts(NEW_GROUP) == ["waited"])
        await house.stop_gateway()
        await house.start_gateway()
        fake.user_says("@gw_bot /turns x", chat=NEW_GROUP)
        await fake.until(lambda: fake.texts(NEW_GROUP) == ["waited", "2"])


async def test_two_people_in_private_never_see_each_other(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/say for ana")
        fake.user_says("/say for ben", user=700_000_002)
        await fake.until(lambda: fake.texts(ANA) == ["for ana"])
        await fake.until(lambda: fake.texts(700_000_002) == ["for ben"])
