"""Sending: what leaves, where it goes, and what each refusal of Discord becomes."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest

from channels.discord.adapter import RECEIPTS
from core.channel import (
    AnswerPress,
    Delete,
    Done,
    FileTooBig,
    Find,
    Forbidden,
    MessageGone,
    NotSent,
    OpenThread,
    RateLimited,
    React,
    Refused,
    Retitle,
    Revise,
    Send,
    SendError,
    SendFile,
    ThreadGone,
    Typing,
    Uncertain,
)
from core.messages import Address, Button, Message, Part, Receipt, Style
from tests.channels.discord.conftest import Discord, opened
from tests.contracts.channel_contract import listening
from tests.fakes.discord import ANA, BOT, CHANNEL, FORUM_CHANNEL, MAL, FakeDiscord, Pace
from tests.fakes.discord_faults import Json

POST = ("POST", "/messages$")
LAB = Address("discord", CHANNEL)
ME = f"<@{BOT}>"


async def mentioned(discord: Discord, text: str = "hello there") -> tuple[Address, Json]:
    """Ana mentions us in the channel: the lane's address, and her message."""
    said = discord.fake.user_says(f"{ME} {text}", channel=CHANNEL)
    identity = f"discord:{said['id']}"
    await discord.fake.until(
        lambda: any(one.identity == identity for one in discord.intake.messages)
    )
    return Address("discord", CHANNEL, said["id"]), said


async def connected(discord: Discord) -> None:
    await discord.fake.until(lambda: discord.intake.up)


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


