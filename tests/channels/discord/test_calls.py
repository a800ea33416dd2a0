"""Sending: what leaves, and what each refusal of Discord becomes."""

from __future__ import annotations

import logging

import pytest

from core.channel import (
    AnswerPress,
    Delete,
    Done,
    Forbidden,
    MessageGone,
    NotSent,
    RateLimited,
    Refused,
    Revise,
    Send,
    SendError,
    Uncertain,
)
from core.messages import Address, Button, Part, Style
from tests.channels.discord.conftest import Discord, connected, opened
from tests.contracts.channel_contract import listening
from tests.fakes.discord import ANA, BOT, CHANNEL, FakeDiscord, Pace

POST = ("POST", "/messages$")
LAB = Address("discord", CHANNEL)
ME = f"<@{BOT}>"


class TestMessages:
    async def test_agent_text_pings_nobody(self, discord: Discord) -> None:
        text = f"@everyone <@{ANA}> <@&940000000000000002> @here"
        for part in discord.channel.render(text):
            sent = await discord.channel.do(Send(LAB, part))
            await discord.channel.do(Revise(LAB, sent.message_id, Part(text)))
        await discord.channel.do(Send(LAB, Part(text)))
        assert not any(one["pinged"] for one in discord.fake.shown(CHANNEL))
        bodies = [c.body for c in discord.fake.calls if "content" in c.body]
        assert all(body["allowed_mentions"] == {"parse": []} for body in bodies)

    async def test_links_are_not_drawn_large(self, discord: Discord) -> None:
        await discord.channel.do(Send(LAB, Part("https://example.org")))
        assert discord.fake.called(*POST)[0].body["flags"] == 4

    async def test_the_same_nonce_makes_one_message(self, discord: Discord) -> None:
        discord.fake.drop(*POST, after=True)
        send = Send(LAB, Part("once"), nonce="1f.19aebc")
        with pytest.raises(Uncertain):
            await discord.channel.do(send)
        again = await discord.channel.do(send)
        assert discord.fake.texts(CHANNEL) == ["once"]
        assert again.message_id == discord.fake.shown(CHANNEL)[0]["id"]

    async def test_a_long_nonce_is_shortened_and_still_the_same(self, discord: Discord) -> None:
        send = Send(LAB, Part("once"), nonce="n" * 60)
        first, second = await discord.channel.do(send), await discord.channel.do(send)
        assert first == second
        assert len(discord.fake.called(*POST)[0].body["nonce"]) == 25

    async def test_a_message_that_was_sent_and_deleted_is_not_sent_again(
        self, discord: Discord
    ) -> None:
        send = Send(LAB, Part("once"), nonce="a1")
        sent = await discord.channel.do(send)
        await discord.channel.do(Delete(LAB, sent.message_id))
        assert await discord.channel.do(send) == Done("")
        assert discord.fake.texts(CHANNEL) == []

    async def test_an_answer_stands_below_what_it_answers(self, discord: Discord) -> None:
        asked = discord.fake.user_says("hm?", channel=CHANNEL)
        await discord.channel.do(Send(LAB, Part("so"), reply_to=asked["id"]))
        await discord.channel.do(Send(LAB, Part("gone"), reply_to="12345"))
        answered, alone = discord.fake.shown(CHANNEL)
        assert answered["message_reference"]["message_id"] == asked["id"]
        assert "message_reference" not in alone

    async def test_text_beyond_discords_length_is_cut_visibly(self, discord: Discord) -> None:
        await discord.channel.do(Send(LAB, Part("x" * 2400)))
        (text,) = discord.fake.texts(CHANNEL)
        assert len(text) == 2000
        assert text.endswith("…")

    async def test_buttons_keep_to_discords_limits(self, discord: Discord) -> None:
        row = tuple(Button(f"b:{n}", "label " * 30 if n else " ", Style.PLAIN) for n in range(40))
        await discord.channel.do(Send(LAB, Part("choose"), (row,)))
        (shown,) = discord.fake.shown(CHANNEL)
        assert [len(one["components"]) for one in shown["components"]] == [5] * 5
        labels = discord.fake.buttons(shown)
        assert labels[0] == "…"
        assert max(map(len, labels)) == 80

    async def test_styles_are_discords_own(self, discord: Discord) -> None:
        row = tuple(Button(style.name, style.name, style) for style in Style)
        await discord.channel.do(Send(LAB, Part("choose"), (row,)))
        (shown,) = discord.fake.shown(CHANNEL)
        styles = {k["label"]: k["style"] for k in shown["components"][0]["components"]}
        assert styles == {"PLAIN": 2, "PRIMARY": 1, "SUCCESS": 3, "DANGER": 4}


