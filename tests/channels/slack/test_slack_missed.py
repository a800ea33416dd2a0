"""What was said while nobody listened is read from the history, once, in order, within bounds."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from channels.slack import backfill
from channels.slack.fields import stamp_of
from core.channel import Mark
from core.messages import Address, Message, Missed
from tests.channels.slack.conftest import Slack
from tests.contracts.channel_contract import listening
from tests.fakes.recording_intake import RecordingIntake
from tests.fakes.slack import ANA, ANA_DM, BEN, BEN_DM, LAB, QUIET
from tests.fakes.slack_rules import Json

ME = "<@UBOT>"
HOUR = 3_600_000


def now() -> int:
    return int(time.time() * 1000)


class Down:
    """A workspace in which things are said while nobody listens."""

    def __init__(self, slack: Slack) -> None:
        self.slack = slack
        self.intake = slack.intake
        self.intake.since = now() - 300_000
        self.intake.places = {f"slack:{LAB}"}

    def says(self, text: str, **fields: object) -> Json:
        return self.slack.fake.user_says(text, delivered=False, **fields)  # type: ignore[arg-type]

    def known(self, message: Json, channel: str, thread: str = "") -> Address:
        """The thread of this message was accepted up to it."""
        address = Address("slack", channel, thread)
        self.intake.threads[address] = Mark(message["ts"], int(float(message["ts"]) * 1000))
        return address

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """Listening, and everything that was missed is read."""
        before = self.intake.since
        async with listening(self.slack.channel, self.intake):
            await self.slack.fake.until(lambda: self.intake.since > before)
            yield


@pytest.fixture
def down(slack: Slack) -> Down:
    return Down(slack)


async def test_a_direct_message_is_read_after_the_mark_of_its_chat(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    down.says("new one")
    down.says("new two")
    async with down.up():
        assert down.intake.texts == ["new one", "new two"]
        assert all(one.direct for one in down.intake.messages)


async def test_an_engaged_thread_is_read_without_a_mention(down: Down) -> None:
    root = down.says(f"{ME} begin", channel=LAB)
    down.known(root, LAB, root["ts"])
    down.says("and for last week?", channel=LAB, thread=root["ts"], user=BEN)
    down.says("shown to all", channel=LAB, thread=root["ts"], subtype="thread_broadcast")
    async with down.up():
        assert down.intake.texts == ["and for last week?", "shown to all"]
        assert {one.address.thread for one in down.intake.messages} == {root["ts"]}


async def test_a_new_mention_is_found_with_what_follows_it(down: Down) -> None:
    down.says("people talk", channel=LAB)
    root = down.says(f"{ME} look", channel=LAB)
    down.says("at this", channel=LAB, thread=root["ts"])
    async with down.up():
        assert down.intake.texts == ["look", "at this"]
        assert [one.addressed for one in down.intake.messages] == [True, False]


async def test_a_mention_inside_a_new_thread_is_found(down: Down) -> None:
    root = down.says("a plan", channel=LAB)
    down.says(f"{ME} what do you think?", channel=LAB, thread=root["ts"])
    async with down.up():
        assert "what do you think?" in down.intake.texts


async def test_a_mention_in_a_thread_from_before_the_pause_is_found(down: Down) -> None:
    root = down.says("a plan of last week", channel=LAB, ts=stamp_of(now() - 7 * 24 * HOUR))
    down.says("quiet since then", channel=LAB, ts=stamp_of(now() - 6 * 24 * HOUR))
    down.says(f"{ME} what do you think?", channel=LAB, thread=root["ts"])
    async with down.up():
        (message,) = down.intake.messages
        assert message.text == "what do you think?"
        assert message.address == Address("slack", LAB, root["ts"])
    assert len(down.slack.fake.called("conversations.replies")) == 1


async def test_after_a_short_pause_no_older_thread_is_looked_for(down: Down) -> None:
    down.intake.since = now() - 90_000
    async with down.up():
        assert len(down.slack.fake.called("conversations.history", LAB)) == 1


async def test_a_new_thread_in_a_direct_chat_is_found(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    thread = down.slack.fake.opens_assistant()
    down.says("in the new thread", thread=thread)
    async with down.up():
        (message,) = down.intake.messages
        assert message.address == Address("slack", ANA_DM, thread)


async def test_a_channel_that_never_listened_missed_nothing(down: Down) -> None:
    down.intake.since = 0
    down.says(f"{ME} before my time", channel=LAB)
    async with down.up():
        assert down.intake.messages == []
        assert abs(down.intake.since - now()) < 5000
        assert not down.slack.fake.called("conversations.history")


async def test_our_own_and_other_news_are_not_read(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    down.says("mine", user="UBOT", bot_id="BBOT")
    down.says("joined", subtype="channel_join")
    async with down.up():
        assert down.intake.accepted == []


async def test_what_is_older_than_a_day_is_told_and_not_run(down: Down) -> None:
    down.intake.since = now() - 72 * HOUR
    first = down.says("known", ts=stamp_of(now() - 50 * HOUR))
    where = down.known(first, ANA_DM)
    for hours in (49, 30):
        down.says(f"{hours} hours   ago", ts=stamp_of(now() - hours * HOUR))
    down.says("an hour ago", ts=stamp_of(now() - HOUR))
    async with down.up():
        (missed,) = down.intake.of(Missed)
        assert (missed.address, missed.direct, missed.count) == (where, True, 2)
        assert missed.labels == ("49 hours ago", "30 hours ago")
        assert missed.newest - missed.oldest == pytest.approx(19 * HOUR, abs=1000)
        assert down.intake.texts == ["an hour ago"]
        assert isinstance(down.intake.accepted[0], Missed)


async def test_what_was_said_before_a_restore_is_told_and_not_run(down: Down) -> None:
    down.intake.since = now() - 3 * HOUR
    down.intake.runs_from = now() - HOUR
    first = down.says("known", ts=stamp_of(now() - 3 * HOUR))
    down.known(first, ANA_DM)
    down.says("perhaps answered", ts=stamp_of(now() - 2 * HOUR))
    down.says(f"{ME} answered as well", channel=LAB, ts=stamp_of(now() - 2 * HOUR))
    down.says("after it", ts=stamp_of(now() - HOUR // 2))
    async with down.up():
        told = [one.labels for one in down.intake.of(Missed)]
        assert told == [("perhaps answered",), ("answered as well",)]
        assert down.intake.texts == ["after it"]


async def test_an_old_mention_is_told_in_its_own_thread(down: Down) -> None:
    down.intake.since = now() - 72 * HOUR
    root = down.says(f"{ME} long ago", channel=LAB, ts=stamp_of(now() - 40 * HOUR))
    down.says("nobody's matter", channel=LAB, ts=stamp_of(now() - 39 * HOUR))
    async with down.up():
        (missed,) = down.intake.accepted
        assert isinstance(missed, Missed)
        assert missed.address == Address("slack", LAB, root["ts"])


async def test_of_very_many_the_newest_are_run_and_the_rest_is_told(
    down: Down, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "MOST", 5)
    monkeypatch.setattr(backfill, "PAGE", 3)  # more than one page has to be read
    down.known(down.says("old"), ANA_DM)
    for number in range(12):
        down.says(f"m{number}")
    async with down.up():
        (missed,) = down.intake.of(Missed)
        assert missed.count == 7
        assert missed.labels[0] == "m0"
        assert down.intake.texts == [f"m{number}" for number in range(7, 12)]


async def test_what_is_said_now_waits_behind_what_was_missed(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    down.says("missed")
    fake = down.slack.fake
    fake.hang("conversations.history")
    async with listening(down.slack.channel, down.intake):
        await fake.until(lambda: fake.called("conversations.history"))
        live = fake.user_says("live")
        await fake.until(lambda: fake.envelopes[-1].sent)
        assert down.intake.texts == []
        fake.heal()
        await fake.until(lambda: len(down.intake.texts) == 2)
        assert down.intake.texts == ["missed", "live"]
        assert live["ts"] == down.intake.messages[-1].message_id


async def test_a_stop_is_seen_while_it_waits(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    fake = down.slack.fake
    fake.hang("conversations.history")
    async with listening(down.slack.channel, down.intake):
        await fake.until(lambda: fake.called("conversations.history"))
        fake.user_says("!stop")
        await fake.until(lambda: down.intake.glanced)
        assert down.intake.texts == []
        fake.heal()
        await fake.until(lambda: down.intake.texts == ["!stop"])


async def test_a_thread_that_is_read_already_does_not_wait_for_others(down: Down) -> None:
    root = down.says(f"{ME} begin", channel=LAB)
    down.known(root, LAB, root["ts"])
    fake = down.slack.fake
    fake.hang("conversations.history")  # of the place, which comes after its threads
    async with listening(down.slack.channel, down.intake):
        await fake.until(lambda: fake.called("conversations.history"))
        fake.user_says("go on", channel=LAB, thread=root["ts"])
        await fake.until(lambda: down.intake.texts == ["go on"])
        fake.heal()


async def test_what_somebody_waits_for_is_read_next(down: Down) -> None:
    fake = down.slack.fake
    times = [stamp_of(now() - 20_000 + 1000 * n) for n in range(4)]
    roots = [down.says(f"{ME} {n}", channel=LAB, ts=ts)["ts"] for n, ts in enumerate(times)]
    for ts in roots:
        down.known(fake.messages[LAB, ts], LAB, ts)
    fake.hang("conversations.replies")
    async with listening(down.slack.channel, down.intake):
        await fake.until(lambda: fake.called("conversations.replies"))
        fake.user_says("I am here", channel=LAB, thread=roots[0])
        await fake.until(lambda: fake.called("users.info") or fake.envelopes[-1].attempt)
        fake.heal()
        await fake.until(lambda: down.intake.texts == ["I am here"])
        await fake.until(lambda: len(fake.called("conversations.replies")) >= 5)
    read = [call.fields["ts"] for call in fake.called("conversations.replies")]
    assert list(dict.fromkeys(read)) == [roots[3], roots[0], roots[2], roots[1]]


async def test_a_slow_down_is_obeyed_and_the_reading_goes_on(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    down.says("missed")
    down.slack.fake.fail("conversations.history", "ratelimited", retry_after=9)
    async with down.up():
        assert down.intake.texts == ["missed"]
        assert any(8.0 < pause <= 9.0 for pause in down.slack.clock.asked)


async def test_a_place_we_may_not_read_keeps_no_other_from_it(down: Down) -> None:
    down.intake.places |= {f"slack:{QUIET}", "slack:C0GONE"}
    down.says(f"{ME} here", channel=LAB)
    async with down.up():
        assert down.intake.texts == ["here"]


async def test_what_could_not_be_read_is_read_the_next_time(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    down.says("missed")
    fake = down.slack.fake
    fake.fail("conversations.history", "internal_error", 500, times=0)
    since = down.intake.since
    async with listening(down.slack.channel, down.intake):
        await fake.until(lambda: len(fake.called("conversations.history")) >= 8)
        assert down.intake.since == since
        fake.heal()
        fake.cut()
        await fake.until(lambda: down.intake.texts == ["missed"])


async def test_until_it_could_be_read_nothing_newer_is_let_in(down: Down) -> None:
    root = down.says(f"{ME} begin", channel=LAB)
    down.known(root, LAB, root["ts"])
    down.known(down.says("old"), ANA_DM)
    down.says("missed")
    fake, intake, since = down.slack.fake, down.intake, down.intake.since
    fake.fail("conversations.history", "internal_error", 500, times=0)
    async with listening(down.slack.channel, intake):
        await fake.until(
            lambda: any("cannot be read yet" in one.reason for one in intake.connections)
        )
        fake.user_says("live")
        fake.user_says("!stop")
        fake.user_says("of a thread that is read", channel=LAB, thread=root["ts"])
        reads = len(fake.called("conversations.history"))
        await fake.until(lambda: len(fake.called("conversations.history")) > reads + 8)
        assert intake.texts == ["of a thread that is read"]
        assert "!stop" in [one.text for one in intake.glanced if isinstance(one, Message)]
        assert intake.since == since
        fake.heal()
        await fake.until(lambda: len(intake.texts) == 4)
        assert intake.texts[1:] == ["missed", "live", "!stop"]
        await fake.until(lambda: intake.since > since)
        assert intake.up


async def test_a_reading_that_was_cut_short_lets_nothing_newer_in(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    down.says("missed")
    fake = down.slack.fake
    fake.hang("conversations.history")
    async with listening(down.slack.channel, down.intake):
        await fake.until(lambda: fake.called("conversations.history"))
        fake.user_says("live")
        await fake.until(lambda: down.intake.glanced)
        fake.cut()
        await fake.until(lambda: not down.intake.up)
        await fake.until(lambda: down.intake.up)
        fake.heal()
        await fake.until(lambda: len(down.intake.texts) == 2)
        assert down.intake.texts == ["missed", "live"]


async def test_a_token_that_is_refused_meanwhile_is_told_as_that(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    down.slack.fake.fail("conversations.history", "token_revoked", times=0)
    async with listening(down.slack.channel, down.intake):
        await down.slack.fake.until(lambda: any(one.fatal for one in down.intake.connections))


async def test_from_the_greeting_of_a_new_connection_on_all_waits_for_the_history(
    down: Down,
) -> None:
    down.known(down.says("old"), ANA_DM)
    fake = down.slack.fake
    down.slack.clock.speed = 3.0  # the connection is not looked at before a message was held
    async with down.up():
        down.says("never delivered")
        sockets = list(fake.sockets)
        await fake.disconnect("refresh_requested")
        await fake.until(lambda: fake.sockets and list(fake.sockets) != sockets)
        fake.user_says("live")
        await fake.until(lambda: len(down.intake.texts) == 2)
        assert down.intake.texts == ["never delivered", "live"]


class TestFirstMessages:
    """Nobody has a mark yet who never wrote before."""

    @pytest.fixture
    def down(self, slack: Slack) -> Down:
        slack.channel._people = frozenset({ANA})
        return Down(slack)

    async def test_somebodys_first_direct_message_is_found(self, down: Down) -> None:
        down.says("before anybody listened", ts=stamp_of(down.intake.since - 20_000))
        down.says("hello?")
        async with down.up():
            assert down.intake.texts == ["hello?"]

    async def test_only_chats_of_people_who_are_named_are_read(self, down: Down) -> None:
        down.slack.fake.channel(BEN_DM)["user"] = BEN
        down.says("and me?", channel=BEN_DM, user=BEN)
        async with down.up():
            assert not down.slack.fake.called("conversations.history", BEN_DM)
            assert down.intake.texts == []

    async def test_a_long_list_is_read_page_by_page_as_far_as_is_needed(
        self, down: Down, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(backfill, "PAGE", 2)
        down.slack.channel._people = frozenset({ANA, "U0LATE"})
        for number in range(3):
            down.slack.fake.channel(f"D0X{number}", user=f"U0X{number}")
        down.slack.fake.channel("D0LATE", user="U0LATE")
        for number in range(9):
            down.slack.fake.channel(f"D0Y{number}", user=f"U0Y{number}")
        down.says("hello?", channel="D0LATE", user="U0LATE")
        async with down.up():
            assert down.intake.texts == ["hello?"]
            assert len(down.slack.fake.called("conversations.list")) <= 4

    async def test_what_is_said_now_waits_for_the_list(self, down: Down) -> None:
        fake = down.slack.fake
        down.says("hello?")
        fake.hang("conversations.list")
        async with listening(down.slack.channel, down.intake):
            await fake.until(lambda: fake.called("conversations.list"))
            fake.user_says("anybody?")
            await fake.until(lambda: down.intake.glanced)
            fake.heal()
            await fake.until(lambda: len(down.intake.texts) == 2)
            assert down.intake.texts == ["hello?", "anybody?"]

    @pytest.mark.parametrize("body", [None, b'{"ok": true, "channels": [7]}'])
    async def test_where_there_is_no_list_the_rest_is_read(
        self, down: Down, body: bytes | None
    ) -> None:
        if body is None:
            down.slack.fake.fail("conversations.list", "missing_scope")
        else:
            down.slack.fake.garble("conversations.list", body)
            down.slack.fake.faults[-1].content_type = "application/json"
        down.says(f"{ME} here", channel=LAB)
        async with down.up():
            assert down.intake.texts == ["here"]


async def test_it_is_read_again_when_slack_renews_the_connection(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    fake = down.slack.fake
    async with down.up():
        down.says("never delivered")
        await fake.disconnect("refresh_requested")
        await fake.until(lambda: down.intake.texts == ["never delivered"])


async def test_the_start_of_what_may_be_missed_moves_on_while_all_is_quiet(slack: Slack) -> None:
    async with listening(slack.channel, slack.intake):
        await slack.fake.until(lambda: slack.intake.since)
        slack.intake.since = 1
        slack.channel._listener._catching._reached_at = -1e9  # type: ignore[union-attr]
        await slack.fake.until(lambda: slack.intake.since > 1)
        assert now() - slack.intake.since < 90_000


async def test_by_a_clock_that_is_wrong_nothing_is_skipped(down: Down) -> None:
    class Ahead(type(down.slack.clock)):  # type: ignore[misc]
        def now(self) -> int:
            return int(super().now()) + 5 * HOUR

    down.slack.channel._clock = Ahead()
    down.intake.since = 0
    async with down.up():
        assert abs(down.intake.since - now()) < 5000


async def test_files_and_names_are_those_of_a_live_message(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    fake = down.slack.fake
    fake.user_sends(b"x", "a.txt", text="see <@U0BEN>", delivered=False)
    async with down.up():
        (message,) = down.intake.messages
        assert isinstance(message, Message)
        assert [file.name for file in message.files] == ["a.txt"]
        assert message.sender_name == "Ana"
        assert message.sender == f"slack:{ANA}"


async def test_nothing_is_read_twice_by_a_second_life(down: Down) -> None:
    down.known(down.says("old"), ANA_DM)
    down.says("missed")
    async with down.up():
        assert down.intake.texts == ["missed"]
    again = RecordingIntake(down.intake)
    before = again.since
    async with listening(down.slack.channel, again):
        await down.slack.fake.until(lambda: again.since >= before and again.up)
        down.slack.fake.user_says("now")
        await down.slack.fake.until(lambda: again.texts)
    assert again.texts == ["now"]