class TestThreads:
    async def test_a_thread_is_opened_by_the_first_word_into_it(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, said = await mentioned(discord, "fix the build")
            await discord.channel.do(React(lane, said["id"], Receipt.RECEIVED))
            assert lane.thread not in discord.fake.channels
            await discord.channel.do(Typing(lane))
            await discord.channel.do(Send(lane, Part("on it"), reply_to=said["id"]))
            await discord.channel.do(Send(lane, Part("done")))
        assert discord.fake.channels[lane.thread]["name"] == "fix the build"
        assert discord.fake.channels[lane.thread]["parent_id"] == CHANNEL
        assert discord.fake.texts(lane.thread) == ["on it", "done"]
        assert discord.fake.texts(CHANNEL) == []
        assert len(discord.fake.called("POST", "/threads$")) == 1
        assert discord.fake.reactions[CHANNEL, said["id"]] == ["👀"]

    async def test_nobody_who_is_not_answered_costs_a_call(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            before = len(discord.fake.calls)
            discord.fake.user_says(f"{ME} hi", channel=CHANNEL, user=MAL)
            await discord.fake.until(lambda: discord.intake.messages)
            assert len(discord.fake.calls) == before

    async def test_two_words_at_once_open_one_thread(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, _ = await mentioned(discord)
            parts = [discord.channel.do(Send(lane, Part(text))) for text in "abc"]
            await asyncio.gather(*parts)
        assert sorted(discord.fake.texts(lane.thread)) == ["a", "b", "c"]
        assert len(discord.fake.called("POST", "/threads$")) == 1

    async def test_a_thread_that_somebody_else_opened_is_used(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, said = await mentioned(discord)
            discord.fake.opens_thread("theirs", CHANNEL, number=said["id"], announce=False)
            await discord.channel.do(Send(lane, Part("here")))
        assert discord.fake.texts(lane.thread) == ["here"]

    async def test_without_the_right_the_answer_replies_in_the_channel(
        self, discord: Discord, caplog: pytest.LogCaptureFixture
    ) -> None:
        fake = discord.fake
        fake.denied.add((CHANNEL, "create_threads"))
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, said = await mentioned(discord)
            sent = await discord.channel.do(Send(lane, Part("answer")))
            await discord.channel.do(Revise(lane, sent.message_id, Part("better")))
            await discord.channel.do(Typing(lane))
            await discord.channel.do(React(lane, said["id"], Receipt.RECEIVED))
            with pytest.raises(Refused, match="no thread"):
                await discord.channel.do(Retitle(lane, "name"))
            assert fake.shown(CHANNEL)[0]["message_reference"]["message_id"] == said["id"]
            assert fake.texts(CHANNEL) == ["better"]
            assert fake.reactions[CHANNEL, said["id"]] == ["👀"]
            fake.user_says(f"{ME} more", channel=CHANNEL)
            await fake.until(lambda: len(discord.intake.messages) == 2)
            assert discord.intake.messages[1].address == LAB
            await discord.channel.do(Delete(lane, sent.message_id))
        assert fake.texts(CHANNEL) == []
        told = [r.getMessage() for r in caplog.records if "Create Public Threads" in r.getMessage()]
        assert len(told) == 1

    async def test_a_right_that_is_given_is_used_at_once(self, discord: Discord) -> None:
        fake = discord.fake
        fake.denied.add((CHANNEL, "create_threads"))
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, _ = await mentioned(discord)
            await discord.channel.do(Send(lane, Part("answer")))
            fake.denied.clear()
            fake.dispatch("CHANNEL_UPDATE", fake.channels[CHANNEL])
            lane, _ = await mentioned(discord, "again")
            await discord.channel.do(Send(lane, Part("inside")))
        assert fake.texts(lane.thread) == ["inside"]

    async def test_a_thread_nobody_opened_before_a_restart_is_opened_after_it(
        self, discord: Discord
    ) -> None:
        said = discord.fake.user_says(f"{ME} fix the build", channel=CHANNEL)
        lane = Address("discord", CHANNEL, said["id"])
        await discord.channel.do(Send(lane, Part("late")))
        assert discord.fake.texts(lane.thread) == ["late"]
        assert "fix the build" in discord.fake.channels[lane.thread]["name"]

    async def test_a_deleted_thread_is_not_opened_again(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, _ = await mentioned(discord)
            await discord.channel.do(Send(lane, Part("one")))
            discord.fake.deletes_thread(lane.thread)
            discord.fake.user_says("marker")
            await discord.fake.until(lambda: "marker" in discord.intake.texts)
            for action in (Send(lane, Part("two")), Typing(lane), Retitle(lane, "x")):
                with pytest.raises(ThreadGone):
                    await discord.channel.do(action)
        assert lane.thread not in discord.fake.channels

    async def test_a_thread_whose_end_was_not_told_is_gone_as_well(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, _ = await mentioned(discord)
            await discord.channel.do(Send(lane, Part("one")))
            await discord.fake.until(lambda: lane.thread in discord.fake.channels)
            discord.fake.user_says("marker")
            await discord.fake.until(lambda: "marker" in discord.intake.texts)
            discord.fake.deletes_thread(lane.thread, tell=False)
            with pytest.raises(ThreadGone):
                await discord.channel.do(Send(lane, Part("two")))

    async def test_a_thread_whose_beginning_was_deleted_is_gone(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, said = await mentioned(discord)
            discord.fake.user_deletes(said)
            with pytest.raises(ThreadGone):
                await discord.channel.do(Send(lane, Part("to nobody")))
        assert discord.fake.texts(CHANNEL) == []

    async def test_an_archived_thread_wakes_a_locked_one_is_closed(self, discord: Discord) -> None:
        thread = discord.fake.opens_thread("A matter")
        lane = Address("discord", CHANNEL, thread)
        sent = await discord.channel.do(Send(lane, Part("one")))
        discord.fake.archive(thread)
        await discord.channel.do(Revise(lane, sent.message_id, Part("one!")))
        assert discord.fake.texts(thread) == ["one!"]
        discord.fake.archive(thread)
        await discord.channel.do(Send(lane, Part("two")))
        assert discord.fake.texts(thread) == ["one!", "two"]
        discord.fake.archive(thread, locked=True)
        discord.fake.denied.add((CHANNEL, "manage_threads"))
        for action in (Send(lane, Part("x")), Revise(lane, sent.message_id, Part("x"))):
            with pytest.raises(ThreadGone, match="locked"):
                await discord.channel.do(action)
        assert discord.fake.texts(thread) == ["one!", "two"]

    async def test_threads_are_opened_in_channels_and_posts_in_forums(
        self, discord: Discord
    ) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.user_says("marker")
            await discord.fake.until(lambda: discord.intake.messages)
            made = await discord.channel.do(OpenThread(LAB, "  A   matter "))
            post = await discord.channel.do(OpenThread(Address("discord", FORUM_CHANNEL), "News"))
        assert discord.fake.channels[made.message_id]["name"] == "A matter"
        assert discord.fake.texts(post.message_id) == ["News"]

    async def test_the_first_message_of_a_post_stands_in_its_thread(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            thread, said = discord.fake.posts("Question", f"{ME} why?")
            await discord.fake.until(lambda: discord.intake.messages)
            lane = discord.intake.messages[0].address
            assert lane == Address("discord", FORUM_CHANNEL, thread)
            await discord.channel.do(React(lane, said["id"], Receipt.RECEIVED))
            await discord.channel.do(Send(lane, Part("because"), reply_to=said["id"]))
        assert discord.fake.reactions[thread, said["id"]] == ["👀"]
        assert discord.fake.texts(thread) == ["because"]

    async def test_renaming_keeps_to_discords_tiny_limit(self, discord: Discord) -> None:
        lane = Address("discord", CHANNEL, discord.fake.opens_thread("old"))
        await discord.channel.do(Retitle(lane, "one\nname"))
        await discord.channel.do(Retitle(lane, "x" * 150))
        assert discord.fake.channels[lane.thread]["name"] == "x" * 100
        with pytest.raises(RateLimited) as limited:
            await discord.channel.do(Retitle(lane, "three"))
        assert 590 < limited.value.retry_after <= 600
        assert not limited.value.everywhere
        assert len(discord.fake.called("PATCH", f"/channels/{lane.thread}$")) == 2

    async def test_a_title_before_the_first_word_is_the_threads_name(
        self, discord: Discord
    ) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, _ = await mentioned(discord, "a long question about things")
            await discord.channel.do(Retitle(lane, "Things"))
        assert discord.fake.channels[lane.thread]["name"] == "Things"
        assert discord.fake.called("PATCH") == []


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
            begun = time.monotonic()
            asked = fake.command("status")
            await fake.until(lambda: fake.interactions[asked["token"]]["answered"])
            assert time.monotonic() - begun < 1
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


class TestFiles:
    async def test_a_file_may_not_be_larger_than_discord_takes(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        path = tmp_path / "big"
        with path.open("wb") as out:
            out.truncate(10 * 1024 * 1024 + 1)
        with pytest.raises(FileTooBig):
            await discord.channel.do(SendFile(LAB, path, "big"))
        path.write_bytes(b"x")
        discord.fake.fail(*POST, 413, 40005, "Request entity too large")
        with pytest.raises(Refused, match="larger"):
            await discord.channel.do(SendFile(LAB, path, "big"))

    async def test_a_file_sent_twice_with_one_nonce_is_there_once(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.bin"
        path.write_bytes(b"\0\1")
        for _ in range(2):
            await discord.channel.do(SendFile(LAB, path, "a.bin", nonce="f1"))
        (shown,) = discord.fake.shown(CHANNEL)
        assert shown["attachments"][0]["filename"] == "a.bin"
        assert shown["content"] == ""

    async def test_a_file_opens_the_thread_it_belongs_to(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.txt"
        path.write_bytes(b"all")
        said = discord.fake.user_says(f"{ME} send it", channel=CHANNEL)
        lane = Address("discord", CHANNEL, said["id"])
        await discord.channel.do(SendFile(lane, path, "a.txt", Part("look"), nonce="f2"))
        (shown,) = discord.fake.shown(lane.thread)
        assert discord.fake.files[shown["attachments"][0]["id"]] == b"all"

    async def received(self, discord: Discord, **fields: object) -> Message:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.user_sends(b"some bytes", "a.txt", **fields)
            await discord.fake.until(lambda: discord.intake.messages)
        return discord.intake.messages[0]

    async def test_an_address_that_expired_is_asked_for_anew(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        message = await self.received(discord)
        discord.fake.expire_links()
        await discord.channel.fetch(message.files[0], tmp_path / "got")
        assert (tmp_path / "got").read_bytes() == b"some bytes"
        cdn = discord.fake.called("GET", "^/cdn/")
        assert [call.status for call in cdn] == [200]

    async def test_a_large_file_is_refused_before_and_while_it_comes(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        message = await self.received(discord, size=60_000_000)
        with pytest.raises(FileTooBig):
            await discord.channel.fetch(message.files[0], tmp_path / "got")
        assert discord.fake.called("GET", "^/cdn/") == []

    async def test_a_file_whose_message_is_gone_says_so(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        message = await self.received(discord)
        where = discord.fake.messages[message.address.chat]
        discord.fake.user_deletes(where[message.message_id])
        with pytest.raises(Refused, match="not there any more"):
            await discord.channel.fetch(message.files[0], tmp_path / "got")

    @pytest.mark.parametrize(("status", "error"), [(500, Uncertain), (403, Refused)])
    async def test_a_download_that_fails_leaves_nothing(
        self, discord: Discord, tmp_path: Path, status: int, error: type[Exception]
    ) -> None:
        message = await self.received(discord)
        discord.fake.fail("GET", "^/cdn/", status)
        with pytest.raises(error):
            await discord.channel.fetch(message.files[0], tmp_path / "got")
        assert not (tmp_path / "got").exists()


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


class TestFinding:
    async def test_a_send_whose_answer_was_lost_is_found_by_its_event(
        self, discord: Discord
    ) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.drop(*POST, after=True)
            since = discord.clock.now()
            with pytest.raises(Uncertain):
                await discord.channel.do(Send(LAB, Part("once"), nonce="n1"))
            discord.fake.user_says("marker")
            await discord.fake.until(lambda: discord.intake.messages)
            found = await discord.channel.do(Find(LAB, "n1", since))
            assert found.message_id == discord.fake.shown(CHANNEL)[0]["id"]

    async def test_without_the_event_it_is_found_by_its_words(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
        since = discord.clock.now()
        discord.fake.drop(*POST, after=True)
        with pytest.raises(Uncertain):
            await discord.channel.do(Send(LAB, Part("once"), nonce="n1"))
        found = await discord.channel.do(Find(LAB, "n1", since))
        assert found.message_id == discord.fake.shown(CHANNEL)[0]["id"]

    async def test_what_never_arrived_is_certainly_not_there(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            since = discord.clock.now()
            await discord.channel.do(Send(LAB, Part("another"), nonce="n0"))
            discord.fake.drop(*POST)
            with pytest.raises(Uncertain):
                await discord.channel.do(Send(LAB, Part("once"), nonce="n1"))
            assert await discord.channel.do(Find(LAB, "n1", since)) == Done("")

    async def test_after_a_restart_it_is_certain_only_where_nothing_of_ours_stands(
        self, discord: Discord
    ) -> None:
        since = discord.clock.now()
        async with listening(discord.channel, discord.intake):
            await connected(discord)
        assert await discord.channel.do(Find(LAB, "n1", since)) == Done("")
        discord.fake.message(CHANNEL, "of an earlier life", discord.fake.me)
        with pytest.raises(Uncertain):
            await discord.channel.do(Find(LAB, "n1", since))
        lane = Address("discord", CHANNEL, "1234567890")
        assert await discord.channel.do(Find(lane, "n1", since)) == Done("")


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
