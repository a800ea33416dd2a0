"""Words that come show as they come, where one person reads them; everything else is edited."""

from __future__ import annotations

from dataclasses import replace

import pytest

from channels.slack.calls import STREAMS_END
from channels.slack.streams import LIFE, QUIET, REFUSED_FOR, STARTS, TEXT_MOST, WAIT_MORE, Where
from core.channel import (
    Delete,
    Done,
    Find,
    MessageGone,
    RateLimited,
    Refused,
    Revise,
    Stream,
    Uncertain,
)
from core.messages import Address, Button, Part
from tests.channels.slack.conftest import Slack
from tests.fakes.slack import ANA, ANA_DM, LAB
from tests.fakes.slack_rules import Json

STOP = ((Button("b:stop", "Stop"),),)
NONCE = "p.1.2"


class Thread:
    """A thread in which a turn works; ``says`` shows how far it is."""

    def __init__(self, slack: Slack, channel: str = ANA_DM) -> None:
        self.slack = slack
        self.fake = slack.fake
        self.root = self.fake.user_says("question", channel=channel, delivered=False)
        self.address = Address("slack", channel, self.root["ts"])
        self.message_id = ""
        self.nonce = NONCE

    async def says(self, text: str, footer: str = "⏳ writing…", person: str = ANA) -> Done:
        part = Part("\n\n".join(filter(None, (text, footer))))
        done = await self.slack.channel.do(
            Stream(self.address, self.message_id, text, part, STOP, f"slack:{person}", self.nonce)
        )
        self.message_id = done.message_id
        return done

    async def ends(self, text: str) -> None:
        (part,) = self.slack.channel.render(text)
        await self.slack.channel.do(Revise(self.address, self.message_id, part))

    @property
    def message(self) -> Json:
        return self.fake.messages[self.address.chat, self.message_id]

    @property
    def texts(self) -> list[str]:
        return self.fake.texts(self.address.chat, self.root["ts"])


@pytest.fixture
async def thread(slack: Slack) -> Thread:
    await slack.channel._web.me(slack.clock.now())
    return Thread(slack)


def everywhere(thread: Thread) -> Thread:
    thread.slack.channel._calls.streams._where = Where.EVERYWHERE
    return Thread(thread.slack, LAB)


# While words come ---------------------------------------------------------------------------


async def test_words_are_added_to_the_message_that_the_first_ones_made(thread: Thread) -> None:
    assert (await thread.says("one")).growing
    assert (await thread.says("one two")).growing
    added = [call.fields["markdown_text"] for call in thread.fake.called("chat.appendStream")]
    assert added == [" two"]
    assert thread.texts == ["one two"]
    assert thread.message["streaming"]
    assert not thread.fake.called("chat.update")


async def test_the_answer_takes_the_place_of_the_stream(thread: Thread) -> None:
    await thread.says("**one")
    await thread.ends("**one** more")
    assert thread.texts == ["one more"]
    assert not thread.message["streaming"]
    methods = [call.method for call in thread.fake.calls if call.method.startswith("chat.")]
    assert methods == ["chat.startStream", "chat.stopStream", "chat.update"]


async def test_nothing_that_an_agent_writes_can_ping(thread: Thread) -> None:
    await thread.says("a <!channel>")
    await thread.says("a <!channel> & <@U0BEN>")
    assert thread.message["text"] == "a &lt;!channel&gt; &amp; &lt;@U0BEN&gt;"


async def test_a_frame_without_new_words_is_no_call(thread: Thread) -> None:
    await thread.says("one")
    assert (await thread.says("one", "⏳ writing… · 5 s")).growing
    assert not thread.fake.called("chat.appendStream")


async def test_more_frames_than_slack_takes_are_added_later_and_none_is_refused(
    thread: Thread,
) -> None:
    words = "one"
    await thread.says(words)
    for n in range(30):
        words += f" {n}"
        assert (await thread.says(words)).growing
    assert len(thread.fake.called("chat.appendStream")) < 15
    thread.slack.clock.later += 2
    await thread.says(words)
    assert thread.texts == [words]


# When they stop -----------------------------------------------------------------------------


