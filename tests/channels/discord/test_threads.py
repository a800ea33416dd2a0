"""Threads: opened when first written to, used where they are, gone when they are gone."""

from __future__ import annotations

import asyncio

import pytest

from core.channel import (
    Delete,
    OpenThread,
    RateLimited,
    React,
    Refused,
    Retitle,
    Revise,
    Send,
    ThreadGone,
    Typing,
)
from core.messages import Address, Part, Receipt
from tests.channels.discord.conftest import Discord, connected, mentioned
from tests.contracts.channel_contract import listening
from tests.fakes.discord import BOT, CHANNEL, FORUM_CHANNEL, MAL

POST = ("POST", "/messages$")
LAB = Address("discord", CHANNEL)
ME = f"<@{BOT}>"


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

    async def test_a_thread_that_we_opened_is_known_before_we_are_told(
        self, discord: Discord, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        api = discord.fake.api
        tell = api._dispatch
        monkeypatch.setattr(
            api, "_dispatch", lambda kind, event: kind == "THREAD_CREATE" or tell(kind, event)
        )
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            lane, _ = await mentioned(discord, "fix the build")
            await discord.channel.do(Send(lane, Part("on it")))
            discord.fake.user_says("and the tests", channel=lane.thread)
            await discord.fake.until(lambda: discord.intake.texts[-1] == "and the tests")
        assert discord.intake.messages[-1].address == lane
        assert not discord.fake.called("GET", f"/channels/{lane.thread}$")

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
