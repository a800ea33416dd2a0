"""The wire of the fake Telegram: HTTP in, long polls, ordered faults, recorded calls."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Self

from aiohttp import web

from tests.fakes.ports import free_port
from tests.fakes.telegram_api import Api
from tests.fakes.telegram_faults import Call, Fault, Flood, Way
from tests.fakes.telegram_posting import Posting
from tests.fakes.telegram_rules import Json, Refusal
from tests.fakes.telegram_world import World

_CONFLICT = (
    "Conflict: terminated by other getUpdates request;"
    " make sure that only one bot instance is running"
)
_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active;"
    " use deleteWebhook to delete the webhook first"
)


class Server(World):
    """Listens on loopback; what people do and what tests look at is added on top."""

    def __init__(self, token: str, username: str) -> None:
        super().__init__(token, username)
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.flood: Flood | None = None
        self.download_pause = 0.0
        self.told: Callable[[Call], None] = lambda call: None  # of every finished call
        self.port = 0
        self.posting = Posting(self)
        self._api = Api(self)
        self._poll: asyncio.Future[None] | None = None
        self._hurried = False
        self._released = asyncio.Event()
        self._runner: web.AppRunner | None = None

    # --- what goes wrong ---

    def fail(
        self,
        method: str,
        status: int,
        description: str = "Internal Server Error",
        *,
        times: int = 1,
        chat: int | None = None,
        **parameters: object,
    ) -> None:
        """Refuse calls with this status; ``retry_after=…`` and the like become its parameters."""
        body = json.dumps(Refusal(description, status, **parameters).body()).encode()
        self.faults.append(Fault(method, Way.ANSWER, status, body, chat=chat, times=times))

    def hang(
        self, method: str, after: bool = False, *, times: int = 1, chat: int | None = None
    ) -> None:
        """Never answer; with ``after`` the call is carried out all the same."""
        way = Way.HANG_AFTER if after else Way.HANG_BEFORE
        self.faults.append(Fault(method, way, chat=chat, times=times))

    def drop(
        self, method: str, after: bool = False, *, times: int = 1, chat: int | None = None
    ) -> None:
        """Cut the connection instead of an answer."""
        way = Way.DROP_AFTER if after else Way.DROP_BEFORE
        self.faults.append(Fault(method, way, chat=chat, times=times))

    def garble(
        self, method: str, body: bytes = b"<html>", status: int = 200, *, times: int = 1
    ) -> None:
        """Answer something that is no JSON, or JSON of another shape."""
        self.faults.append(Fault(method, Way.ANSWER, status, body, "text/html", times=times))

    def hurry(self) -> None:
        """End the long poll that waits now, or the next one, as if its time were over."""
        self._hurried = True
        self.came.set()

    def heal(self) -> None:
        """No fault any more; what hangs is let go."""
        self.faults.clear()
        self._released.set()
        self._released = asyncio.Event()

    def close_topic(self, chat: int, thread: int, gone: bool = False) -> None:
        """A topic is closed, or deleted."""
        if gone:
            self.topics.pop((chat, thread), None)
        else:
            self.closed.add((chat, thread))

    def revoke(self, token: str = "800000001:revoked") -> None:
        """The token is not valid any more; the new one is."""
        self.token = token
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)

    # --- the wire ---

    @property
    def url(self) -> str:
        """Where it listens: the product's ``LANEWAY_TELEGRAM_API_BASE``."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self, port: int = 0) -> Self:
        """Listen; on the same port as before, if it is given."""
        app = web.Application(client_max_size=64_000_000)
        app.router.add_get("/file/bot{token}/{path:.+}", self._download)
        app.router.add_route("*", "/bot{token}/{method}", self._handle)
        self.routes(app)
        self._released = asyncio.Event()
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        port = port or free_port()
        await web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]
        self.posting.start()
        return self

    def routes(self, app: web.Application) -> None:
        """Further routes of a subclass."""

    async def stop(self) -> None:
        """Refuse connections; all state stays."""
        runner, self._runner = self._runner, None
        await self.posting.stop()
        self._released.set()
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        return await self.start(self.port)

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        fields, files = await _parameters(request)
        call = Call(method, fields, files, time.monotonic())
        self.calls.append(call)
        try:
            answer = await self._answer(request, call)
        except ConnectionResetError:
            answer = _cut(request)
        self.told(call)
        return answer

    async def _answer(self, request: web.Request, call: Call) -> web.StreamResponse:
        if request.match_info["token"] != self.token:
            return _answered(call, Refusal("Unauthorized", 401))
        fault = self._fault(call)
        if fault is not None and fault.way is Way.ANSWER:
            call.status = fault.status
            return web.Response(
                body=fault.body, status=fault.status, content_type=fault.content_type
            )
        if fault is None or fault.way in (Way.HANG_AFTER, Way.DROP_AFTER):
            try:
                done: object = await self._carry_out(call)
            except Refusal as refusal:
                done = refusal
        else:
            done = None
        if fault is None:
            return _answered(call, done)
        if fault.way in (Way.HANG_BEFORE, Way.HANG_AFTER):
            await self._released.wait()
        return _cut(request)

    def _fault(self, call: Call) -> Fault | None:
        for fault in self.faults:
            if fault.hits(call.method, call.chat):
                if fault.times:
                    fault.times -= 1
                    if not fault.times:
                        self.faults.remove(fault)
                return fault
        return None

    async def _carry_out(self, call: Call) -> object:
        if call.method == "getUpdates":
            return await self._get_updates(call.fields)
        method = self._api.method(call.method)
        if method is None:
            raise Refusal("Not Found: method not found", 404)
        if self.flood is not None:
            self.flood.count(call.method, call.chat)
        try:
            return method(call.fields, call.files)
        except (KeyError, ValueError, TypeError) as error:
            raise Refusal(f"Bad Request: {error!r} in the parameters") from None

    async def _get_updates(self, fields: Json) -> list[object]:
        if self.webhook:
            raise Refusal(_WEBHOOK, 409)
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(None)  # it is the older poll that is ended
        mine = self._poll = asyncio.get_running_loop().create_future()
        token = self.token
        if isinstance(fields.get("allowed_updates"), list):
            self.allowed = fields["allowed_updates"] or None
        offset, most = int(fields.get("offset") or 0), int(fields.get("limit") or 100)
        end = time.monotonic() + float(fields.get("timeout") or 0)
        while not (found := self.waiting(offset, most)) and time.monotonic() < end:
            if self._hurried:
                self._hurried = False
                break
            news = asyncio.ensure_future(self.came.wait())
            await asyncio.wait(
                {news, mine},
                timeout=end - time.monotonic(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            news.cancel()
            if mine.done():
                if self._runner is None:
                    raise ConnectionResetError
                if self.token != token:
                    raise Refusal("Unauthorized", 401)
                raise Refusal(_CONFLICT, 409)
        if not mine.done():
            mine.set_result(None)
        return found

    async def _download(self, request: web.Request) -> web.StreamResponse:
        ref = request.match_info["path"].rsplit("/", 1)[-1]
        self.calls.append(Call("download", {"file_id": ref}, {}, time.monotonic(), 200))
        if (fault := self._fault(self.calls[-1])) is not None:
            if fault.way is not Way.ANSWER:
                return _cut(request)
            return web.Response(status=fault.status, body=fault.body)
        if request.match_info["token"] != self.token or ref not in self.files:
            return web.Response(status=404)
        if self.download_pause:
            await asyncio.sleep(self.download_pause)
        return web.Response(body=self.files[ref][1])


async def _parameters(request: web.Request) -> tuple[Json, dict[str, tuple[str, bytes]]]:
    """A call's parameters, from wherever the API takes them."""
    fields: Json = dict(request.query)
    files: dict[str, tuple[str, bytes]] = {}
    if request.content_type == "application/json":
        fields |= await request.json()
    elif request.can_read_body:
        for key, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                files[key] = (value.filename, value.file.read())
                value.file.close()
            else:
                fields[key] = value
    for key, value in fields.items():
        if isinstance(value, str) and value[:1] in "[{" and key not in ("text", "caption", "name"):
            try:
                fields[key] = json.loads(value)
            except ValueError:
                continue
    return fields, files


def _cut(request: web.Request) -> web.Response:
    """End the connection instead of an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _answered(call: Call, done: object) -> web.Response:
    if isinstance(done, Refusal):
        call.status, call.description = done.status, done.description
        return web.json_response(done.body(), status=done.status)
    call.status = 200
    return web.json_response({"ok": True, "result": done})
