"""The gateway's connection: opened, kept, resumed, opened anew; its events are handed on raw.

The library's socket speaks the protocol (hello, heart beats, identify, resume, compression). What
the library would make of the events is left out: one it cannot read would cost all the others.
It must not know what an event means, but for who we are.
"""

from __future__ import annotations

import asyncio
import logging
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import aiohttp
import yarl
from discord import ConnectionClosed, Intents
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from discord.http import Route

from channels.discord.content import Me, person_name, snowflake
from channels.discord.errors import ApiError, TokenRefused, fatal, translate
from channels.discord.rest import Rest
from channels.fields import Malformed, as_object, maybe, obj, string
from core.channel import Connection, RateLimited, SendError

log = logging.getLogger(__name__)

EVENTS = (
    *("READY", "RESUMED", "MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION_CREATE"),
    *("GUILD_CREATE", "GUILD_DELETE", "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE"),
    *("CHANNEL_CREATE", "CHANNEL_UPDATE", "CHANNEL_DELETE"),
    *("THREAD_CREATE", "THREAD_UPDATE", "THREAD_DELETE", "THREAD_LIST_SYNC"),
)
LEAST_PAUSE, MOST_PAUSE, FATAL_PAUSE = 1.0, 60.0, 600.0
IDENTIFY_EVERY = 5.0  # seconds between two new sessions, as Discord asks
STARTS_LEFT = 10  # of a day's new sessions; using up all of them resets the token
RESUMES_MOST = 3  # tries before a session is given up
ODD_MOST = 20  # frames in a row that cannot be read
_ODD = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
MESSAGE_CONTENT = (1 << 18) | (1 << 19)  # the application's flags, full or limited


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, for tests to shorten."""

    ready_within: float = 30.0
    silence: float = 60.0  # without any sign of life the connection counts as lost


@dataclass(frozen=True, slots=True)
class Hooks:
    """What is told while connected, at once and in order."""

    event: Callable[[str, object], None]
    report: Callable[[Connection], None]


class Gateway:
    """One listen(): connections after each other, until it is cancelled."""

    def __init__(self, rest: Rest, url: str, hooks: Hooks, timing: Timing) -> None:
        self._rest = rest
        self._url = url
        self._hooks = hooks
        self._timing = timing
        self._socket: Any = None
        self._session: tuple[str, int, yarl.URL] | None = None  # id, sequence, where
        self._ready = asyncio.Event()
        self._failures = 0
        self._resumes = 0
        self._identified_at = -IDENTIFY_EVERY
        self._peer = self._library_client()

    async def run(self) -> None:
        """Connect and stay connected."""
        try:
            while True:
                pause = await self._life()
                if pause:
                    await self._rest.clock.sleep(pause)
        finally:
            await self._close(1000)

    async def _life(self) -> float:
        """One connection, to its end; seconds until the next."""
        try:
            url = await self._where()
            await self._connected(url)
            return LEAST_PAUSE
        except ReconnectWebSocket as lost:
            self._keep_session(lost.resume)
            return self._lost("the connection to Discord ended", resume=lost.resume)
        except ConnectionClosed as closed:
            if (connection := fatal(closed.code)) is not None:
                return self._fatal(connection)
            self._keep_session(closed.code != 1000)
            return self._lost(f"Discord closed the connection ({closed.code})")
        except TokenRefused as refused:
            return self._fatal(Connection(str(refused), fatal=True))
        except RateLimited as limited:
            self._hooks.report(Connection("Discord asks us to wait before the next connection"))
            return max(LEAST_PAUSE, limited.retry_after)
        except (aiohttp.ClientError, OSError, zlib.error, SendError) as error:
            self._keep_session(True)
            said = str(error) if isinstance(error, SendError) else type(error).__name__
            return self._lost(f"Discord cannot be reached: {said}")
        finally:
            await self._close(4000)

    async def _where(self) -> yarl.URL:
        """The address of the gateway. Raises SendError when nothing new may be begun."""
        if self._session is not None and self._resumes < RESUMES_MOST:
            self._resumes += 1
            return self._session[2]
        self._session = None
        self._resumes = 0
        self._rest.trust()  # each try asks anew
        try:
            # Says whether the token is good, before a new session is spent on it.
            await self._rest.request(Route("GET", "/users/@me"))
            if self._url:
                return yarl.URL(self._url)
            answer = as_object(await self._rest.request(Route("GET", "/gateway/bot")), "gateway")
        except ApiError as error:
            if error.status in (404, 405) and not self._url:
                return DiscordWebSocket.DEFAULT_GATEWAY
            raise translate(error) from None
        except Malformed:
            return DiscordWebSocket.DEFAULT_GATEWAY
        limit = answer.get("session_start_limit")
        if isinstance(limit, dict):
            left, after = limit.get("remaining"), limit.get("reset_after")
            if isinstance(left, int) and isinstance(after, int) and left < STARTS_LEFT:
                raise RateLimited(after / 1000)
        url = string(answer, "url")
        return yarl.URL(url) if url else DiscordWebSocket.DEFAULT_GATEWAY

    async def _connected(self, url: yarl.URL) -> None:
        """From the first byte to the last."""
        self._ready.clear()
        session = self._session
        odd = 0
        try:
            async with asyncio.timeout(self._timing.ready_within) as patience:
                ws = await DiscordWebSocket.from_client(
                    self._peer,
                    initial=session is None,
                    gateway=url,
                    session=session[0] if session else None,
                    sequence=session[1] if session else None,
                    resume=session is not None,
                )
                while True:
                    try:
                        await ws.poll_event()
                        odd = 0
                    except _ODD as error:
                        odd += 1
                        log.warning("discord: a frame cannot be read (%s)", type(error).__name__)
                        if odd >= ODD_MOST:
                            raise ReconnectWebSocket(None, resume=False) from None
                    if self._ready.is_set():
                        patience.reschedule(None)
        except TimeoutError:
            raise ReconnectWebSocket(None, resume=session is not None) from None

    def _keep_session(self, resume: bool) -> None:
        """What a later connection goes on with, if the library's socket has it."""
        ws = self._socket
        if not resume:
            self._session = None
        elif ws is not None and ws.session_id and ws.sequence is not None:
            self._session = (ws.session_id, ws.sequence, ws.gateway)

    def _lost(self, reason: str, resume: bool = True) -> float:
        """Seconds until the next try. A short break that is resumed at once is nobody's news."""
        was_ready = self._ready.is_set()
        self._ready.clear()
        if was_ready and self._session is not None:
            self._failures = 0
            return 0.0
        self._hooks.report(Connection(reason))
        self._failures += 1
        if not resume:
            return max(random.uniform(1.0, 5.0), _growing(self._failures))
        return _growing(self._failures)

    def _fatal(self, connection: Connection) -> float:
        self._session = None
        self._ready.clear()
        self._hooks.report(connection)
        return FATAL_PAUSE

    async def _close(self, code: int) -> None:
        """End the connection that is there; the library's heart beat ends with it."""
        socket, self._socket = self._socket, None
        if socket is not None:
            try:
                await socket.close(code)
            except (aiohttp.ClientError, OSError, RuntimeError):
                return

    # --- what the library's socket needs to be told ---

    def _library_client(self) -> Any:
        """Stands in for the library's client, whose reading of events and caches are not wanted."""
        intents = Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = True
        intents.message_content = True
        state = SimpleNamespace(
            parsers={name: self._parser(name) for name in EVENTS},
            call_hooks=self._before_identify,
            shard_count=None,
            heartbeat_timeout=self._timing.silence,
            _update_references=self._opened,
            _activity=None,
            _status=None,
            _intents=intents,
        )
        return SimpleNamespace(
            http=self._rest,
            loop=asyncio.get_running_loop(),
            _connection=state,
            dispatch=lambda *_: None,
            shard_id=None,
            _enable_debug_events=False,
        )

    def _parser(self, name: str) -> Callable[[object], None]:
        def parse(data: object) -> None:
            if name in ("READY", "RESUMED"):
                self._resumes = self._failures = 0
                self._ready.set()
            self._hooks.event(name, data)

        return parse

    def _opened(self, socket: Any) -> None:
        """Known before the greeting, so that it can be closed whatever happens."""
        self._socket = socket

    async def _before_identify(self, *_: object, **__: object) -> None:
        wait = self._identified_at + IDENTIFY_EVERY - self._rest.clock.monotonic()
        if wait > 0:
            await self._rest.clock.sleep(wait)
        self._identified_at = self._rest.clock.monotonic()


def who(ready: object) -> Me:
    """Who we are, from the first event of a session. Raises Malformed."""
    fields = as_object(ready, "READY")
    user = obj(fields, "user")
    application = maybe(fields, "application") or user  # most have the same id
    return Me(snowflake(user, "id"), snowflake(application, "id"), person_name(user))


def reads_content(ready: object) -> bool:
    """Whether the application may read what is written in servers, as far as it is said."""
    application = ready.get("application") if isinstance(ready, dict) else None
    flags = application.get("flags") if isinstance(application, dict) else None
    return not isinstance(flags, int) or bool(flags & MESSAGE_CONTENT)


def _growing(times: int) -> float:
    """1 s, 2 s, 4 s … 60 s, spread a little so that many instances do not come at once."""
    pause: float = LEAST_PAUSE * 2.0 ** min(times - 1, 10)
    return min(MOST_PAUSE, pause * random.uniform(1.0, 1.2))
