"""Slack posts events, commands and presses to us: signed, answered in time, nothing missed.

Slack does not say when it could not reach us, and gives up after minutes. So a silence that is
longer than that, or a repetition of what we never saw, is an outage until the history was read.
It must not know who may talk, nor what a message starts.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import random
from collections import OrderedDict
from collections.abc import Mapping
from urllib.parse import parse_qsl

from channels.patience import within
from channels.slack.catching import Catching, Reports, everything
from channels.slack.errors import TokenRefused
from channels.slack.events import Me
from channels.slack.fields import Json, Malformed, string
from channels.slack.inlet import Inlet
from channels.slack.listening import LEAST_PAUSE, MOST_PAUSE, REACHED_EVERY, TOKEN_PAUSE, Hooks
from channels.slack.names import Names
from channels.slack.web import Web
from core.channel import Connection, Intake, RateLimited, Reply, SendError, Took
from core.clock import Clock

log = logging.getLogger(__name__)

ANSWER_WITHIN = 2.5  # seconds; Slack waits for three
WINDOW = 300  # seconds by which a signature's time may differ from ours
GIVES_UP = 360.0  # seconds after which Slack posts an event no more
LAG = 600_000  # ms, longer than that
COME_AGAIN = 5  # seconds
LOOK_EVERY = 60.0  # seconds
SEEN_MOST = 5000
_SIGNATURE, _STAMP = "x-slack-signature", "x-slack-request-timestamp"
_AGAIN = "x-slack-retry-num"
_LATER = Reply(Took.LATER, again_after=COME_AGAIN)


class Webhook:
    """Implements the port's ``Hook``; lives as long as the channel."""

    def __init__(
        self, web: Web, secret: str, names: Names, clock: Clock, hooks: Hooks,
        people: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self._web = web
        self._secret = secret
        self._names = names
        self._clock = clock
        self._hooks = hooks
        self._people = people
        self._seen: OrderedDict[str, None] = OrderedDict()  # ids of events that came
        self._reports: Reports | None = None  # while we listen
        self._life: _Life | None = None  # and know who we are

    # What is posted -----------------------------------------------------------------------

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Whether it may be signed, and lately: the signature is over the body."""
        stamp = headers.get(_STAMP, "")
        if not headers.get(_SIGNATURE, "").startswith("v0=") or not _plain_number(stamp):
            return False
        now = (self._clock.now() + self._web.ahead) // 1000
        return abs(now - int(stamp)) <= WINDOW

    def _signed(self, headers: Mapping[str, str], body: bytes) -> bool:
        said = b"v0:" + headers[_STAMP].encode() + b":" + body
        told = "v0=" + hmac.new(self._secret.encode(), said, hashlib.sha256).hexdigest()
        return hmac.compare_digest(told.encode(), headers[_SIGNATURE].encode())

    async def posted(self, headers: Mapping[str, str], body: bytes) -> Reply:
        """One payload. It is answered once it is stored, but never later than Slack waits."""
        if not self.lets_in(headers) or not self._signed(headers, body):
            return Reply(Took.NOT_OURS)
        payload = _payload(headers, body)
        if payload is None:
            return Reply(Took.NO_SENSE)
        kind = string(payload, "type")
        if kind == "url_verification":
            return Reply(Took.STORED, string(payload, "challenge"))
        if kind == "app_rate_limited":
            log.warning("slack: there were too many events, and Slack left some out")
        if self._life is None:
            return _LATER
        known = self._knew(payload)
        if kind == "app_rate_limited" or (_AGAIN in headers and not known):
            self._life.missed()
        return Reply(Took.STORED) if await self._life.offer(payload) else _LATER

    def _knew(self, payload: Json) -> bool:
        """Whether this event came before, or is none; it has from now on."""
        ident = string(payload, "event_id")
        if not ident or ident in self._seen:
            return True
        self._seen[ident] = None
        if len(self._seen) > SEEN_MOST:
            self._seen.popitem(last=False)
        return False

    # Listening ----------------------------------------------------------------------------

    async def run(self, intake: Intake) -> None:
        """Be posted to until cancelled."""
        reports = self._reports = Reports(intake)
        try:
            me = await self._who(reports)
            self._hooks.known(me)
            self._life = _Life(me, self._web, intake, self._names, self._clock, self._hooks,
                               reports, self._people)  # fmt: skip
            await self._life.run()
        finally:
            self._life = self._reports = None

    async def _who(self, reports: Reports) -> Me:
        """Who we are, once Slack tells it."""
        failures = 0
        while True:
            try:
                return (await self._web.me(self._clock.now()))[0]
            except SendError as error:
                failures += 1
                await self._clock.sleep(_trouble(error, reports, failures))

    def report(self, connection: Connection) -> None:
        """Tell a change of the connection, and only a change."""
        if self._reports is not None:
            self._reports(connection)


class _Life:
    """From knowing who we are to the end of one ``listen``."""

    def __init__(
        self, me: Me, web: Web, intake: Intake, names: Names, clock: Clock, hooks: Hooks,
        report: Reports, people: frozenset[str],
    ) -> None:  # fmt: skip
        self.report = report
        self._web = web
        self._me = me
        self._clock = clock
        self._hooks = hooks
        self._inlet = Inlet(me, intake, names, clock)
        self._inlet.hold(everything)  # until it is known what was missed
        self._catching = Catching(web, intake, names, clock, report, hooks.left, people, LAG)
        self._group: asyncio.TaskGroup | None = None
        self._outage = asyncio.Event()
        self._outage.set()  # of the time before
        self._heard_at = clock.monotonic()

    async def run(self) -> None:
        self.report(Connection())
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(self._inlet.run(), name="slack inlet")
            group.create_task(self._look_after(), name="slack tokens and reach")
            while True:
                await self._outage.wait()
                self._outage.clear()
                await self._catching.up(self._me, self._inlet, self._outage.is_set)

    async def _look_after(self) -> None:
        """Ask Slack now and then whether it would still listen to us: it says nothing by itself."""
        failures = 0
        trouble: Connection | None = None
        pause = LOOK_EVERY
        while True:
            await self._clock.sleep(pause)
            try:
                await self._web.me(self._clock.now())
            except SendError as error:
                failures += 1
                pause = _trouble(error, self.report, failures)
                trouble = self.report.last
                continue
            failures, pause = 0, LOOK_EVERY
            if trouble is not None and self.report.last == trouble:
                self.report(Connection())
            trouble = None

    def missed(self) -> None:
        """Something was said that was not posted: what is new waits until it was read."""
        self._catching.done = False
        self._inlet.hold(everything)
        self._outage.set()

    async def offer(self, payload: Json) -> bool:
        """Whether it is stored by the time that Slack wants to know."""
        now = self._clock.monotonic()
        if self._catching.done and now - self._heard_at > GIVES_UP:
            self.missed()
        self._heard_at = now
        storing = self._storing(payload)
        if storing is None or not await within(self._clock, storing, ANSWER_WITHIN):
            return False
        if storing.cancelled():
            return False
        if storing.result():
            self._catching.tell_reached(self._inlet, REACHED_EVERY)
        return storing.result()

    def _storing(self, payload: Json) -> asyncio.Task[bool] | None:
        """None before the first and after the last moment in which something can be stored."""
        if self._group is None:
            return None
        offering = self._offer(payload)
        try:
            return self._group.create_task(offering, name="slack post")
        except RuntimeError:  # all of its tasks are over, and we are told of it in a moment
            offering.close()
            return None

    async def _offer(self, payload: Json) -> bool:
        self._hooks.told(payload)
        return await self._inlet.offer(payload)


def _plain_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 12


def _payload(headers: Mapping[str, str], body: bytes) -> Json | None:
    """JSON as events are, or a form as commands are, or one with a payload as presses are."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded":
            form = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=100))
            found = json.loads(form["payload"]) if "payload" in form else form
        else:
            found = json.loads(body)
        if not isinstance(found, dict):
            return None
        for name in ("type", "challenge", "event_id"):  # read before anything can be set aside
            string(found, name)
    except (ValueError, RecursionError, Malformed):
        return None
    return found


def _trouble(error: SendError, report: Reports, failures: int) -> float:
    """Report what went wrong and say how long to wait."""
    match error:
        case TokenRefused():
            report(Connection(str(error), fatal=True))
            return TOKEN_PAUSE
        case RateLimited():
            report(Connection("Slack asks us to wait before the next call"))
            return max(LEAST_PAUSE, error.retry_after)
        case _:
            report(Connection(str(error)))
            pause: float = LEAST_PAUSE * 2.0 ** min(failures - 1, 10)
            return min(MOST_PAUSE, pause * random.uniform(1.0, 1.2))
