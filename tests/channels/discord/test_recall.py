"""What was said in a thread before somebody called us into it."""

from __future__ import annotations

import pytest

from channels.discord.content import Me, time_of
from core.channel import NotSent, Recall, Said
from core.messages import Address
from tests.channels.discord.conftest import Discord
from tests.fakes.discord import ANA, APPLICATION, BEN, BOT, CHANNEL


async def recalled(discord: Discord, thread: str, before: str, most: int = 10) -> list[Said]:
    discord.channel._me = Me(BOT, APPLICATION)
    done = await discord.channel.do(Recall(Address("discord", CHANNEL, thread), before, most))
    return list(done.said)


async def test_it_tells_the_message_that_the_thread_hangs_on_and_what_was_said_last(
    discord: Discord,
) -> None:
    fake = discord.fake
    root = fake.user_says("the build is red", user=BEN, channel=CHANNEL, tell=False)
    thread = fake.opens_thread("build", number=root["id"], announce=False)
    for n in range(15):
        fake.user_says(f"reply {n}", channel=thread, tell=False)
    mention = fake.user_says("why?", channel=thread, tell=False)
    fake.user_says("later", channel=thread, tell=False)
    said = await recalled(discord, thread, mention["id"], 3)
    assert said == [
        Said("Ben", "the build is red"),
        *(Said("Ana", f"reply {n}") for n in (12, 13, 14)),
    ]


async def test_a_thread_that_hangs_on_no_message_has_no_root(discord: Discord) -> None:
    thread = discord.fake.opens_thread("a matter", announce=False)
    discord.fake.user_says("first", user=ANA, channel=thread, tell=False)
    mention = discord.fake.user_says("well?", channel=thread, tell=False)
    assert await recalled(discord, thread, mention["id"]) == [Said("Ana", "first")]


async def test_without_a_message_it_tells_all_so_far_and_where_and_when_each_stands(
    discord: Discord,
) -> None:
    thread = discord.fake.opens_thread("a matter", announce=False)
    first = discord.fake.user_says("first", user=ANA, channel=thread, tell=False)
    last = discord.fake.user_says("last", user=BEN, channel=thread, tell=False)
    said = await recalled(discord, thread, "")
    assert said == [Said("Ana", "first"), Said("Ben", "last")]
    assert [one.message_id for one in said] == [first["id"], last["id"]]
    assert [one.at for one in said] == [time_of(int(one["id"])) for one in (first, last)]


async def test_a_post_of_a_forum_begins_with_its_text(discord: Discord) -> None:
    thread, post = discord.fake.posts("Broken", "it does not start", user=BEN, tell=False)
    mention = discord.fake.user_says("why?", channel=thread, tell=False)
    assert (await recalled(discord, thread, mention["id"]))[0] == Said("Ben", "it does not start")
    assert post["id"] == thread


async def test_before_discord_told_who_we_are_nothing_is_asked(discord: Discord) -> None:
    with pytest.raises(NotSent):
        await discord.channel.do(Recall(Address("discord", CHANNEL, "5"), "6", 10))