@pytest.mark.parametrize("pause", [QUIET + 1, LIFE + 1])
async def test_when_no_words_come_it_shows_what_goes_on_and_a_stop_button(
    thread: Thread, pause: float
) -> None:
    await thread.says("one")
    thread.slack.clock.later += pause
    done = await thread.says("one", "🔧 run the tests")
    assert not done.growing
    assert thread.texts == ["one\n\n🔧 run the tests"]
    assert thread.fake.buttons(thread.message) == ["Stop"]
    await thread.says("one two")
    assert thread.texts == ["one two\n\n⏳ writing…"]
    assert len(thread.fake.called("chat.startStream")) == 1


async def test_a_stream_ends_before_slack_ends_it(thread: Thread) -> None:
    await thread.says("one")
    thread.slack.clock.later += LIFE + 1
    assert not (await thread.says("one two")).growing
    assert thread.texts == ["one two\n\n⏳ writing…"]


async def test_a_text_too_long_for_a_stream_goes_on_by_edits(thread: Thread) -> None:
    await thread.says("one")
    done = await thread.says("one " + "x" * TEXT_MOST, "⏳ writing…")
    assert not done.growing
    assert not thread.message["streaming"]


async def test_a_text_that_begins_anew_replaces_what_was_shown(thread: Thread) -> None:
    await thread.says("one")
    assert not (await thread.says("another")).growing
    assert thread.texts == ["another\n\n⏳ writing…"]


async def test_a_stream_that_slack_ended_is_finished_by_edits(thread: Thread) -> None:
    await thread.says("one")
    thread.fake.stream_life = -1.0
    assert not (await thread.says("one two")).growing
    await thread.ends("one two three")
    assert thread.texts == ["one two three"]


async def test_an_addition_of_unknown_fate_is_not_made_twice(thread: Thread) -> None:
    await thread.says("one")
    thread.fake.drop("chat.appendStream", after=True)
    with pytest.raises(Uncertain):
        await thread.says("one two")
    thread.message_id = thread.fake.shown(ANA_DM, thread.root["ts"])[0]["ts"]
    assert not (await thread.says("one two")).growing
    assert thread.texts == ["one two\n\n⏳ writing…"]


async def test_inside_a_penalty_nothing_is_added(thread: Thread) -> None:
    await thread.says("one")
    thread.fake.fail("chat.appendStream", "ratelimited", retry_after=7)
    message_id = thread.message_id
    for _ in range(3):
        with pytest.raises(RateLimited):
            await thread.says("one two")
        thread.message_id = message_id
    assert len(thread.fake.called("chat.appendStream")) == 1
    await thread.ends("one two")
    assert thread.texts == ["one two"]


async def test_a_message_that_is_taken_away_is_no_stream_any_more(thread: Thread) -> None:
    await thread.says("one")
    await thread.slack.channel.do(Delete(thread.address, thread.message_id))
    assert thread.texts == []
    with pytest.raises(MessageGone):
        await thread.says("one two")


# Before there are words -----------------------------------------------------------------------


async def test_words_are_waited_for_a_little_then_what_goes_on_is_shown(thread: Thread) -> None:
    assert await thread.says("", "⏳ thinking…") == Done()
    assert thread.texts == []
    thread.slack.clock.later += WAIT_MORE + 1
    done = await thread.says("", "🔧 look around")
    assert done.message_id
    assert thread.texts == ["🔧 look around"]
    assert thread.fake.buttons(thread.message) == ["Stop"]
    await thread.says("one")
    assert thread.texts == ["one\n\n⏳ writing…"]
    assert not thread.fake.called("chat.startStream")


# Where there is none ----------------------------------------------------------------------------


async def test_where_many_read_everybody_sees_edits(thread: Thread) -> None:
    it = Thread(thread.slack, LAB)
    assert not (await it.says("one")).growing
    await it.says("one two")
    assert it.texts == ["one two\n\n⏳ writing…"]
    assert not it.fake.called("chat.startStream")


async def test_the_main_timeline_of_direct_messages_has_no_streams(thread: Thread) -> None:
    thread.address = Address("slack", ANA_DM)
    assert not (await thread.says("one")).growing
    assert thread.fake.texts(ANA_DM, "") == ["one\n\n⏳ writing…"]


