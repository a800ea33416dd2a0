"""The wire of the fake Slack: the Web API, Socket Mode with acknowledgements and redelivery,
uploads and downloads, ordered faults, recorded calls.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from aiohttp import WSMsgType, web

from tests.fakes.ports import free_port
from tests.fakes.slack_api import Api
from tests.fakes.slack_faults import Call, Fault, Tiers, Way
from tests.fakes.slack_posting import signed_post
from tests.fakes.slack_rules import Json, Refusal, check_message
from tests.fakes.slack_world import APP, World

_JSON_FIELDS = ("blocks", "chunks", "files", "prompts", "metadata", "attachments")
_LOGIN = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>"


@dataclass(slots=True)
class Envelope:
    """One delivery, and how often it was tried. ``payload_back`` is what the ack carried."""

    id: str
    type: str
    payload: Json
    sent: list[float] = field(default_factory=list)
    acked: float | None = None
    payload_back: Json | None = None
    lost: bool = False
    attempt: int = 0
    statuses: list[int] = field(default_factory=list)  # of its posts; 0: no answer in time
    answer: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def acked_after(self) -> float:
        """Seconds between the last delivery and its acknowledgement."""
        assert self.acked is not None, "it was not acknowledged"
        return self.acked - self.sent[-1]


class Server(World):
    """Listens on loopback; what people do and what tests look at is added on top.

    ``ack_within`` and ``retries`` (seconds) are Slack's own unless a test makes them short.
    """

    def __init__(self, bot_token: str, app_token: str) -> None:
        super().__init__(bot_token, app_token)
        self.ack_within = 3.0
        self.retries = (0.0, 60.0, 300.0)
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.tiers: Tiers | None = None
        self.envelopes: list[Envelope] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.connected = 0  # connections that were greeted, ever
        self.refuse_sockets = 0  # so many connections are refused although the ticket was good
        self.request_url = ""  # where everything is posted, in place of sockets
        self.signing_secret = "8f742231b10e8888abcd99yyyzzz85a5"
        self.greets = True
        self.others_connected = 0  # connections of other processes that Slack counts
        self.told: Callable[[Call], None] = lambda call: None  # of every finished call
        self.port = 0
        self._tickets: set[str] = set()
        self._api = Api(self, lambda: self.base, self._ticket)
        self._came = asyncio.Event()
        self._deliveries: set[asyncio.Task[None]] = set()
        self._released = asyncio.Event()
        self._posting = asyncio.Lock()
        self._runner: web.AppRunner | None = None

    # --- what goes wrong ---

    def fail(
        self,
        method: str,
        error: str = "internal_error",
        status: int = 200,
        *,
        times: int = 1,
        retry_after: int | None = None,
        **fields: object,
    ) -> None:
        """Refuse calls with this error; with ``retry_after`` it is a 429."""
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        status = status if retry_after is None else 429
        body = json.dumps({"ok": False, "error": error, **fields}).encode()
        self.faults.append(Fault(method, Way.ANSWER, status, body, headers=headers, times=times))

    def hang(self, method: str, after: bool = False, *, times: int = 1) -> None:
        """Never answer; with ``after`` the call is carried out all the same."""
        way = Way.HANG_AFTER if after else Way.HANG_BEFORE
        self.faults.append(Fault(method, way, times=times))

    def drop(self, method: str, after: bool = False, *, times: int = 1) -> None:
        """Cut the connection instead of an answer."""
        way = Way.DROP_AFTER if after else Way.DROP_BEFORE
        self.faults.append(Fault(method, way, times=times))

    def garble(
        self, method: str, body: bytes = b"<html>", status: int = 200, *, times: int = 1
    ) -> None:
        """Answer something that is no JSON, or JSON of another shape."""
        self.faults.append(Fault(method, Way.ANSWER, status, body, "text/html", times=times))

    def heal(self) -> None:
        """No fault any more; what hangs is let go."""
        self.faults.clear()
        self.refuse_sockets = 0
        self._released.set()
        self._released = asyncio.Event()

    def revoke(self, bot_token: str = "xoxb-other", app_token: str = "") -> None:
        """The tokens are not valid any more; these are."""
        self.bot_token = bot_token or self.bot_token
        self.app_token = app_token or self.app_token

    def cut(self) -> None:
        """Every socket's connection breaks, without a word."""
        for socket in self.sockets:
            request = socket._req
            if request is not None and request.transport is not None:
                request.transport.abort()

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Slack asks the newest connection to come again, and closes it soon after."""
        said = {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}}
        await self.sockets[-1].send_json(said)

    # --- deliveries ---

    def push(self, kind: str, payload: Json, envelope_id: str = "") -> Envelope:
        """Deliver a payload; events are delivered again while nobody acknowledges them."""
        envelope = Envelope(envelope_id or str(uuid.uuid4()), kind, payload)
        self.envelopes.append(envelope)
        self._spawn(self._deliver(envelope))
        return envelope

    def again(self, envelope: Envelope) -> Envelope:
        """The same envelope once more, although it was acknowledged."""
        return self.push(envelope.type, envelope.payload, envelope.id)

    async def _deliver(self, envelope: Envelope) -> None:
        pauses = self.retries if envelope.type == "events_api" else ()
        for pause in (None, *pauses):
            if pause is not None:
                await asyncio.sleep(pause)
                envelope.attempt += 1
            if await self._try(envelope):
                return
        envelope.lost = True

    async def _try(self, envelope: Envelope) -> bool:
        """Whether it was acknowledged in time by the connection that got it."""
        if self.request_url:
            return await self._post(envelope)
        socket = next((one for one in reversed(self.sockets) if not one.closed), None)
        if socket is None:
            return False
        said: Json = {
            "envelope_id": envelope.id,
            "type": envelope.type,
            "payload": envelope.payload,
            "accepts_response_payload": envelope.type != "events_api",
        }
        if envelope.attempt:
            said |= {"retry_attempt": envelope.attempt, "retry_reason": "timeout"}
        envelope.sent.append(time.monotonic())
        try:
            await socket.send_json(said)
        except ConnectionError:
            return False
        ends = time.monotonic() + self.ack_within
        while not socket.closed and (left := ends - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(envelope.answer.wait(), min(left, 0.05))
            except TimeoutError:
                continue
            return True
        return envelope.answer.is_set()

    async def _post(self, envelope: Envelope) -> bool:
        """The same over HTTP, one after the other; a command or a press is posted as a form."""
        async with self._posting:
            envelope.sent.append(time.monotonic())
            await signed_post(self, envelope)
        if envelope.statuses[-1] == 200:
            envelope.acked = time.monotonic()
            envelope.answer.set()
        return envelope.answer.is_set()

    def _spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[arg-type]
        self._deliveries.add(task)
        task.add_done_callback(self._deliveries.discard)

    # --- the wire ---

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where the Web API is: the product's ``LANEWAY_SLACK_API_BASE``."""
        return f"{self.base}/api/"

    async def start(self, port: int = 0) -> Self:
        """Listen; on the same port as before, if it is given."""
        app = web.Application(client_max_size=64_000_000)
        app.router.add_get("/link/", self._link)
        app.router.add_route("*", "/api/{method}", self._handle)
        app.router.add_post("/upload/v1/{file}", self._upload)
        app.router.add_get("/files-pri/{file}", self._download)
        app.router.add_post("/response/{token}", self._respond)
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
        """Refuse connections; all state stays, and so do deliveries under way."""
        runner, self._runner = self._runner, None
        self._released.set()
        self._tickets.clear()
        self.cut()
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        return await self.start(self.port)

    async def __aexit__(self, *error: object) -> None:
        for task in list(self._deliveries):
            task.cancel()
        await asyncio.gather(*self._deliveries, return_exceptions=True)
        await self.stop()

    def _ticket(self) -> str:
        ticket = uuid.uuid4().hex
        self._tickets.add(ticket)
        return f"ws://127.0.0.1:{self.port}/link/?ticket={ticket}&app_id={APP}"

    async def _link(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=400, text="the ticket was used already")
        self._tickets.discard(ticket)
        if self.refuse_sockets:
            self.refuse_sockets -= 1
            return web.Response(status=503)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        hello = {
            "type": "hello",
            "num_connections": len(self.sockets) + self.others_connected,
            "debug_info": {"host": "applink-1", "approximate_connection_time": 18060},
            "connection_info": {"app_id": APP},
        }
        try:
            if self.greets:
                await socket.send_json(hello)
            self.connected += 1
            async for frame in socket:
                if frame.type is WSMsgType.TEXT:
                    self._acknowledged(json.loads(frame.data))
        except ConnectionError:
            pass
        finally:
            self.sockets.remove(socket)
        return socket

    def _acknowledged(self, said: Json) -> None:
        for envelope in self.envelopes:
            if envelope.id == said.get("envelope_id") and not envelope.answer.is_set():
                envelope.acked = time.monotonic()
                envelope.payload_back = said.get("payload")
                envelope.answer.set()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        fields = await _parameters(request)
        token = fields.pop("token", "") or request.headers.get("Authorization", "")
        call = Call(method, fields, time.monotonic())
        self.calls.append(call)
        answer = await self._answered(request, call, token.removeprefix("Bearer "))
        self.told(call)
        return answer

    async def _answered(self, request: web.Request, call: Call, token: str) -> web.Response:
        fault = self._fault(call)
        if fault is not None and fault.way is Way.ANSWER:
            call.status = fault.status
            return web.Response(
                body=fault.body,
                status=fault.status,
                content_type=fault.content_type,
                headers=fault.headers,
            )
        done: Json | Refusal = {}
        if fault is None or fault.way in (Way.HANG_AFTER, Way.DROP_AFTER):
            done = self._carry_out(call, token)
        if fault is None:
            return self._response(call, done)
        if fault.way in (Way.HANG_BEFORE, Way.HANG_AFTER):
            await self._released.wait()
        return _cut(request)

    def _response(self, call: Call, done: Json | Refusal) -> web.Response:
        if isinstance(done, Refusal):
            call.status, call.error = done.status, done.error
            headers = {} if done.retry_after is None else {"Retry-After": str(done.retry_after)}
            return web.json_response(done.body(), status=done.status, headers=headers)
        call.status = 200
        return web.json_response({"ok": True, **done}, headers={"x-oauth-scopes": self.scopes})

    def _fault(self, call: Call) -> Fault | None:
        for fault in self.faults:
            if fault.method in (call.method, "*"):
                if fault.times:
                    fault.times -= 1
                    if not fault.times:
                        self.faults.remove(fault)
                return fault
        return None

    def _carry_out(self, call: Call, token: str) -> Json | Refusal:
        try:
            app = call.method == "apps.connections.open"
            if token != (self.app_token if app else self.bot_token):
                raise Refusal("invalid_auth")
            method = self._api.method(call.method)
            if method is None:
                raise Refusal("unknown_method")
            if self.tiers is not None:
                self.tiers.count(call.method, call.channel)
            return method(call.fields)
        except Refusal as refusal:
            return refusal
        except (KeyError, ValueError, TypeError) as error:
            return Refusal("invalid_arguments", detail=repr(error))

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        ident = request.match_info["file"]
        call = Call("upload", {"file": ident}, time.monotonic(), 200)
        self.calls.append(call)
        data = await request.read()
        if (fault := self._fault(call)) is not None:
            if fault.way is not Way.ANSWER:
                return _cut(request)
            return web.Response(status=fault.status, body=fault.body)
        if ident not in self.files or len(data) != self.files[ident]["length"]:
            return web.Response(status=400, text="length_mismatch")
        self.files[ident] |= {"data": data, "size": len(data)}
        return web.Response(text=f"OK - {len(data)}", content_type="text/plain")

    async def _download(self, request: web.Request) -> web.StreamResponse:
        ident = request.match_info["file"]
        call = Call("download", {"file": ident}, time.monotonic(), 200)
        self.calls.append(call)
        if (fault := self._fault(call)) is not None:
            if fault.way is not Way.ANSWER:
                return _cut(request)
            return web.Response(status=fault.status, body=fault.body, headers=fault.headers)
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}":
            return web.Response(text=_LOGIN, content_type="text/html")  # with 200, as the real one
        if ident not in self.files:
            return web.Response(status=404)
        kept = self.files[ident]
        mime = kept["mimetype"] or "application/octet-stream"
        return web.Response(body=kept["data"], headers={"Content-Type": mime})

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        """An answer to a press or a command: five of them, only for the one who asked."""
        token, fields = request.match_info["token"], await request.json()
        call = Call("response_url", fields, time.monotonic(), 200)
        self.calls.append(call)
        if (fault := self._fault(call)) is not None:
            if fault.way is not Way.ANSWER:
                return _cut(request)
            return web.Response(status=fault.status, body=fault.body)
        if self.responses.get(token, 0) <= 0:
            return web.Response(status=404, text="used_url")
        try:
            check_message(fields, 40_000)
        except Refusal as refusal:
            return web.json_response(refusal.body())
        self.responses[token] -= 1
        if fields.get("response_type", "ephemeral") == "ephemeral":
            self.ephemerals.append(fields)
        return web.Response(text="ok")


async def _parameters(request: web.Request) -> Json:
    """A call's parameters, from wherever Slack takes them."""
    fields: Json = dict(request.query)
    if request.content_type == "application/json":
        fields |= await request.json()
    elif request.can_read_body:
        fields |= dict(await request.post())
    for key in _JSON_FIELDS:
        if isinstance(fields.get(key), str):
            try:
                fields[key] = json.loads(fields[key])
            except ValueError:
                continue
    return fields


def _cut(request: web.Request) -> web.Response:
    """End the connection instead of an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
