"""What no browser would send: slow, huge and broken requests cost themselves, and nothing else."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.web import access, serving
from tests.web.site import Page
from tests.web.wire import request, say

JSON = "Content-Type: application/json"


@pytest_asyncio.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with Page(tmp_path) as running:
        yield running


async def alive(page: Page) -> bool:
    return (await say(page.gateway.web_port, request("GET", "/healthz"))).status == 200


def own(page: Page) -> str:
    return f"Origin: http://127.0.0.1:{page.gateway.web_port}"


def post(page: Page, path: str, *headers: str, body: bytes = b"") -> bytes:
    """A change from our own page, by the address that it was asked for."""
    whole = request("POST", path, own(page), JSON, *headers, body=body)
    port = str(page.gateway.web_port).encode()
    return whole.replace(b"Host: 127.0.0.1\r\n", b"Host: 127.0.0.1:" + port + b"\r\n")


async def test_a_body_that_comes_too_slowly_is_not_waited_for(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "BODY_WITHIN", 0.05)
    begun = post(page, "/api/signin/start", "Content-Length: 50", body=b'{"email"')
    answer = await say(page.gateway.web_port, begun)
    assert answer.status == 408
    assert b"too slowly" in answer.body
    assert answer.headers["connection"] == "close"
    assert await alive(page)


async def test_a_request_that_does_not_end_is_hung_up_on(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_WITHIN", 0.05)
    for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow:"):
        reader, writer = await asyncio.open_connection("127.0.0.1", page.gateway.web_port)
        writer.write(begun)
        async with asyncio.timeout(30):
            with suppress(ConnectionError):
                await reader.read()
        writer.close()
    assert await alive(page)


async def test_a_second_request_that_does_not_end_is_hung_up_on(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_WITHIN", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", page.gateway.web_port)
    writer.write(request("GET", "/healthz"))
    async with asyncio.timeout(30):
        heard = await reader.readuntil(b'{"status":"ok"}')
        writer.write(b"GET /healthz HTTP/1.1\r\nX-Slow:")
        with suppress(ConnectionError):
            assert b"200" not in await reader.read()
    assert heard.startswith(b"HTTP/1.1 200")
    writer.close()


async def test_a_claimed_length_is_refused_before_anything_is_read(page: Page) -> None:
    for length in (65_537, 10**15):
        begun = post(page, "/api/signin/start", f"Content-Length: {length}", body=b"{")
        assert (await say(page.gateway.web_port, begun)).status == 413
    for length in ("-1", "1e3", "²", "9" * 5000):
        begun = post(page, "/api/signin/start", f"Content-Length: {length}", body=b"{}")
        assert (await say(page.gateway.web_port, begun)).status in (400, 413)
    assert await alive(page)


async def test_headers_have_a_limit(page: Page) -> None:
    huge = request("GET", "/healthz", "X-Huge: " + "x" * 300_000)
    assert (await say(page.gateway.web_port, huge)).status in (0, 400, 431)
    many = request("GET", "/healthz", *(f"X-{n}: 1" for n in range(20_000)))
    assert (await say(page.gateway.web_port, many)).status in (0, 400, 431)
    cookie = request("GET", "/api/session", "Cookie: laneway=" + "x" * 20_000)
    assert (await say(page.gateway.web_port, cookie)).status == 401
    assert await alive(page)


ELSEWHERE = (
    "/static/1/../../settings.py",
    "/static/1/..%2f..%2fkeys.py",
    "/static/1/%2e%2e/%2e%2e/access.py",
    "/static/../../../../etc/passwd",
    "/static/1//etc/passwd",
    "/static/1/..\\..\\keys.py",
    "/static/1/page.css%00.txt",
    "/static/1/templates",
    "//etc/passwd",
)


async def test_only_the_files_of_the_page_are_handed_out(page: Page) -> None:
    for path in ELSEWHERE:
        answer = await say(page.gateway.web_port, request("GET", path))
        assert answer.status == 404, path


async def test_files_of_the_page_come_with_their_kind_and_from_memory(page: Page) -> None:
    answer = await say(page.gateway.web_port, request("GET", "/static/1/page.css"))
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    tagged = request("GET", "/static/1/page.css", f"If-None-Match: {answer.headers['etag']}")
    assert (await say(page.gateway.web_port, tagged)).status == 304


HOSTS = ("", "evil.example", "[::1", "a b", "x" * 5000, "127.0.0.1:99999", "../..", "é", "@")


async def test_whatever_host_is_asked_for_nobody_gets_in_by_it(page: Page) -> None:
    port = page.gateway.web_port
    for host in HOSTS:
        line = host.encode("latin-1")
        odd = request("GET", "/api/session").replace(b"127.0.0.1", line)
        assert (await say(port, odd)).status in (400, 401), host
        forged = post(page, "/api/signout", "Content-Length: 2", body=b"{}")
        forged = forged.replace(f"Host: 127.0.0.1:{port}".encode(), b"Host: " + line)
        assert (await say(port, forged)).status in (400, 403), host


NOISE = (
    b"\x16\x03\x01\x02\x00\x01\x00",  # a browser that wants TLS
    b"\0" * 5000,
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nzz",
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: a\r\n\r\n",
    b"CONNECT evil.example:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
)


async def test_noise_costs_its_own_connection(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    answers = await asyncio.gather(
        *(say(page.gateway.web_port, noise, within=0.5) for noise in NOISE)
    )
    assert not [one for one in answers if one.status == 500]
    assert await alive(page)
    assert not [one for one in caplog.records if one.exc_info]


async def test_more_connections_than_files_allow_are_hung_up_on(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "connections_most", lambda: 3)
    kept = [await asyncio.open_connection("127.0.0.1", page.gateway.web_port) for _ in range(3)]
    assert not await alive(page)
    for _, writer in kept:
        writer.close()
    while not await alive(page):
        await asyncio.sleep(0.01)


def test_agents_and_the_store_have_files_left() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert serving.FEWEST <= serving.connections_most() <= max(soft // 2, serving.FEWEST)


async def test_an_answer_is_not_held_back_for_what_may_follow(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    begin = serving.Patient.connection_made

    def begun(self: serving.Patient, transport: asyncio.Transport) -> None:
        begin(self, transport)
        wire = transport.get_extra_info("socket")
        made.append(wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(serving.Patient, "connection_made", begun)
    assert await alive(page)
    assert made
    assert all(made)


async def test_requests_one_behind_the_other_are_answered_in_order(page: Page) -> None:
    three = request("GET", "/healthz") * 2 + b"nonsense\r\n\r\n" + request("GET", "/healthz")
    reader, writer = await asyncio.open_connection("127.0.0.1", page.gateway.web_port)
    writer.write(three)
    async with asyncio.timeout(30):
        heard = await reader.read()
    writer.close()
    assert heard.count(b'{"status":"ok"}') == 2
    assert await alive(page)


async def test_a_request_of_two_lengths_is_refused_and_nothing_after_it_is_heard(
    page: Page,
) -> None:
    two = ("Content-Length: 4", "Transfer-Encoding: chunked")
    hidden = request("GET", "/healthz")
    for asked in (
        request("POST", "/api/signin/start", own(page), *two, body=b"0\r\n\r\n"),
        request("GET", "/no/such", *two, body=b"0\r\n\r\n"),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", page.gateway.web_port)
        writer.write(asked + hidden)
        async with asyncio.timeout(30):
            heard = await reader.read()
        writer.close()
        assert heard.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
        assert heard.count(b"HTTP/1.1") == 1
    assert await alive(page)


async def test_who_leaves_in_the_middle_leaves_nothing_behind(
    page: Page, caplog: pytest.LogCaptureFixture
) -> None:
    begun = post(page, "/api/signin/start", "Content-Length: 50", body=b"{")
    for _ in range(5):
        _, writer = await asyncio.open_connection("127.0.0.1", page.gateway.web_port)
        writer.write(begun)
        await writer.drain()
        writer.transport.abort()
    assert await alive(page)
    assert not [one for one in caplog.records if one.levelname == "ERROR"]
