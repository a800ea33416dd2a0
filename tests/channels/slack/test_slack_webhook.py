"""What Slack posts: who is let in, when it is answered, and that an outage is made good."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from channels.registry import CHECKS
from channels.slack.adapter import SlackChannel
from channels.slack.webhook import GIVES_UP, WINDOW
from core.channel import Hook, Mark, Reply, Took
from core.messages import Address, Press, Unreadable
from tests.channels.slack.conftest import SHORT, QuickClock
from tests.contracts.channel_contract import listening
from tests.fakes.recording_intake import RecordingIntake
from tests.fakes.slack import ANA, ANA_DM, LAB, FakeSlack
from tests.fakes.slack_posting import encoded, signed
from tests.fakes.slack_wire import Envelope

ME = "<@UBOT>"


@dataclass
class Posted:
    """An app in webhook mode; what people do is posted by the test, or not at all."""

    fake: FakeSlack
    channel: SlackChannel
    clock: QuickClock
    intake: RecordingIntake

    @property
    def hook(self) -> Hook:
        assert self.channel.hook is not None
        return self.channel.hook

    def envelope(self, text: str = "hi", **fields: object) -> Envelope:
        """An event of somebody's words that nobody delivers."""
        self.fake.user_says(text, **fields)  # type: ignore[arg-type]
        return self.fake.envelopes[-1]

    async def post(self, envelope: Envelope, **more: str) -> Reply:
        kind, body = encoded(envelope.type, envelope.payload)
        headers = {"content-type": kind, **signed(self.fake.signing_secret, body)} | more
        return await self.hook.posted({name.lower(): v for name, v in headers.items()}, body)

    @asynccontextmanager
    async def up(self) -> AsyncIterator[None]:
        """Listening, and what was missed is read."""
        before = self.intake.since
        async with listening(self.channel, self.intake):
            await self.fake.until(lambda: self.intake.since > before)
            yield


@asynccontextmanager
async def opened(app_token: str = "") -> AsyncIterator[Posted]:
    clock = QuickClock(10.0)  # a busy machine answers in time as well
    async with FakeSlack() as fake:
        fake.ack_within, fake.retries = SHORT, ()
        secret = fake.signing_secret
        async with SlackChannel(
            fake.bot_token, app_token, clock, fake.url, signing_secret=secret
        ) as channel:
            yield Posted(fake, channel, clock, RecordingIntake())


@pytest.fixture
async def app() -> AsyncIterator[Posted]:
    async with opened() as one:
        yield one


class TestWhoMayPost:
    async def test_only_who_signed_this_body_lately(self, app: Posted) -> None:
        envelope = app.envelope()
        kind, body = encoded(envelope.type, envelope.payload)
        good = signed(app.fake.signing_secret, body)
        old = signed(app.fake.signing_secret, body, time.time() - WINDOW - 5)
        early = signed(app.fake.signing_secret, body, time.time() + WINDOW + 5)
        wrong = [
            {},
            old,
            early,
            signed("another", body),
            signed(app.fake.signing_secret, body + b" "),
            {**good, "X-Slack-Request-Timestamp": "soon"},
            {**good, "X-Slack-Request-Timestamp": "²"},
            {**good, "X-Slack-Request-Timestamp": "9" * 400},
            {**good, "X-Slack-Signature": ""},
            {**good, "X-Slack-Signature": "v0=ü"},
            {"X-Slack-Signature": good["X-Slack-Signature"]},
        ]
        async with app.up():
            for given in wrong:
                headers = {name.lower(): value for name, value in given.items()}
                reply = await app.hook.posted({**headers, "content-type": kind}, body)
                assert reply.took is Took.NOT_OURS, given
            assert not app.intake.offered
            assert (await app.post(envelope)).took is Took.STORED
        assert app.intake.texts == ["hi"]

    async def test_a_body_without_a_signature_is_not_even_read(self, app: Posted) -> None:
        assert not app.hook.lets_in({})
        stale = signed(app.fake.signing_secret, b"", time.time() - 2 * WINDOW)
        assert not app.hook.lets_in({name.lower(): value for name, value in stale.items()})

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("application/json", b"{"),
            ("application/json", b"[]"),
            ("application/json", b"[" * 100_000),
            ("application/json", b"\xff"),
            ("application/json", b'{"type": 5}'),
            ("application/json", b'{"type": "url_verification", "challenge": 5}'),
            ("application/json", b'{"type": "event_callback", "event_id": []}'),
            ("application/x-www-form-urlencoded", b"payload=%7B"),
            ("application/x-www-form-urlencoded", b"payload=[]"),
            ("application/x-www-form-urlencoded", b"a=1&" * 500),
        ],
    )
    async def test_what_is_no_payload_makes_no_sense(
        self, app: Posted, kind: str, body: bytes
    ) -> None:
        headers = {k.lower(): v for k, v in signed(app.fake.signing_secret, body).items()}
        reply = await app.hook.posted({**headers, "content-type": kind}, body)
        assert reply.took is Took.NO_SENSE

    async def test_the_challenge_is_answered_also_before_anything_works(self, app: Posted) -> None:
        challenge = {"type": "url_verification", "challenge": "3eZbrw1aB"}
        reply = await app.post(Envelope("1", "events_api", challenge))
        assert reply == Reply(Took.STORED, "3eZbrw1aB")

    async def test_nothing_else_is_taken_while_nobody_listens(self, app: Posted) -> None:
        assert (await app.post(app.envelope())).took is Took.LATER


