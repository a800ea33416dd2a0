"""Where an event is from when it says no more than it must: an id of a channel."""

from __future__ import annotations

from channels.discord.content import Me
from channels.discord.gateway import who
from core.messages import Address
from tests.channels.discord.conftest import Discord, connected
from tests.contracts.channel_contract import listening
from tests.fakes.discord import ANA, BOT, CHANNEL, OTHER, FakeDiscord

ME = f"<@{BOT}>"


def bare(fake: FakeDiscord, channel: str, text: str, **more: object) -> None:
    """A message that consists of what it cannot be without."""
    said = {"id": fake.snow(), "channel_id": channel, "author": {"id": ANA}, "content": text}
    fake.dispatch("MESSAGE_CREATE", said | more)


async def test_a_servers_channel_is_known_by_its_id_alone(discord: Discord) -> None:
    fake, intake = discord.fake, discord.intake
    async with listening(discord.channel, intake):
        await connected(discord)
        told = fake.opens_thread("told", CHANNEL)
        untold = fake.opens_thread("untold", CHANNEL, announce=False)
        for number, where in enumerate((CHANNEL, OTHER, told, untold), 1):
            bare(fake, where, f"{ME} {number}")
        await fake.until(lambda: intake.texts == ["1", "2", "3", "4"])
    places = [one.address.place for one in intake.messages]
    assert places == [f"discord:{one}" for one in (CHANNEL, OTHER, CHANNEL, CHANNEL)]
    assert [one.address.thread for one in intake.messages[2:]] == [told, untold]
    assert not any(one.direct for one in intake.messages)


async def test_what_belongs_to_no_server_is_a_direct_chat(discord: Discord) -> None:
    fake, intake = discord.fake, discord.intake
    known, unknown, broken = fake.direct(ANA)["id"], "930000000000000077", fake.snow()
    fake.fail("GET", f"/channels/{broken}$", 503, times=0)
    async with listening(discord.channel, intake):
        await connected(discord)
        for where in (known, unknown, broken) * 2:
            bare(fake, where, "hello")
        await fake.until(lambda: len(intake.messages) == 6)
    chats = [Address("discord", where) for where in (known, unknown, broken)]
    assert [one.address for one in intake.messages] == chats * 2
    assert all(one.direct for one in intake.messages)
    assert len(fake.called("GET", r"/channels/\d+$")) == 3


async def test_what_says_that_it_is_from_a_server_is_never_direct(discord: Discord) -> None:
    fake, intake = discord.fake, discord.intake
    async with listening(discord.channel, intake):
        await connected(discord)
        bare(fake, "930000000000000077", f"{ME} hidden", channel_type=0)
        fake.user_says("marker")
        await fake.until(lambda: intake.texts == ["marker"])


def test_a_greeting_that_names_no_application_is_enough() -> None:
    user = {"id": BOT, "username": "gate"}
    assert who({"user": user}) == Me(BOT, BOT, "gate")
    assert who({"user": user, "application": {"id": "77"}}) == Me(BOT, "77", "gate")