async def test_in_channels_a_stream_names_who_asked_if_it_is_wanted_there(thread: Thread) -> None:
    it = everywhere(thread)
    assert (await it.says("one")).growing
    (call,) = it.fake.called("chat.startStream")
    assert (call.fields["recipient_user_id"], call.fields["recipient_team_id"]) == (ANA, "T0TEST")


async def test_in_channels_nobody_who_is_not_on_slack_can_be_named(thread: Thread) -> None:
    it = everywhere(thread)
    part = Part("one")
    done = await thread.slack.channel.do(
        Stream(it.address, "", "one", part, STOP, "telegram:7", NONCE)
    )
    assert not done.growing


@pytest.mark.parametrize("error", ["unknown_method", "missing_scope", "not_allowed"])
async def test_what_slack_refuses_is_edited_from_then_on_and_tried_again_later(
    thread: Thread, error: str
) -> None:
    thread.fake.fail("chat.startStream", error)
    assert not (await thread.says("one")).growing
    assert thread.texts == ["one\n\n⏳ writing…"]
    other = Thread(thread.slack)
    await other.says("two")
    assert len(thread.fake.called("chat.startStream")) == 1
    thread.slack.clock.later += REFUSED_FOR + 1
    third = Thread(thread.slack)
    assert (await third.says("three")).growing


async def test_a_limit_of_starts_is_kept_by_edits(thread: Thread) -> None:
    grown = []
    for _ in range(int(STARTS) + 3):
        it = Thread(thread.slack)
        grown.append((await it.says("one")).growing)
    assert grown == [True] * int(STARTS) + [False] * 3


async def test_a_penalty_of_starts_makes_it_an_ordinary_message(thread: Thread) -> None:
    thread.fake.fail("chat.startStream", "ratelimited", retry_after=9)
    assert not (await thread.says("one")).growing
    assert thread.texts == ["one\n\n⏳ writing…"]


# After trouble ------------------------------------------------------------------------------------


async def test_a_start_of_unknown_fate_is_found_and_goes_on_by_edits(thread: Thread) -> None:
    before = thread.slack.clock.now()
    thread.fake.drop("chat.startStream", after=True)
    with pytest.raises(Uncertain):
        await thread.says("one")
    done = await thread.slack.channel.do(Find(thread.address, NONCE, before, streamed=True))
    assert done.message_id
    thread.message_id = done.message_id
    assert not (await thread.says("one two")).growing
    assert thread.texts == ["one two\n\n⏳ writing…"]


async def test_a_start_that_never_came_is_not_taken_for_an_older_one(thread: Thread) -> None:
    before = thread.slack.clock.now()
    await thread.says("one")
    await thread.ends("one")
    done = await thread.slack.channel.do(Find(thread.address, "p.3.4", before, streamed=True))
    assert not done.message_id
    thread.slack.channel._calls.streams._known.clear()  # as in a new process
    done = await thread.slack.channel.do(Find(thread.address, "p.3.4", before, streamed=True))
    assert not done.message_id


async def test_of_two_that_nobody_heard_of_it_is_told_as_they_end_or_never(thread: Thread) -> None:
    before = thread.slack.clock.now()
    for number in range(2):
        thread.fake.drop("chat.startStream", after=True)
        thread.nonce = f"p.{number}"
        with pytest.raises(Uncertain):
            await thread.says("one")
    find = Find(thread.address, "p.0", before, streamed=True)
    with pytest.raises(Uncertain):
        await thread.slack.channel.do(find)
    with pytest.raises(Refused, match="cannot be told"):
        await thread.slack.channel.do(replace(find, since=before - STREAMS_END))
    (first, second) = thread.fake.shown(thread.address.chat, thread.address.thread)
    await thread.slack.channel._calls.streams.stop(thread.address.chat, second["ts"], "p.1")
    assert (await thread.slack.channel.do(find)).message_id == first["ts"]


async def test_a_stream_of_an_earlier_process_is_ended_and_finished(thread: Thread) -> None:
    await thread.says("one")
    thread.slack.channel._calls.streams._open.clear()  # as after a kill
    await thread.ends("one, unfinished")
    assert thread.texts == ["one, unfinished"]
    assert not thread.message["streaming"]


async def test_what_runs_is_ended_when_the_gateway_stops(thread: Thread) -> None:
    await thread.says("one")
    await thread.slack.channel._calls.streams.close()
    assert not thread.message["streaming"]