class TestStoring:
    async def test_it_needs_no_app_token_and_opens_no_socket(self, app: Posted) -> None:
        async with app.up():
            assert (await app.post(app.envelope("hello"))).took is Took.STORED
            assert app.intake.up
        assert app.intake.texts == ["hello"]
        assert not app.fake.called("apps.connections.open")

    async def test_an_answer_waits_for_the_disk_but_not_longer_than_slack(
        self, app: Posted
    ) -> None:
        async with app.up():
            app.intake.disk(False)
            envelope = app.envelope("once please")
            assert (await app.post(envelope)).took is Took.LATER
            again = asyncio.ensure_future(app.post(envelope, **{"X-Slack-Retry-Num": "1"}))
            await asyncio.sleep(0)
            app.intake.disk(True)
            assert (await again).took is Took.STORED
        assert app.intake.texts == ["once please"]
        assert 2.5 in app.clock.asked

    async def test_a_repetition_of_what_is_known_is_only_acknowledged(self, app: Posted) -> None:
        async with app.up():
            envelope = app.envelope("once")
            for number in range(3):
                retry = {"X-Slack-Retry-Num": str(number)} if number else {}
                assert (await app.post(envelope, **retry)).took is Took.STORED
        assert app.intake.texts == ["once"]

    async def test_commands_and_presses_come_as_forms(self, app: Posted) -> None:
        async with app.up():
            command = app.fake.slash("/laneway", "status ä&=+%")
            assert (await app.post(command)) == Reply(Took.STORED)
            shown = app.fake.user_says("a card")
            press = app.fake.press("b:1", message=shown)
            assert (await app.post(press)) == Reply(Took.STORED)
        (message,) = app.intake.messages
        assert message.text == "/status ä&=+%"
        assert message.press
        assert app.intake.of(Press)[0].button == "b:1"

    async def test_what_means_nothing_to_us_is_acknowledged(self, app: Posted) -> None:
        check = Envelope("1", "slash_commands", {"ssl_check": "1", "token": "x"})
        async with app.up():
            assert (await app.post(check)).took is Took.STORED
            assert (await app.post(app.fake.event({"type": "team_join"}))).took is Took.STORED
        assert not app.intake.offered

    async def test_an_unreadable_event_is_set_aside(self, app: Posted) -> None:
        async with app.up():
            odd = app.fake.event({"type": "message", "channel": LAB, "user": ANA})
            assert (await app.post(odd)).took is Took.STORED
        assert app.intake.of(Unreadable)

    async def test_what_is_not_stored_at_the_end_is_to_come_again(self, app: Posted) -> None:
        async with app.up():
            app.intake.disk(False)
            post = asyncio.ensure_future(app.post(app.envelope("late")))
            await app.fake.until(lambda: app.intake.offered)
        assert (await post).took is Took.LATER
        assert not app.intake.accepted


