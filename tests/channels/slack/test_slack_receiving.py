"""Receiving over Socket Mode: what is acknowledged when, in what order, and what heals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from channels.slack import listening as slack_listening
from core.channel import AnswerPress
from core.messages import Address, Message, Press, Unreadable
from tests.channels.slack.conftest import Slack
from tests.contracts.channel_contract import listening
from tests.fakes.recording_intake import RecordingIntake
from tests.fakes.slack import ANA, ANA_DM, BEN, LAB

ME = "<@UBOT>"


@asynccontextmanager
async def heard(slack: Slack, intake: RecordingIntake | None = None) -> AsyncIterator[None]:
    """The channel listens, and Slack has greeted it."""
    intake = intake or slack.intake
    async with listening(slack.channel, intake):
        await slack.fake.until(lambda: intake.up)
        yield


class TestAcknowledging:
    async def test_an_event_is_acknowledged_once_it_is_stored(self, slack: Slack) -> None:
        async with heard(slack):
            slack.intake.disk(False)
            slack.fake.user_says("keep me")
            (envelope,) = slack.fake.envelopes
            await slack.fake.until(lambda: slack.intake.offered)
            assert envelope.acked is None
            slack.intake.disk(True)
            await slack.fake.until(lambda: envelope.acked)
            assert slack.intake.texts == ["keep me"]

    async def test_it_is_acknowledged_well_within_what_slack_waits(self, slack: Slack) -> None:
        slack.clock.speed = 1.0
        slack.fake.ack_within = 3.0
        async with heard(slack):
            slack.fake.user_says("quick")
            (envelope,) = slack.fake.envelopes
            await slack.fake.until(lambda: envelope.acked)
            assert envelope.acked_after < 1.0

    async def test_while_the_disk_hangs_slack_delivers_again_and_nothing_doubles(
        self, slack: Slack
    ) -> None:
        async with heard(slack):
            slack.intake.disk(False)
            slack.fake.user_says("once")
            (envelope,) = slack.fake.envelopes
            await slack.fake.until(lambda: envelope.attempt >= 1)
            slack.intake.disk(True)
            await slack.fake.until(lambda: envelope.acked)
            assert slack.intake.texts == ["once"]

    async def test_a_delivery_after_its_acknowledgement_changes_nothing(self, slack: Slack) -> None:
        async with heard(slack):
            slack.fake.user_says("once")
            (first,) = slack.fake.envelopes
            await slack.fake.until(lambda: first.acked)
            again = slack.fake.again(first)
            await slack.fake.until(lambda: again.acked)
            assert slack.intake.texts == ["once"]

    @pytest.mark.parametrize(
        "event",
        [
            {"type": "reaction_added", "user": ANA, "item": {"type": "message"}},
            {
                "type": "message",
                "subtype": "channel_join",
                "user": ANA,
                "channel": LAB,
                "ts": "1.1",
            },
            {"type": "something_new", "shape": [1, {"a": None}]},
        ],
    )
    async def test_what_means_nothing_to_us_is_acknowledged_too(
        self, slack: Slack, event: dict[str, object]
    ) -> None:
        async with heard(slack):
            envelope = slack.fake.event(event)
            await slack.fake.until(lambda: envelope.acked)
            assert slack.intake.accepted == []

    async def test_other_kinds_of_payloads_are_acknowledged_too(self, slack: Slack) -> None:
        async with heard(slack):
            envelope = slack.fake.push("interactive", {"type": "view_closed", "user": {"id": ANA}})
            await slack.fake.until(lambda: envelope.acked)

    async def test_what_cannot_be_read_is_set_aside_and_holds_up_nobody(self, slack: Slack) -> None:
        async with heard(slack):
            bad = slack.fake.event({"type": "message", "channel": LAB, "user": ANA, "ts": 7})
            slack.fake.user_says("good")
            await slack.fake.until(lambda: slack.intake.texts == ["good"] and bad.acked)
            (aside,) = slack.intake.of(Unreadable)
            assert aside.about == (f"slack:{ANA}", f"slack:{LAB}")

    async def test_our_own_answers_are_not_heard(self, slack: Slack) -> None:
        async with heard(slack):
            envelope = slack.fake.event(
                {"type": "message", "channel": LAB, "user": "UBOT", "bot_id": "BBOT",
                 "text": "mine", "ts": slack.fake.ts()}
            )  # fmt: skip
            await slack.fake.until(lambda: envelope.acked)
            assert slack.intake.accepted == []


class TestTwinsAndOrder:
    async def test_a_mention_that_comes_twice_is_one_message(self, slack: Slack) -> None:
        async with heard(slack):
            message = slack.fake.user_says(f"{ME} hi", channel=LAB)
            await slack.fake.until(lambda: all(one.acked for one in slack.fake.envelopes))
            assert len(slack.fake.envelopes) == 2
            (found,) = slack.intake.messages
            assert (found.message_id, found.addressed, found.text) == (message["ts"], True, "hi")

    @pytest.mark.parametrize("first", [0, 1], ids=["the message first", "the mention first"])
    async def test_twins_that_come_apart_are_one_message_in_either_order(
        self, slack: Slack, first: int
    ) -> None:
        async with heard(slack):
            message = slack.fake.user_says(f"{ME} hi", channel=LAB, delivered=False)
            events = slack.fake.events_of(message, LAB)
            for event in (events[first], events[1 - first]):
                envelope = slack.fake.event(event)
                await slack.fake.until(lambda one=envelope: one.acked)  # type: ignore[misc]
            assert len(slack.intake.messages) == 1

    async def test_a_message_dropped_as_unaddressed_does_not_hide_its_mention(
        self, slack: Slack
    ) -> None:
        async with heard(slack):
            message = slack.fake.user_says("psst", channel=LAB)
            await slack.fake.until(lambda: slack.intake.messages)
            mention = slack.fake.events_of({**message, "text": f"{ME} psst"}, LAB)[1]
            slack.fake.event(mention)
            await slack.fake.until(lambda: len(slack.intake.messages) == 2)
            assert [one.addressed for one in slack.intake.messages] == [False, True]
            assert len({one.identity for one in slack.intake.messages}) == 1

    async def test_what_arrives_in_the_wrong_order_is_put_right(self, slack: Slack) -> None:
        slack.clock.speed = 5.0
        async with heard(slack):
            said = [slack.fake.user_says(text, delivered=False) for text in ("one", "two", "three")]
            for message in (said[2], said[0], said[1]):
                for event in slack.fake.events_of(message, ANA_DM):
                    slack.fake.event(event)
            await slack.fake.until(lambda: len(slack.intake.messages) == 3)
            assert slack.intake.texts == ["one", "two", "three"]

    async def test_a_press_does_not_wait_for_messages(self, slack: Slack) -> None:
        slack.clock.speed = 0.1  # a message would be held for seconds
        async with heard(slack):
            asked = slack.fake.shown(ANA_DM) or [{"ts": slack.fake.ts(), "user": "UBOT"}]
            slack.fake.keep(ANA_DM, asked[0])
            slack.fake.press("b:1", message=asked[0])
            await slack.fake.until(lambda: slack.intake.of(Press), 2)

    async def test_people_are_called_by_their_names(self, slack: Slack) -> None:
        async with heard(slack):
            slack.fake.user_says("ask <@U0BEN>")
            slack.fake.user_says("again")
            await slack.fake.until(lambda: len(slack.intake.messages) == 2)
            assert slack.intake.texts[0] == "ask @Ben"
            assert {one.sender_name for one in slack.intake.messages} == {"Ana"}
            assert len(slack.fake.called("users.info")) == 2

    async def test_without_the_right_to_names_ids_do(self, slack: Slack) -> None:
        slack.fake.fail("users.info", "missing_scope", times=0)
        async with heard(slack):
            slack.fake.user_says("hi", user=BEN, channel=LAB)
            await slack.fake.until(lambda: slack.intake.messages)
            assert slack.intake.messages[0].sender_name == BEN


class TestGlancing:
    async def test_a_stop_is_seen_while_the_disk_hangs(self, slack: Slack) -> None:
        async with heard(slack):
            slack.intake.disk(False)
            slack.fake.user_says("long work")
            await slack.fake.until(lambda: slack.intake.offered)
            slack.fake.user_says("/stop")
            await slack.fake.until(lambda: slack.intake.glanced)
            (seen,) = slack.intake.glanced
            assert isinstance(seen, Message)
            assert seen.text == "/stop"
            slack.intake.disk(True)
            await slack.fake.until(lambda: slack.intake.texts == ["long work", "/stop"])


class TestConnection:
    async def test_slack_may_ask_to_come_again(self, slack: Slack) -> None:
        async with heard(slack):
            await slack.fake.disconnect("warning")
            await slack.fake.until(lambda: slack.fake.connected == 2)
            assert len(slack.fake.called("apps.connections.open")) == 2
            slack.fake.user_says("after it")
            await slack.fake.until(lambda: slack.intake.texts == ["after it"])
            assert [one.up for one in slack.intake.connections] == [True]

    async def test_a_socket_mode_that_is_turned_off_is_said_in_words(self, slack: Slack) -> None:
        async with heard(slack):
            slack.fake.fail("apps.connections.open", "not_allowed", times=0)
            await slack.fake.disconnect("link_disabled")
            await slack.fake.until(lambda: not slack.intake.up)
            assert slack.intake.connections[1].fatal
            assert "turn it on" in slack.intake.connections[1].reason

    async def test_the_environment_of_another_app_does_not_matter(
        self, slack: Slack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("CLIENT_ID", "CLIENT_SECRET", "BOT_TOKEN", "APP_TOKEN", "SIGNING_SECRET"):
            monkeypatch.setenv(f"SLACK_{name}", "another")
        async with heard(slack):
            slack.fake.user_says("hi")
            await slack.fake.until(lambda: slack.intake.texts == ["hi"])

    async def test_a_connection_that_breaks_is_reported_and_made_anew(self, slack: Slack) -> None:
        async with heard(slack):
            slack.fake.cut()
            await slack.fake.until(lambda: len(slack.intake.connections) >= 3)
            assert [one.up for one in slack.intake.connections] == [True, False, True]
            assert "lost" in slack.intake.connections[1].reason
            slack.fake.user_says("after it")
            await slack.fake.until(lambda: slack.intake.texts == ["after it"])

    async def test_an_address_that_was_burnt_is_never_tried_twice(
        self, slack: Slack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slack.fake.refuse_sockets = 1
        async with heard(slack):
            assert len(slack.fake.called("apps.connections.open")) == 2
            assert [one.up for one in slack.intake.connections] == [False, True]

    async def test_the_library_silences_no_log_but_its_own(self, slack: Slack) -> None:
        async with heard(slack):
            slack.fake.user_says("hello")
            await slack.fake.until(lambda: slack.intake.texts == ["hello"])
        for name in ("laneway", "laneway.intake", "channels.slack.adapter"):
            assert logging.getLogger(name).isEnabledFor(logging.WARNING), name

    async def test_a_connection_that_delivers_needs_no_greeting(self, slack: Slack) -> None:
        slack.fake.greets = False
        async with listening(slack.channel, slack.intake):
            await slack.fake.until(lambda: slack.fake.connected)
            slack.fake.user_says("hello")
            await slack.fake.until(lambda: slack.intake.texts == ["hello"])
            assert slack.intake.up

    @pytest.mark.parametrize(
        ("method", "error", "says"),
        [
            ("auth.test", "invalid_auth", "LANEWAY_SLACK_BOT_TOKEN"),
            ("auth.test", "token_revoked", "LANEWAY_SLACK_BOT_TOKEN"),
            ("auth.test", "account_inactive", "LANEWAY_SLACK_BOT_TOKEN"),
            ("apps.connections.open", "invalid_auth", "LANEWAY_SLACK_APP_TOKEN"),
            ("apps.connections.open", "missing_scope", "connections:write"),
            ("apps.connections.open", "socket_mode_disabled", "Socket Mode"),
        ],
    )
    async def test_a_refused_token_is_fatal_and_said_in_words(
        self, slack: Slack, method: str, error: str, says: str
    ) -> None:
        slack.fake.fail(method, error, times=0)
        async with listening(slack.channel, slack.intake):
            await slack.fake.until(lambda: slack.intake.connections)
            (state,) = slack.intake.connections
            assert state.fatal
            assert says in state.reason
            assert not slack.fake.sockets

    async def test_a_token_that_is_good_again_is_taken(self, slack: Slack) -> None:
        slack.fake.fail("auth.test", "invalid_auth")
        slack.clock.speed = 2000.0
        async with heard(slack):
            assert [one.fatal for one in slack.intake.connections] == [True, False]
            assert slack_listening.TOKEN_PAUSE in slack.clock.asked

    @pytest.mark.parametrize(
        "event",
        [
            {"type": "app_uninstalled"},
            {"type": "tokens_revoked", "tokens": {"bot": ["UBOT"]}},
        ],
    )
    async def test_an_app_that_was_removed_is_said_at_once(
        self, slack: Slack, event: dict[str, object]
    ) -> None:
        async with heard(slack):
            envelope = slack.fake.event(event)
            await slack.fake.until(lambda: not slack.intake.up and envelope.acked)
            assert slack.intake.connections[-1].fatal
            assert "install" in slack.intake.connections[-1].reason

    async def test_a_second_connection_with_our_tokens_is_warned_of(
        self, slack: Slack, caplog: pytest.LogCaptureFixture
    ) -> None:
        slack.fake.others_connected = 1
        with caplog.at_level(logging.WARNING, "channels.slack"):
            async with heard(slack):
                pass
        assert "2 connections" in caplog.text
        assert "another gateway" in caplog.text

    async def test_a_slow_down_is_obeyed(self, slack: Slack) -> None:
        slack.fake.fail("apps.connections.open", "ratelimited", retry_after=20)
        async with heard(slack):
            assert 20.0 in slack.clock.asked
            assert not slack.intake.connections[0].fatal

    async def test_pauses_grow_while_slack_is_away(self, slack: Slack) -> None:
        slack.fake.fail("auth.test", "internal_error", 503, times=4)
        async with heard(slack):
            pauses = [one for one in slack.clock.asked if one >= 1.0][:4]
            assert pauses == sorted(pauses)
            assert pauses[3] >= 8.0

    async def test_nothing_runs_on_when_listening_ends(self, slack: Slack) -> None:
        before = asyncio.all_tasks()
        async with heard(slack):
            slack.fake.user_says("hi")
            await slack.fake.until(lambda: slack.intake.messages)
        await slack.fake.until(lambda: not slack.fake.sockets)
        left = {
            task.get_name()
            for task in asyncio.all_tasks() - before
            if "slack_sdk" in str(task.get_coro()) or "channels/slack" in str(task.get_coro())
        }
        assert left == set()

    async def test_no_token_and_no_ticket_is_logged(
        self, slack: Slack, caplog: pytest.LogCaptureFixture
    ) -> None:
        slack.fake.refuse_sockets = 1
        with caplog.at_level(logging.DEBUG):
            async with heard(slack):
                slack.fake.user_says("secret words")
                await slack.fake.until(lambda: slack.intake.messages)
                await slack.fake.disconnect("warning")
                await slack.fake.until(lambda: slack.fake.connected == 2)
                slack.fake.fail("auth.test", "internal_error", 500)
                slack.fake.cut()
                await slack.fake.until(lambda: len(slack.intake.connections) >= 4)
        for secret in (slack.fake.bot_token, slack.fake.app_token, "ticket=", "secret words"):
            assert secret not in caplog.text


class TestBesideMessages:
    async def test_a_new_assistant_thread_is_given_something_to_choose(self, slack: Slack) -> None:
        async with heard(slack):
            thread = slack.fake.opens_assistant()
            await slack.fake.until(lambda: slack.fake.prompts)
            assert 1 <= len(slack.fake.prompts[ANA_DM, thread]) <= 4
            slack.fake.user_says("hello", thread=thread)
            await slack.fake.until(lambda: slack.intake.messages)
            assert slack.intake.messages[0].address == Address("slack", ANA_DM, thread)

    async def test_a_slash_command_is_taken_at_once_and_answered_to_its_person(
        self, slack: Slack
    ) -> None:
        async with heard(slack):
            envelope = slack.fake.slash("/laneway", "status", channel=LAB)
            await slack.fake.until(lambda: envelope.acked)
            (command,) = slack.intake.messages
            assert (command.text, command.addressed) == ("/status", True)
            await slack.channel.do(AnswerPress(command.press, "idle & well"))
            (answer,) = slack.fake.ephemerals
            assert answer["text"] == "idle &amp; well"
            assert slack.fake.texts(LAB) == []

    async def test_a_sign_of_work_that_an_earlier_process_left_is_taken_away(
        self, slack: Slack
    ) -> None:
        thread = slack.fake.opens_assistant()
        async with heard(slack):
            slack.fake.user_says("work", thread=thread)
            await slack.fake.until(lambda: slack.intake.messages)
        slack.fake.status[ANA_DM, thread] = "is working on it…"
        async with heard(slack, RecordingIntake(slack.intake)):
            await slack.fake.until(lambda: not slack.fake.status)
