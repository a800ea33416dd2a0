"""What was said while nobody listened: where it is looked for, in which order, and how much."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from channels.discord import history
from core.messages import Address, Message, Missed, Unreadable
from tests.channels.discord.conftest import Discord, opened, opened_on
from tests.contracts.channel_contract import listening
from tests.fakes.discord import ANA, BEN, BOT, CHANNEL, FORUM_CHANNEL, OTHER, ROBOT, FakeDiscord
from tests.fakes.recording_intake import RecordingIntake

ME = f"<@{BOT}>"
HOUR = 3600.0


@asynccontextmanager
async def engaged() -> AsyncIterator[tuple[Discord, str]]:
    """Ana wrote in her direct messages, and begins a thread by a mention; then nobody listens."""
    async with opened() as discord:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await fake.until(lambda: intake.up)
            fake.user_says("first")
            said = fake.user_says(f"{ME} begin", channel=CHANNEL)
            fake.opens_thread("begin", CHANNEL, number=said["id"])
            await fake.until(lambda: intake.texts == ["first", "begin"])
        yield discord, said["id"]


class Following(RecordingIntake):
    """Knows when a channel said that it has read what was missed."""

    caught_up = False

    def reached(self, channel: str, at: int) -> None:
        super().reached(channel, at)
        self.caught_up = True


async def after(discord: Discord, **options: object) -> RecordingIntake:
    """A later life of the gateway: everything it is handed before something new arrives."""
    intake = Following(discord.intake)
    channel = opened_on(discord.fake, discord.clock, **options)
    async with channel, listening(channel, intake):
        await discord.fake.until(lambda: intake.caught_up)
        discord.fake.user_says("new")
        await discord.fake.until(lambda: "new" in intake.texts)
    return intake


def texts(intake: RecordingIntake) -> list[str]:
    return list(dict.fromkeys(intake.texts))


async def test_everything_for_us_is_read_in_the_order_in_which_it_was_said() -> None:
    async with engaged() as (discord, thread):
        fake = discord.fake
        fake.user_says("in the thread", channel=thread, tell=False)
        fake.user_says("just talk", channel=CHANNEL, tell=False)
        fake.user_says("direct", tell=False)
        late = fake.user_says(f"{ME} a mention", channel=CHANNEL, tell=False)
        fake.user_says("more in the thread", channel=thread, user=BEN, tell=False)
        intake = await after(discord)
    assert texts(intake)[:4] == ["in the thread", "direct", "a mention", "more in the thread"]
    assert "just talk" not in intake.texts
    mention = next(one for one in intake.messages if one.text == "a mention")
    assert mention.address == Address("discord", CHANNEL, late["id"])


async def test_nothing_at_or_before_a_threads_mark_is_handed_in_again() -> None:
    async with engaged() as (discord, _):
        intake = await after(discord)
    assert intake.texts == ["new"]


async def test_a_channel_that_never_listened_missed_nothing() -> None:
    async with opened() as discord:
        discord.fake.user_says("old", tell=False)
        discord.fake.user_says(f"{ME} old", channel=CHANNEL, tell=False)
        intake = await after(discord)
        assert intake.texts == ["new"]
        assert intake.since > 0
        assert discord.fake.called("GET", "/messages$") == []


async def test_threads_that_are_new_in_a_place_are_looked_into() -> None:
    async with engaged() as (discord, _):
        fake = discord.fake
        fresh = fake.opens_thread("fresh", CHANNEL, announce=False)
        fake.user_says("talk before", channel=fresh, tell=False)
        fake.user_says(f"{ME} look", channel=fresh, tell=False)
        fake.user_says("and this", channel=fresh, tell=False)
        closed = fake.opens_thread("closed", CHANNEL, announce=False)
        fake.user_says(f"{ME} closed since", channel=closed, tell=False)
        fake.archive(closed)
        elsewhere = fake.opens_thread("elsewhere", OTHER, announce=False)
        fake.user_says(f"{ME} not a place", channel=elsewhere, tell=False)
        intake = await after(discord)
    assert texts(intake) == ["look", "and this", "closed since", "new"]
    look = intake.messages[0]
    assert (look.address, look.title) == (Address("discord", CHANNEL, fresh), "fresh")


async def test_posts_of_a_forum_are_looked_into() -> None:
    async with engaged() as (discord, _):
        discord.intake.places.add(f"discord:{FORUM_CHANNEL}")
        post, _ = discord.fake.posts("Question", f"{ME} why?", tell=False)
        intake = await after(discord)
    assert texts(intake) == ["why?", "new"]
    assert intake.messages[0].address == Address("discord", FORUM_CHANNEL, post)
    assert not discord.fake.called("GET", f"/channels/{FORUM_CHANNEL}/messages")


async def test_a_first_direct_message_of_somebody_on_the_lists_is_found() -> None:
    async with engaged() as (discord, _):
        discord.fake.user_says("my first", user=BEN, tell=False)
        assert texts(await after(discord)) == ["new"]
        intake = await after(discord, people=frozenset({ANA, BEN, "999"}))
    assert texts(intake) == ["my first", "new"]
    assert intake.messages[0].direct


async def test_quiet_threads_cost_no_call_of_their_own() -> None:
    async with engaged() as (discord, thread):
        before = len(discord.fake.calls)
        await after(discord)
    calls = discord.fake.calls[before:]
    assert not [call for call in calls if call.path == f"/channels/{thread}/messages"]


async def test_what_is_old_is_told_and_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with engaged() as (discord, _):
        fake, lane = discord.fake, discord.ana
        for address, mark in discord.intake.threads.items():
            discord.intake.threads[address] = type(mark)(fake.snow(mark.at / 1000 - 50 * HOUR), 1)
        discord.intake.since -= int(50 * HOUR * 1000)
        fake.user_says("two days ago " * 20, ago=48 * HOUR, tell=False)
        fake.user_says("yesterday", ago=25 * HOUR, tell=False)
        fake.user_says("a robot", ago=25 * HOUR, tell=False, channel=lane.chat, user=ROBOT)
        fake.user_says("today", ago=HOUR, tell=False)
        intake = await after(discord)
        again = await after(discord)
    missed = [one for one in intake.of(Missed) if one.address == lane]
    (one,) = missed
    assert (one.count, one.direct) == (2, True)
    assert one.labels[1] == "yesterday"
    assert len(one.labels[0]) == 60
    assert one.oldest < one.newest
    assert "today" in intake.texts
    assert "yesterday" not in intake.texts
    assert one.identity in {other.identity for other in again.of(Missed)}


async def test_what_was_said_before_a_restore_is_told_and_not_run() -> None:
    async with engaged() as (discord, _):
        fake = discord.fake
        for address, mark in discord.intake.threads.items():
            discord.intake.threads[address] = type(mark)(fake.snow(mark.at / 1000 - 3 * HOUR), 1)
        discord.intake.since -= int(3 * HOUR * 1000)
        discord.intake.runs_from = int((discord.clock.now() / 1000 - HOUR) * 1000)
        fake.user_says("perhaps answered", ago=2 * HOUR, tell=False)
        fake.user_says("after it", ago=HOUR / 2, tell=False)
        intake = await after(discord)
    labels = [label for one in intake.of(Missed) for label in one.labels]
    assert "perhaps answered" in labels
    assert "after it" in intake.texts
    assert "perhaps answered" not in intake.texts


async def test_of_very_much_the_newest_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "PAGE", 10)
    monkeypatch.setattr(history, "PAGES", 4)
    monkeypatch.setattr(history, "MOST", 20)
    async with engaged() as (discord, _):
        for number in range(55):
            discord.fake.user_says(str(number), tell=False)
        intake = await after(discord)
    assert texts(intake) == [*map(str, range(35, 55)), "new"]
    (missed,) = intake.of(Missed)
    assert missed.count == 20  # as far as was looked back
    assert missed.labels[0] == "15"


async def test_messages_in_places_that_cannot_be_seen_any_more_are_left() -> None:
    async with engaged() as (discord, thread):
        fake = discord.fake
        fake.denied.add((CHANNEL, "view"))
        fake.user_says("hidden", channel=thread, tell=False)
        fake.user_says("direct", tell=False)
        intake = await after(discord)
    assert texts(intake) == ["direct", "new"]


async def test_a_thread_that_was_deleted_holds_up_nothing() -> None:
    async with engaged() as (discord, thread):
        discord.fake.deletes_thread(thread)
        discord.fake.user_says("direct", tell=False)
        intake = await after(discord)
    assert texts(intake) == ["direct", "new"]


async def test_a_message_that_cannot_be_read_holds_up_no_other() -> None:
    async with engaged() as (discord, _):
        fake = discord.fake
        fake.user_says("odd", tell=False)["content"] = 7
        fake.user_says("good", tell=False)
        intake = await after(discord)
    assert texts(intake) == ["good", "new"]
    assert len(intake.of(Unreadable)) == 1


async def test_rates_are_waited_out_and_an_outage_is_tried_again() -> None:
    async with engaged() as (discord, _):
        fake = discord.fake
        fake.user_says("direct", tell=False)
        fake.fail("GET", "/messages$", 429, retry_after=3)
        fake.fail("GET", "/messages$", 503)
        intake = RecordingIntake(discord.intake)
        async with opened_on(fake, discord.clock) as channel, listening(channel, intake):
            await fake.until(lambda: intake.up)
            fake.user_says("new")
            await fake.until(lambda: "new" in intake.texts)
        assert texts(intake) == ["direct", "new"]  # what is newer waits: it would hide the older
    assert {1, 3} <= set(discord.clock.asked)
    assert [one.up for one in intake.connections] == [True, False, True]


async def test_what_arrives_meanwhile_waits_behind_the_history() -> None:
    async with engaged() as (discord, thread):
        fake = discord.fake
        fake.user_says("before", channel=thread, tell=False)
        fake.hang("GET", f"/channels/{thread}/messages$")
        intake = RecordingIntake(discord.intake)
        async with opened_on(fake, discord.clock) as channel, listening(channel, intake):
            await fake.until(lambda: intake.up and fake.called("GET", f"{thread}/messages$"))
            fake.user_says("live", channel=thread)
            fake.heal()  # the call ends without an answer, so it is made again
            await fake.until(lambda: {"before", "live"} <= set(intake.texts))


async def test_a_lane_whose_thread_was_never_opened_is_no_trouble() -> None:
    async with opened() as discord:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await fake.until(lambda: intake.up)
            fake.user_says(f"{ME} begin", channel=CHANNEL)
            await fake.until(lambda: intake.messages)
        late = await after(discord)
    assert late.texts == ["new"]
    assert not late.of(Missed)


async def test_everything_is_a_message_of_ours_only_once_stored() -> None:
    async with FakeDiscord(), engaged() as (discord, _):
        discord.fake.user_says("direct", tell=False)
        intake = RecordingIntake(discord.intake)
        intake.disk(False)
        since = intake.since
        async with opened_on(discord.fake, discord.clock) as channel:
            async with listening(channel, intake):
                await discord.fake.until(lambda: intake.offered)
            assert intake.since == since
            assert not [one for one in intake.accepted if isinstance(one, Message)]