class TestOutages:
    async def known(self, app: Posted, text: str = "old") -> None:
        """A message that was taken before the outage."""
        app.intake.since = int(time.time() * 1000) - 900_000
        old = app.fake.user_says(text, delivered=False)
        stamp = int(float(old["ts"]) * 1000)
        app.intake.threads[Address("slack", ANA_DM, "")] = Mark(old["ts"], stamp)

    async def test_what_was_said_while_the_gateway_was_down_is_read(self, app: Posted) -> None:
        await self.known(app)
        app.fake.user_says("while down", delivered=False)
        async with app.up():
            assert app.intake.texts == ["while down"]

    async def test_a_repetition_of_what_never_came_tells_of_an_outage(self, app: Posted) -> None:
        await self.known(app)
        async with app.up():
            app.fake.user_says("lost", delivered=False)
            late = app.envelope("tried again")
            await app.post(late, **{"X-Slack-Retry-Num": "2"})
            await app.fake.until(lambda: len(app.intake.texts) == 2)
        assert app.intake.texts == ["lost", "tried again"]

    async def test_after_a_long_silence_the_history_is_looked_at_first(self, app: Posted) -> None:
        await self.known(app)
        async with app.up():
            app.fake.user_says("lost", delivered=False)
            app.clock.later += GIVES_UP + 1
            await app.post(app.envelope("first again"))
            await app.fake.until(lambda: len(app.intake.texts) == 2)
            read = len(app.fake.calls)
            assert (await app.post(app.envelope("and next"))).took is Took.STORED
            assert not any("conversations" in call.method for call in app.fake.calls[read:])
        assert app.intake.texts == ["lost", "first again", "and next"]

    async def test_events_that_slack_left_out_are_read(self, app: Posted) -> None:
        await self.known(app)
        async with app.up():
            app.fake.user_says("left out", delivered=False)
            limited = Envelope("1", "events_api", {"type": "app_rate_limited"})
            await app.post(limited)
            await app.fake.until(lambda: app.intake.texts == ["left out"])

    async def test_a_slack_that_does_not_answer_is_asked_again(self, app: Posted) -> None:
        app.fake.fail("auth.test", "internal_error", 500, times=2)
        async with app.up():
            assert app.intake.up
        assert not app.intake.connections[0].up

    async def test_a_refused_token_is_told(self, app: Posted) -> None:
        app.fake.revoke()
        async with listening(app.channel, app.intake):
            await app.fake.until(lambda: app.intake.connections)
        assert app.intake.connections[0].fatal

    async def test_an_app_that_is_removed_is_told(self, app: Posted) -> None:
        async with app.up():
            await app.post(app.fake.event({"type": "app_uninstalled"}))
            await app.fake.until(lambda: not app.intake.up)
        assert app.intake.connections[-1].fatal


async def test_an_app_in_socket_mode_has_nowhere_to_post_to() -> None:
    async with FakeSlack() as fake:
        channel = SlackChannel(fake.bot_token, fake.app_token, QuickClock(), fake.url)
        async with channel:
            assert channel.hook is None


def test_forms_are_read_as_slack_writes_them() -> None:
    kind, body = encoded("interactive", {"type": "block_actions"})
    assert kind == "application/x-www-form-urlencoded"
    assert body == b"payload=%7B%22type%22%3A+%22block_actions%22%7D"
    assert json.loads(encoded("events_api", {"a": 1})[1]) == {"a": 1}


async def test_the_doctor_wants_neither_an_app_token_nor_socket_mode() -> None:
    async with FakeSlack() as fake:
        fake.socket_mode = False
        given = {"bot_token": fake.bot_token, "app_token": "", "api_base": fake.url}
        found = await CHECKS["slack"](**given, signing_secret="hush")
        assert all(well for _, well, _, _ in found)
        assert not fake.called("apps.connections.open")
        assert "hush" not in str(found)
