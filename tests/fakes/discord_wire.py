"""The wire of the fake Discord: HTTP calls and the gateway, ordered faults, recorded calls."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import unquote

from aiohttp import WSMsgType, web

from tests.fakes.discord_api import Api
from tests.fakes.discord_faults import Call, Fault, Json, Limited, Pace, Refusal, Way
from tests.fakes.discord_world import APPLICATION, GUILD, World
from tests.fakes.ports import free_port

PREFIX = "/api/v10"
CONTENT_INTENT = 1 << 15
_APART = ("/interactions/", "/webhooks/")


class Line:
    """One client at the gateway."""

    def __init__(self, socket: web.WebSocketResponse, compressed: bool) -> None:
        self.socket = socket
        self._zlib = zlib.compressobj() if compressed else None
        self.waiting: asyncio.Queue[str | int] = asyncio.Queue()

    async def send(self, frame: str) -> None:
        if self._zlib is None:
            await self.socket.send_str(frame)
            return
        packed = self._zlib.compress(frame.encode()) + self._zlib.flush(zlib.Z_SYNC_FLUSH)
        await self.socket.send_bytes(packed)

    async def write(self) -> None:
        """Send in order what was put; a number ends the connection with that code."""
        while True:
            item = await self.waiting.get()
            if isinstance(item, int):
                await self.socket.close(code=item)
                return
            await self.send(item)


class Server(World):
    """Listens on loopback; what people do and what tests look at is added on top."""

    def __init__(self, token: str) -> None:
        super().__init__(token)
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.pace = Pace()
        self.identifies: list[Json] = []
        self.resumes: list[Json] = []
        self.beats = 0
        self.heartbeat_every = 41.25
        self.refuse_lines = 0  # connections to the gateway that are refused
        self.ready_fields: Json = {}
        self.mute = False  # the gateway takes connections and says nothing more
        self.told: Callable[[Call], None] = lambda call: None
        self.port = 0
        self.api = Api(self, self.dispatch, lambda: self.base)
        self._session = ""
        self._sequence = 0
        self._log: list[tuple[int, str]] = []
        self._line: Line | None = None
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None

    # --- what goes wrong ---

    def fail(
        self,
        method: str,
        path: str,
        status: int,
        code: int = 0,
        message: str = "",
        *,
        times: int = 1,
        retry_after: float | None = None,
        everywhere: bool = False,
    ) -> None:
        """Refuse calls; with ``retry_after`` as a rate limit."""
        refusal = Refusal(status, code, message)
        if retry_after is not None:
            refusal = Limited(retry_after, everywhere)
        self.faults.append(Fault(method, path, Way.ANSWER, refusal, times=times))

    def garble(
        self, method: str, path: str, raw: bytes = b"<html>", status: int = 200, *, times: int = 1
    ) -> None:
        """Answer something that is no JSON, or JSON of another shape."""
        refusal = Refusal(status)
        self.faults.append(Fault(method, path, Way.ANSWER, refusal, raw, times))

    def hang(self, method: str, path: str, after: bool = False, *, times: int = 1) -> None:
        """Never answer; with ``after`` the call is carried out all the same."""
        way = Way.HANG_AFTER if after else Way.HANG_BEFORE
        self.faults.append(Fault(method, path, way, times=times))

    def drop(self, method: str, path: str, after: bool = False, *, times: int = 1) -> None:
        """Cut the connection instead of an answer."""
        way = Way.DROP_AFTER if after else Way.DROP_BEFORE
        self.faults.append(Fault(method, path, way, times=times))

    def heal(self) -> None:
        """No fault any more; what hangs is let go."""
        self.faults.clear()
        self._released.set()
        self._released = asyncio.Event()

    def cut(self, code: int = 1001) -> None:
        """End the gateway's connection; the session can be resumed."""
        if self._line is not None:
            self._line.waiting.put_nowait(code)
            self._line = None

    def forget_session(self) -> None:
        """The session cannot be resumed: what is said until the next one is never told."""
        self._session, self._log = "", []

    def order(self, op: int, data: object = None) -> None:
        """An order of the gateway: 7 reconnect, 9 invalid session, 1 heart beat at once."""
        self._push(json.dumps({"op": op, "d": data, "s": None, "t": None}))
        if op in (7, 9):
            self._line = None
        if op == 9 and data is not True:
            self.forget_session()

    def push_frame(self, frame: str) -> None:
        """Any text as a frame."""
        self._push(frame)

    def _push(self, frame: str) -> None:
        if self._line is not None:
            self._line.waiting.put_nowait(frame)

    # --- the gateway ---

    def dispatch(self, kind: str, data: object) -> None:
        """Tell an event; kept for a resume while the session lasts."""
        if not self._session:
            return
        self._sequence += 1
        frame = json.dumps({"op": 0, "t": kind, "s": self._sequence, "d": data})
        self._log.append((self._sequence, frame))
        self._push(frame)

    @property
    def connected(self) -> bool:
        return self._line is not None

    async def _gateway(self, request: web.Request) -> web.StreamResponse:
        if self.refuse_lines:
            self.refuse_lines -= 1
            raise web.HTTPServiceUnavailable
        socket = web.WebSocketResponse(autoping=True)
        await socket.prepare(request)
        line = Line(socket, request.query.get("compress") == "zlib-stream")
        hello = {"op": 10, "d": {"heartbeat_interval": self.heartbeat_every * 1000}}
        await line.send(json.dumps(hello | {"s": None, "t": None}))
        writing = asyncio.ensure_future(line.write())
        try:
            async for frame in socket:
                if frame.type is WSMsgType.TEXT and not self.mute:
                    self._heard(line, json.loads(frame.data))
        finally:
            if self._line is line:
                self._line = None
            writing.cancel()
        return socket

    def _heard(self, line: Line, frame: Json) -> None:
        match frame["op"]:
            case 1:
                self.beats += 1
                line.waiting.put_nowait('{"op":11}')
            case 2:
                self.identifies.append(frame["d"])
                self._identify(line, frame["d"])
            case 6:
                self.resumes.append(frame["d"])
                self._resume(line, frame["d"])

    def _identify(self, line: Line, data: Json) -> None:
        if data["token"] != self.token:
            line.waiting.put_nowait(4004)
            return
        if data["intents"] & CONTENT_INTENT and not self.flags:
            line.waiting.put_nowait(4014)
            return
        self._line = line
        self._session, self._sequence, self._log = f"s{self.snow()}", 0, []
        ready = {
            "v": 10,
            "user": self.me,
            "guilds": [{"id": GUILD, "unavailable": True}],
            "session_id": self._session,
            "resume_gateway_url": self.gateway_url,
            "application": {"id": APPLICATION, "flags": self.flags},
            "shard": [0, 1],
        }
        self.dispatch("READY", ready | self.ready_fields)
        self.dispatch("GUILD_CREATE", self.guild())

    def _resume(self, line: Line, data: Json) -> None:
        if data["token"] != self.token:
            line.waiting.put_nowait(4004)
            return
        if data["session_id"] != self._session or not self._session:
            line.waiting.put_nowait('{"op":9,"d":false,"s":null,"t":null}')
            return
        self._line = line
        for number, frame in self._log:
            if number > data["seq"]:
                line.waiting.put_nowait(frame)
        self.dispatch("RESUMED", {})

    # --- calls ---

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The product's ``LANEWAY_DISCORD_API_BASE``."""
        return self.base + PREFIX

    @property
    def gateway_url(self) -> str:
        """The product's ``LANEWAY_DISCORD_GATEWAY_URL``."""
        return f"ws://127.0.0.1:{self.port}/"

    async def start(self, port: int = 0) -> Self:
        """Listen; on the same port as before, if it is given."""
        app = web.Application(client_max_size=64_000_000)
        app.router.add_get("/", self._gateway)
        app.router.add_get("/cdn/{file}/{key}", self._cdn)
        app.router.add_route("*", PREFIX + "/{path:.+}", self._call)
        self.routes(app)
        self._released = asyncio.Event()
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        port = port or free_port()
        await web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]
        return self

    def routes(self, app: web.Application) -> None:
        """Further routes of a subclass."""

    async def stop(self) -> None:
        """Refuse connections; all state stays."""
        runner, self._runner = self._runner, None
        self._released.set()
        self.cut(1012)
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        return await self.start(self.port)

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def _call(self, request: web.Request) -> web.StreamResponse:
        body, files = await _given(request)
        path = "/" + unquote(request.raw_path.partition("?")[0].removeprefix(PREFIX + "/"))
        call = Call(request.method, path, body, files, dict(request.query), time.monotonic())
        self.calls.append(call)
        answer = await self._answer(request, call)
        self.told(call)
        return answer

    async def _answer(self, request: web.Request, call: Call) -> web.StreamResponse:
        fault = self._fault(call)
        if fault is not None and fault.way is Way.ANSWER:
            assert fault.refusal is not None
            if fault.raw is not None:
                call.status = fault.refusal.status
                return web.Response(body=fault.raw, status=fault.refusal.status)
            return _refused(call, fault.refusal)
        done: object = None
        headers: dict[str, str] = {}
        if fault is None or fault.way in (Way.HANG_AFTER, Way.DROP_AFTER):
            try:
                headers = self._allowed(request, call)
                done = self.api.carry_out(call)
            except Refusal as refusal:
                done = refusal
            except (KeyError, TypeError, ValueError) as error:
                done = Refusal(400, 50035, f"Invalid Form Body {error!r}")
        if fault is not None:
            if fault.way in (Way.HANG_BEFORE, Way.HANG_AFTER):
                await self._released.wait()
            return _cut(request)
        if isinstance(done, Refusal):
            return _refused(call, done)
        return _answered(call, done, headers)

    def _allowed(self, request: web.Request, call: Call) -> dict[str, str]:
        if call.path.startswith(_APART):
            return {}
        if request.headers.get("Authorization") != f"Bot {self.token}":
            raise Refusal(401, 0, "401: Unauthorized")
        return self.pace.count(_bucket(call))

    def _fault(self, call: Call) -> Fault | None:
        for fault in self.faults:
            if fault.hits(call.method, call.path):
                if fault.times:
                    fault.times -= 1
                    if not fault.times:
                        self.faults.remove(fault)
                return fault
        return None

    async def _cdn(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.calls.append(Call("GET", path, {}, {}, {}, time.monotonic(), 200))
        if (fault := self._fault(self.calls[-1])) is not None:
            if fault.way is not Way.ANSWER or fault.refusal is None:
                return _cut(request)
            return web.Response(status=fault.refusal.status)
        number, key = request.match_info["file"], request.match_info["key"]
        if key in self.expired or number not in self.files:
            return web.Response(status=404, text="This content is no longer available.")
        return web.Response(body=self.files[number])


async def _given(request: web.Request) -> tuple[Json, dict[str, tuple[str, bytes]]]:
    if request.content_type == "application/json":
        body: Any = await request.json()
        return body if isinstance(body, dict) else {"list": body}, {}
    given: Json = {}
    files: dict[str, tuple[str, bytes]] = {}
    if request.content_type.startswith("multipart/"):
        for key, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                files[key] = (value.filename, value.file.read())
                value.file.close()
            elif key == "payload_json":
                given = json.loads(str(value))
    return given, files


def _bucket(call: Call) -> str:
    """A route's bucket; its channel or server counts apart."""
    parts = call.path.split("/")
    major = parts[2] if len(parts) > 2 and parts[1] in ("channels", "guilds") else ""
    shape = "/".join("#" if part.isdecimal() else part for part in parts)
    return f"{call.method} {shape}|{major}"


def _cut(request: web.Request) -> web.Response:
    """End the connection instead of an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _refused(call: Call, refusal: Refusal) -> web.Response:
    call.status = refusal.status
    call.limited = refusal if isinstance(refusal, Limited) else None
    headers = {"Content-Type": "application/json", "Via": "1.1 google", **refusal.headers}
    body = json.dumps(refusal.body()).encode()
    return web.Response(body=body, status=refusal.status, headers=headers)


def _answered(call: Call, done: object, headers: dict[str, str]) -> web.Response:
    if done is None:
        call.status = 204
        return web.Response(status=204, headers=headers)
    call.status = 200
    headers = {"Content-Type": "application/json", "Via": "1.1 google", **headers}
    return web.Response(body=json.dumps(done).encode(), headers=headers)
