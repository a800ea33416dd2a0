"""Receiving: order, what a lost connection costs, what is let in, and how trouble is met."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from channels.discord import listening as parts
from channels.discord.adapter import DiscordChannel
from channels.discord.gateway import Timing
from core.channel import NotSent, Send
from core.messages import Address, Edit, Message, Part, Press, Titled, Unreadable
from tests.channels.discord.conftest import Discord, QuickClock, connected, opened_on
from tests.contracts.channel_contract import listening
from tests.fakes.discord import ANA, BOT, CHANNEL, GUILD, OTHER, ROBOT, FakeDiscord
from tests.fakes.recording_intake import RecordingIntake

ME = f"<@{BOT}>"


class TestSession:
    async def test_only_what_is_needed_is_asked_for(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
        (identify,) = discord.fake.identifies
        assert identify["intents"] == 1 | 1 << 9 | 1 << 12 | 1 << 15
        assert "presence" not in identify

    async def test_a_lost_connection_is_resumed_and_nothing_is_lost_or_doubled(
        self, discord: Discord
    ) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            fake.user_says("one")
            await fake.until(lambda: intake.texts == ["one"])
            fake.cut(1006 - 6)
            fake.user_says("two")
            await fake.until(lambda: intake.texts == ["one", "two"])
            fake.user_says("three")
            await fake.until(lambda: intake.texts == ["one", "two", "three"])
        assert len(fake.identifies) == len(fake.resumes) == 1
        assert [one.up for one in intake.connections] == [True]

    async def test_an_order_to_reconnect_is_no_news(self, discord: Discord) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            fake.order(7)
            fake.user_says("after")
            await fake.until(lambda: intake.texts == ["after"])
        assert len(fake.resumes) == 1
        assert [one.up for one in intake.connections] == [True]

    @pytest.mark.parametrize("how", ["refused resume", "invalid session"])
    async def test_what_a_lost_session_kept_back_is_read_in_order_before_what_is_new(
        self, discord: Discord, how: str
    ) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            fake.user_says("one")
            await fake.until(lambda: intake.texts == ["one"])
            if how == "refused resume":
                fake.cut()
                fake.forget_session()
            else:
                fake.order(9, False)
            fake.user_says("two")
            fake.user_says("three")
            await fake.until(lambda: len(fake.identifies) == 2)
            fake.user_says("four")
            await fake.until(lambda: "four" in intake.texts)
        seen = list(dict.fromkeys(intake.texts))
        assert seen == ["one", "two", "three", "four"]
        assert intake.up

    async def test_two_new_sessions_are_five_seconds_apart(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.order(9, False)
            await discord.fake.until(lambda: len(discord.fake.identifies) == 2)
        assert sum(discord.clock.asked) > 4.5

    async def test_the_heart_beats_and_ends_with_the_connection(self, discord: Discord) -> None:
        discord.fake.heartbeat_every = 0.02
        async with listening(discord.channel, discord.intake):
            await discord.fake.until(lambda: discord.fake.beats >= 3)
        await discord.fake.until(
            lambda: not [t for t in threading.enumerate() if "keep-alive" in t.name]
        )

    async def test_a_new_start_listens_anew_on_the_same_channel(self, discord: Discord) -> None:
        for number in range(3):
            intake = RecordingIntake()
            async with listening(discord.channel, intake):
                await discord.fake.until(lambda seen=intake: seen.up)
                discord.fake.user_says(str(number))
                await discord.fake.until(lambda seen=intake, n=str(number): n in seen.texts)
        assert len(discord.fake.identifies) == 3

    async def test_stopping_is_quick(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            begun = time.monotonic()
        assert time.monotonic() - begun < 10
        assert not discord.fake.connected

    async def test_where_the_gateway_is_can_be_asked(self) -> None:
        clock, intake = QuickClock(), RecordingIntake()
        async with FakeDiscord() as fake, DiscordChannel(fake.token, clock, fake.url) as channel:
            async with listening(channel, intake):
                await fake.until(lambda: intake.up)
            assert fake.called("GET", "/gateway/bot")

    async def test_the_last_sessions_of_a_day_are_not_used_up(self) -> None:
        # Using up all of them resets the token.
        clock, intake = QuickClock(), RecordingIntake()
        async with FakeDiscord() as fake, DiscordChannel(fake.token, clock, fake.url) as channel:
            fake.api.starts_left = 3
            async with listening(channel, intake):
                await fake.until(lambda: intake.connections)
            assert fake.identifies == []
            assert clock.asked[0] == 60
            assert "wait" in intake.connections[0].reason


class TestTrouble:
    async def test_pauses_grow_to_a_minute_while_discord_is_unreachable(
        self, discord: Discord
    ) -> None:
        fake, intake, clock = discord.fake, discord.intake, discord.clock
        await fake.stop()
        async with listening(discord.channel, intake):
            await fake.until(lambda: len(clock.asked) >= 8)
            pauses = clock.asked[:8]
            assert pauses == sorted(pauses)
            assert 1 <= pauses[0] <= 1.2
            assert pauses[-1] == 60
            assert "cannot be reached" in intake.connections[0].reason
            await fake.start(fake.port)
            await connected(discord)
        assert [one.up for one in intake.connections] == [False, True]

    async def test_a_gateway_that_refuses_the_first_connections_is_tried_again(
        self, discord: Discord
    ) -> None:
        discord.fake.refuse_lines = 3
        async with listening(discord.channel, discord.intake):
            await connected(discord)
        assert [one.up for one in discord.intake.connections] == [False, True]

    async def test_a_gateway_that_says_nothing_is_left(self) -> None:
        clock, intake = QuickClock(), RecordingIntake()
        async with FakeDiscord() as fake:
            fake.mute = True
            timing = Timing(ready_within=0.1)
            channel = DiscordChannel(fake.token, clock, fake.url, fake.gateway_url, timing=timing)
            async with channel, listening(channel, intake):
                await fake.until(lambda: intake.connections)
                assert not intake.up
                fake.mute = False
                await fake.until(lambda: intake.up)

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            (4004, "token"),
            (4010, "shard"),
            (4011, "too many servers"),
            (4012, "version"),
            (4013, "intent"),
            (4014, "Message Content Intent"),
        ],
    )
    async def test_a_close_that_no_retry_heals_says_what_to_do(
        self, discord: Discord, code: int, words: str
    ) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.cut(code)
            await discord.fake.until(lambda: not discord.intake.up)
            last = discord.intake.connections[-1]
            assert last.fatal
            assert words in last.reason
            await discord.fake.until(lambda: discord.clock.asked)
            assert discord.clock.asked[-1] == 600

    async def test_a_wrong_token_is_told_before_a_session_is_spent(self, discord: Discord) -> None:
        right, discord.fake.token = discord.fake.token, "another"
        async with listening(discord.channel, discord.intake):
            await discord.fake.until(lambda: discord.intake.connections)
            assert discord.intake.connections[0].fatal
            assert discord.fake.identifies == []
            discord.fake.token = right
            await connected(discord)

    async def test_a_token_refused_at_a_send_is_told_at_once(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.token = "another"
            with pytest.raises(NotSent):
                await discord.channel.do(Send(discord.ana, Part("x")))
            assert discord.intake.connections[-1].fatal
            assert "Reset Token" in discord.intake.connections[-1].reason

    async def test_a_missing_intent_is_fatal_and_says_where_to_switch_it_on(
        self, discord: Discord
    ) -> None:
        discord.fake.flags = 0
        async with listening(discord.channel, discord.intake):
            await discord.fake.until(lambda: discord.intake.connections)
        assert discord.intake.connections[0].fatal
        assert "Message Content Intent" in discord.intake.connections[0].reason

    async def test_an_intent_that_is_not_granted_is_said_at_the_start(
        self, discord: Discord, caplog: pytest.LogCaptureFixture
    ) -> None:
        discord.fake.ready_fields = {"application": {"id": BOT, "flags": 0}}
        async with listening(discord.channel, discord.intake):
            await connected(discord)
        assert any("message content intent is off" in r.getMessage() for r in caplog.records)

    async def test_frames_that_make_no_sense_cost_nothing_else(
        self, discord: Discord, caplog: pytest.LogCaptureFixture
    ) -> None:
        fake = discord.fake
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            for frame in ("no json", "[]", '"text"', "null", '{"op":"x"}', '{"op":99}', "[" * 5000):
                fake.push_frame(frame)
            fake.user_says("still here?")
            await fake.until(lambda: discord.intake.texts == ["still here?"])
        assert len(fake.identifies) == 1
        assert fake.resumes == []

    async def test_a_malformed_event_holds_up_no_other(self, discord: Discord) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            author = {"id": ANA, "username": "ana"}
            for data in (
                {"id": "5", "channel_id": CHANNEL, "author": author, "content": 7},
                "not even an object",
                {"guild_id": 7},
                None,
            ):
                fake.dispatch("MESSAGE_CREATE", data)
            for kind in ("GUILD_CREATE", "THREAD_UPDATE", "CHANNEL_DELETE", "INTERACTION_CREATE"):
                fake.dispatch(kind, {"id": {}})
                fake.dispatch(kind, [])
            fake.user_says("still here?")
            await fake.until(lambda: intake.texts == ["still here?"])
        aside = intake.of(Unreadable)
        assert len({one.identity for one in aside}) == len(aside)
        assert aside[0].about == (f"discord:{CHANNEL}", f"discord:{ANA}")
        assert len(fake.identifies) == 1


class TestDiskTrouble:
    async def test_a_stop_is_seen_while_nothing_can_be_stored(self, discord: Discord) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            intake.disk(False)
            fake.user_says("work")
            await fake.until(lambda: intake.offered)
            fake.user_says("/stop")
            await fake.until(lambda: intake.glanced)
            asked = len(discord.clock.asked)
            await fake.until(lambda: len(discord.clock.asked) >= asked + 4)
            assert [one.text for one in intake.glanced if isinstance(one, Message)] == ["/stop"]
            assert not intake.accepted
            intake.disk(True)
            await fake.until(lambda: intake.texts == ["work", "/stop"])

    async def test_more_than_can_be_kept_is_read_from_the_history(
        self, discord: Discord, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(parts, "WAITING_MOST", 3)
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            fake.user_says("0")
            await fake.until(lambda: intake.texts == ["0"])
            intake.disk(False)
            for number in range(1, 10):
                fake.user_says(str(number))
            fake.user_says("marker")
            await fake.until(lambda: len(discord.clock.asked) > 5)
            intake.disk(True)
            await fake.until(lambda: "marker" in intake.texts)
        assert list(dict.fromkeys(intake.texts)) == [*map(str, range(10)), "marker"]
        assert fake.called("GET", "/messages$")


class TestPlaces:
    async def test_a_thread_is_let_in_by_its_parent_once_that_is_known(
        self, discord: Discord
    ) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            thread = fake.opens_thread("unknown", CHANNEL, announce=False)
            fake.user_says("inside", channel=thread)
            fake.user_says("again", channel=thread)
            await fake.until(lambda: intake.texts == ["inside", "again"])
        assert {one.address for one in intake.messages} == {Address("discord", CHANNEL, thread)}
        assert len(fake.called("GET", f"/channels/{thread}$")) == 1

    async def test_what_discord_does_not_show_stays_out(self, discord: Discord) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            thread = fake.opens_thread("hidden", OTHER, announce=False)
            fake.denied.add((OTHER, "view"))
            for _ in range(3):
                fake.user_says(f"{ME} inside", channel=thread)
            fake.user_says("marker")
            await fake.until(lambda: intake.texts == ["marker"])
        assert len(fake.called("GET", f"/channels/{thread}$")) == 1

    async def test_a_thread_that_cannot_be_asked_for_is_asked_for_again_then_set_aside(
        self, discord: Discord
    ) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            thread = fake.opens_thread("slow", CHANNEL, announce=False)
            fake.fail("GET", f"/channels/{thread}$", 503, times=3)
            fake.user_says(f"{ME} inside", channel=thread)
            fake.user_says("marker")
            await fake.until(lambda: intake.texts == ["inside", "marker"])
            other = fake.opens_thread("never", CHANNEL, announce=False)
            fake.fail("GET", f"/channels/{other}$", 503, times=0)
            fake.user_says(f"{ME} lost?", channel=other)
            fake.user_says("still here")
            await fake.until(lambda: "still here" in intake.texts)
        (aside,) = intake.of(Unreadable)
        assert "its channel is unknown" in aside.error
        assert aside.about == (f"discord:{other}", f"discord:{ANA}")

    async def test_a_renamed_thread_is_told(self, discord: Discord) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            thread = fake.opens_thread("old")
            fake.renames(thread, "new")
            fake.archive(thread)
            await fake.until(lambda: intake.of(Titled))
            fake.renames(thread, "newer")
            await fake.until(lambda: len(intake.of(Titled)) == 2)
        first, second = intake.of(Titled)
        assert (first.title, second.title) == ("new", "newer")
        assert first.address == Address("discord", CHANNEL, thread)
        assert first.identity != second.identity

    async def test_a_server_that_is_away_for_a_while_is_not_forgotten(
        self, discord: Discord
    ) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            fake.dispatch("GUILD_DELETE", {"id": GUILD, "unavailable": True})
            fake.user_says(f"{ME} hi", channel=CHANNEL)
            await fake.until(lambda: intake.messages)
            assert not fake.called("GET", "/channels/")
            fake.dispatch("GUILD_DELETE", {"id": GUILD})
            fake.user_says(f"{ME} hi", channel=CHANNEL)
            await fake.until(lambda: len(intake.messages) == 2)
        assert fake.called("GET", "/channels/")


class TestWhatIsTold:
    async def test_our_own_words_are_not_heard(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            await discord.channel.do(Send(Address("discord", CHANNEL), Part(f"{ME} me")))
            discord.fake.user_says("marker")
            await discord.fake.until(lambda: discord.intake.accepted)
        assert discord.intake.texts == ["marker"]

    async def test_other_bots_are_marked_as_such(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.user_says(f"{ME} loop", user=ROBOT, channel=CHANNEL)
            await discord.fake.until(lambda: discord.intake.messages)
        assert discord.intake.messages[0].from_bot

    async def test_links_and_pins_make_no_edit_but_a_changed_text_does(
        self, discord: Discord
    ) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            said = fake.user_says("see https://example.org")
            fake.unfurls(said)
            fake.user_edits(said, "see https://example.com")
            fake.unfurls(said)
            said["pinned"] = True
            fake.user_edits(said, "see https://example.com")
            fake.user_says("marker")
            await fake.until(lambda: "marker" in intake.texts)
        (edit,) = intake.of(Edit)
        assert edit.text == "see https://example.com"
        assert edit.identity.startswith(f"discord:{said['id']}:e20")

    async def test_a_press_keeps_its_place_among_messages(self, discord: Discord) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            fake.user_says("before")
            fake.command("stop")
            fake.user_says("after")
            await fake.until(lambda: intake.texts == ["before", "/stop", "after"])
        assert intake.of(Press) == []

    async def test_how_far_we_are_moves_with_what_is_stored(self, discord: Discord) -> None:
        fake, intake = discord.fake, discord.intake
        async with listening(discord.channel, intake):
            await connected(discord)
            base = intake.since
            assert abs(base - time.time() * 1000) < 30_000
            fake.user_says("later", number=fake.snow(time.time() + 60))
            await fake.until(lambda: intake.messages)
            # A time ahead of Discord's own clock is not believed.
            assert intake.since <= time.time() * 1000


async def test_the_library_logs_nothing_of_what_people_write(
    discord: Discord, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.user_says("very private words")
            await discord.fake.until(lambda: discord.intake.messages)
    assert "very private words" not in caplog.text
    assert discord.fake.token not in caplog.text


async def test_channels_on_one_server_share_nothing_but_its_address() -> None:
    clock, first, second = QuickClock(), RecordingIntake(), RecordingIntake()
    async with FakeDiscord() as fake:
        async with opened_on(fake, clock) as one, listening(one, first):
            await fake.until(lambda: first.up)
        async with opened_on(fake, clock) as two, listening(two, second):
            await fake.until(lambda: second.up)
            fake.user_says("hi")
            await fake.until(lambda: second.messages)
    assert first.messages == []
