"""Small signs: receipts, and what people see who press or command."""

from __future__ import annotations

import pytest

from channels.discord.adapter import RECEIPTS
from core.channel import (
    AnswerPress,
    Forbidden,
    React,
    Refused,
    Send,
)
from core.messages import Address, Button, Part, Receipt
from tests.channels.discord.conftest import Discord, connected
from tests.contracts.channel_contract import listening
from tests.fakes.discord import BOT, CHANNEL

POST = ("POST", "/messages$")
LAB = Address("discord", CHANNEL)
ME = f"<@{BOT}>"


class TestReceipts:
    async def test_exactly_one_reaction_stands_there(self, discord: Discord) -> None:
        said = discord.fake.user_says("hi")
        lane = discord.ana
        shown = discord.fake.reactions[lane.chat, said["id"]]
        for receipt in (Receipt.RECEIVED, Receipt.WAITING, Receipt.WAITING, Receipt.FAILED):
            await discord.channel.do(React(lane, said["id"], receipt))
            assert shown == [RECEIPTS[receipt]]
        await discord.channel.do(React(lane, said["id"], Receipt.NONE))
        assert shown == []

    async def test_after_a_restart_the_old_one_goes_as_well(self, discord: Discord) -> None:
        said = discord.fake.user_says("hi")
        discord.fake.reactions[discord.ana.chat, said["id"]].append("⏳")
        await discord.channel.do(React(discord.ana, said["id"], Receipt.NONE))
        assert discord.fake.reactions[discord.ana.chat, said["id"]] == []

    async def test_a_refused_reaction_is_not_tried_again_and_again(self, discord: Discord) -> None:
        discord.fake.denied.add((CHANNEL, "react"))
        said = discord.fake.user_says("hi", channel=CHANNEL)
        for _ in range(3):
            with pytest.raises(Forbidden):
                await discord.channel.do(React(LAB, said["id"], Receipt.RECEIVED))
        assert len(discord.fake.called("PUT", "/reactions/")) == 1

    async def test_a_small_wait_between_two_reactions_is_waited(self, discord: Discord) -> None:
        discord.fake.fail("PUT", "/reactions/", 429, retry_after=0.25)
        said = discord.fake.user_says("hi")
        await discord.channel.do(React(discord.ana, said["id"], Receipt.RECEIVED))
        assert discord.clock.asked == [0.25]


class TestPresses:
    async def test_a_press_is_put_off_at_once_even_while_nothing_can_be_stored(
        self, discord: Discord
    ) -> None:
        fake = discord.fake
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.intake.disk(False)
            fake.user_says("work")
            await fake.until(lambda: discord.intake.offered)
            asked = fake.command("status")
            await fake.until(lambda: fake.interactions[asked["token"]]["answered"])
            assert fake.interactions[asked["token"]]["answered"] == 5
            discord.intake.disk(True)
            await fake.until(lambda: len(discord.intake.messages) == 2)

    async def test_a_command_is_answered_in_private_in_as_many_pieces_as_it_takes(
        self, discord: Discord
    ) -> None:
        fake = discord.fake
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            asked = fake.command("help", "me", channel=CHANNEL)
            await fake.until(lambda: discord.intake.messages)
            message = discord.intake.messages[0]
            assert (message.text, message.address) == ("/help me", LAB)
            await discord.channel.do(AnswerPress(message.press, "line\n" * 900))
            await discord.channel.do(AnswerPress(message.press, "one more"))
        said = fake.answers(asked)
        assert [one["kind"] for one in said] == ["original", "followup", "followup", "followup"]
        assert all(one["private"] for one in said)
        assert said[-1]["content"] == "one more"
        assert fake.texts(CHANNEL) == []

    async def test_without_a_text_the_sign_of_thinking_goes_away(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            asked = discord.fake.command("stop")
            await discord.fake.until(lambda: discord.intake.messages)
            await discord.channel.do(AnswerPress(discord.intake.messages[0].press))
        assert discord.fake.interactions[asked["token"]]["deleted"]
        assert discord.fake.answers(asked) == []

    async def test_a_command_from_where_the_bot_is_not_shown_anything_ends_in_silence(
        self, discord: Discord
    ) -> None:
        fake = discord.fake
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            thread = fake.opens_thread("hidden", CHANNEL, announce=False)
            fake.denied.add((CHANNEL, "view"))
            asked = fake.command("status", channel=thread)
            await fake.until(lambda: fake.interactions[asked["token"]]["deleted"])
        assert discord.intake.accepted == []
        assert fake.answers(asked) == []

    async def test_a_pressed_button_can_be_answered_in_private(self, discord: Discord) -> None:
        fake = discord.fake
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            await discord.channel.do(Send(LAB, Part("May I?"), ((Button("b:1", "Allow"),),)))
            pressed = fake.press("Allow")
            await fake.until(lambda: len(discord.intake.accepted) == 1)
            press = discord.intake.accepted[0].press  # type: ignore[union-attr]
            await discord.channel.do(AnswerPress(press))
            assert fake.answers(pressed) == []
            await discord.channel.do(AnswerPress(press, "This is not for you."))
        assert fake.interactions[pressed["token"]]["answered"] == 6
        (said,) = fake.answers(pressed)
        assert (said["content"], said["private"]) == ("This is not for you.", True)

    async def test_a_press_that_is_over_is_no_error(self, discord: Discord) -> None:
        await discord.channel.do(AnswerPress(f"c:17:{BOT}:over", "too late"))
        await discord.channel.do(AnswerPress(f"b:17:{BOT}:over", "too late"))
        with pytest.raises(Refused):
            await discord.channel.do(AnswerPress("nonsense", "x"))

    async def test_a_press_that_discord_gave_up_is_still_handed_in(self, discord: Discord) -> None:
        discord.fake.api.interaction_within = -1.0
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.command("stop")
            await discord.fake.until(lambda: discord.intake.messages)
            await discord.channel.do(AnswerPress(discord.intake.messages[0].press, "late"))