class TestRefusals:
    @pytest.mark.parametrize(
        ("status", "code", "error", "words"),
        [
            (403, 50001, Forbidden, "View Channel"),
            (403, 50013, Forbidden, "doctor"),
            (403, 50007, Forbidden, "direct messages"),
            (404, 10003, Forbidden, "deleted"),
            (400, 50035, Refused, "Invalid"),
            (500, 0, Uncertain, ""),
            (503, 0, Uncertain, ""),
            (400, 30046, RateLimited, ""),
        ],
    )
    async def test_each_refusal_is_named(
        self, discord: Discord, status: int, code: int, error: type[Exception], words: str
    ) -> None:
        discord.fake.fail(*POST, status, code, "Invalid Form Body")
        with pytest.raises(error) as caught:
            await discord.channel.do(Send(LAB, Part("x")))
        assert words in str(caught.value)
        assert len(discord.fake.called(*POST)) == 1  # never repeated by itself

    async def test_what_is_wrong_with_a_form_is_said(self, discord: Discord) -> None:
        row = (Button("same", "a"), Button("same", "b"))
        with pytest.raises(Refused, match="custom id cannot be duplicated"):
            await discord.channel.do(Send(LAB, Part("x"), (row,)))

    @pytest.mark.parametrize("raw", [b"<html>", b"[]", b'{"id":5}', b"", b"\xff"])
    async def test_an_answer_of_an_odd_shape_leaves_it_uncertain(
        self, discord: Discord, raw: bytes
    ) -> None:
        discord.fake.garble(*POST, raw)
        with pytest.raises(Uncertain):
            await discord.channel.do(Send(LAB, Part("x")))

    async def test_a_call_without_an_answer_ends(self) -> None:
        async with opened(answer_within=0.05) as discord:
            discord.fake.hang(*POST)
            with pytest.raises(Uncertain):
                await discord.channel.do(Send(LAB, Part("x")))
            discord.fake.heal()

    async def test_a_refused_token_is_asked_once_and_no_more(self, discord: Discord) -> None:
        discord.fake.token = "another"
        for _ in range(3):
            with pytest.raises(NotSent, match="token"):
                await discord.channel.do(Send(LAB, Part("x")))
        assert len(discord.fake.calls) == 1

    async def test_a_token_that_is_good_again_is_noticed_by_the_next_try(
        self, discord: Discord
    ) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            right, discord.fake.token = discord.fake.token, "another"
            with pytest.raises(NotSent):
                await discord.channel.do(Send(LAB, Part("x")))
            assert not discord.intake.up
            discord.fake.token = right
            await discord.clock.sleep(601)
            await discord.channel.do(Send(LAB, Part("x")))
            assert discord.intake.up


class TestRates:
    async def test_a_limit_of_everything_is_named_as_such_and_kept(self, discord: Discord) -> None:
        discord.fake.fail(*POST, 429, retry_after=3.5, everywhere=True)
        with pytest.raises(RateLimited) as limited:
            await discord.channel.do(Send(LAB, Part("x")))
        assert (limited.value.retry_after, limited.value.everywhere) == (3.5, True)
        with pytest.raises(RateLimited) as limited:
            await discord.channel.do(Send(discord.ana, Part("x")))
        assert limited.value.everywhere
        assert len(discord.fake.called(*POST)) == 1

    async def test_a_limit_of_one_channel_holds_up_no_other(self, discord: Discord) -> None:
        discord.fake.fail(*POST, 429, retry_after=7)
        with pytest.raises(RateLimited):
            await discord.channel.do(Send(LAB, Part("x")))
        await discord.channel.do(Send(discord.ana, Part("y")))
        with pytest.raises(RateLimited) as limited:
            await discord.channel.do(Send(LAB, Part("x")))
        assert 6 < limited.value.retry_after <= 7
        assert len(discord.fake.called(*POST)) == 2

    async def test_what_the_headers_say_is_over_is_not_tried(self, discord: Discord) -> None:
        discord.fake.pace = Pace(5, 5.0)
        for number in range(5):
            await discord.channel.do(Send(LAB, Part(str(number))))
        with pytest.raises(RateLimited) as limited:
            await discord.channel.do(Send(LAB, Part("6")))
        assert 3 < limited.value.retry_after <= 5
        assert all(call.status == 200 for call in discord.fake.calls)
        await discord.channel.do(Send(discord.ana, Part("another channel")))

    async def test_the_guard_before_discord_stops_everything(self, discord: Discord) -> None:
        discord.fake.garble(*POST, b"<html>banned</html>", 429)
        with pytest.raises(RateLimited) as limited:
            await discord.channel.do(Send(LAB, Part("x")))
        assert (limited.value.retry_after, limited.value.everywhere) == (60, True)


class TestGone:
    async def test_odd_ids_are_messages_that_are_gone(self, discord: Discord) -> None:
        with pytest.raises(MessageGone):
            await discord.channel.do(Revise(LAB, "no number", Part("x")))
        with pytest.raises(MessageGone):
            await discord.channel.do(Revise(LAB, "12345", Part("x")))

    async def test_deleting_in_a_thread_that_is_gone_is_done(self, discord: Discord) -> None:
        lane = Address("discord", CHANNEL, "12345")
        assert await discord.channel.do(Delete(lane, "17")) == Done()


async def test_no_error_and_no_line_holds_the_token(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with opened() as discord:
            async with listening(discord.channel, discord.intake):
                await connected(discord)
                discord.fake.command("stop")
                await discord.fake.until(lambda: discord.intake.messages)
                press = discord.intake.messages[0].press
                discord.fake.fail("PATCH", "/webhooks/", 500)
                with pytest.raises(Uncertain) as caught:
                    await discord.channel.do(AnswerPress(press, "x"))
            await discord.fake.stop()
            with pytest.raises(SendError) as lost:
                await discord.channel.do(Send(LAB, Part("x")))
    secret = press.rpartition(":")[2]
    said = [record.getMessage() for record in caplog.records if record.name.startswith("channels")]
    said += [str(caught.value), repr(caught.value), str(lost.value), repr(lost.value)]
    assert not any(FakeDiscord().token in text or secret in text for text in said)
