"""Looks at addresses: real requests over loopback, to names that a test gives addresses to."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from core.watch_rules import Seen, Unseen
from core.watching import pages
from core.watching.pages import PageLook


def answer(body: bytes = b"", status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join((*lines, "", "")).encode() + body


def leads(to: str) -> bytes:
    return answer(b"", "302 Found", f"Location: {to}")


@dataclass
class Site:
    """What is answered by path, and what was asked."""

    port: int = 0
    paths: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    names: dict[str, list[str]] = field(default_factory=dict)
    hangs: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split()[1]
            self.asked.append(path)
            self.heads.append(head)
            lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            self.hosts.append(lines["Host"])
            writer.write(self.paths.get(path, answer(b"", "404 Not Found")))
            await writer.drain()
            if self.hangs:
                await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass  # nobody waits for it any more
        finally:
            writer.close()

    async def resolve(self, host: str, port: int) -> list[str]:
        if host not in self.names:
            raise OSError("no such name")
        return self.names[host]

    def url(self, path: str = "/", name: str = "pub.example") -> str:
        return f"http://{name}:{self.port}{path}"


@asynccontextmanager
async def serving(trust: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    site = Site(names={"pub.example": ["127.0.0.1"]})
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=trust)
    site.port = server.sockets[0].getsockname()[1]
    async with server:
        yield site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as made:
        yield made


@pytest.fixture
def one_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 stands for the public network, everything else for the private one."""
    monkeypatch.setattr(pages, "_public", lambda address: address == "127.0.0.1")


def looking(site: Site, *, private: bool = True, **more: float) -> PageLook:
    return PageLook(private, resolve=site.resolve, **more)  # type: ignore[arg-type]


async def unseen(look: PageLook, url: str) -> Unseen:
    saw = await look.look(url)
    assert isinstance(saw, Unseen), saw
    return saw


async def test_a_page_is_read_under_its_own_name(site: Site) -> None:
    site.paths["/a?b=1"] = answer(
        "schön".encode("latin-1"), "200 OK", "Content-Type: text/html; charset=latin-1"
    )
    assert await looking(site).look(site.url("/a?b=1#part")) == Seen("schön", 200, size=5)
    assert site.hosts == [f"pub.example:{site.port}"]


async def test_any_status_is_seen(site: Site) -> None:
    saw = await looking(site).look(site.url("/none"))
    assert isinstance(saw, Seen)
    assert saw.code == 404


async def test_redirects_are_followed_where_that_is_wanted(site: Site) -> None:
    site.paths |= {"/a": leads("/b"), "/b": leads(site.url("/c")), "/c": answer(b"there")}
    look = looking(site)
    assert await look.look(site.url("/a")) == Seen("there", 200, size=5)
    saw = await look.look(site.url("/a"), follow=False)
    assert isinstance(saw, Seen)
    assert saw.code == 302


async def test_redirects_in_a_circle_end(site: Site) -> None:
    site.paths["/a"] = leads("/a")
    assert "leads on more than 5 times" in (await unseen(looking(site), site.url("/a"))).why
    assert len(site.asked) == 6


@pytest.mark.parametrize(
    "to",
    ["file:///etc/passwd", "gopher://pub.example/", "http://pub.example:99999/"],
)
async def test_a_redirect_leads_to_the_web_alone(site: Site, to: str) -> None:
    site.paths["/a"] = leads(to)
    assert (await unseen(looking(site), site.url("/a"))).why.startswith("it leads to")


async def test_a_private_address_is_refused_before_anything_is_sent(site: Site) -> None:
    saw = await unseen(looking(site, private=False), site.url())
    assert saw.barred
    assert "pub.example is at a private address" in saw.why
    assert site.asked == []


async def test_a_name_with_one_private_address_among_others_is_refused(
    site: Site, one_public: None
) -> None:
    site.names["pub.example"] = ["127.0.0.1", "127.0.0.2"]
    assert (await unseen(looking(site, private=False), site.url())).barred


async def test_a_redirect_into_the_private_network_is_refused(site: Site, one_public: None) -> None:
    site.names["intra.example"] = ["127.0.0.2"]
    site.paths["/a"] = leads(site.url("/secret", "intra.example"))
    assert (await unseen(looking(site, private=False), site.url("/a"))).barred
    assert site.asked == ["/a"]


async def test_a_name_that_means_something_else_a_moment_later_leads_nowhere_else(
    site: Site, one_public: None
) -> None:
    """The connection goes to the address that was looked at, not to what the name means then."""
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])

    async def resolve(host: str, port: int) -> list[str]:
        return next(answers)

    site.paths["/"] = answer(b"public")
    look = PageLook(resolve=resolve)
    assert await look.look(site.url()) == Seen("public", 200, size=6)
    assert next(answers) == ["127.0.0.2"]  # nobody asked a second time


async def test_the_next_address_of_a_name_is_tried_where_one_does_not_answer(site: Site) -> None:
    site.names["pub.example"] = ["127.0.0.9", "127.0.0.1"]
    site.paths["/"] = answer(b"there")
    assert await looking(site).look(site.url()) == Seen("there", 200, size=5)


async def test_of_a_long_page_only_the_beginning_is_read(site: Site) -> None:
    site.paths["/"] = answer(b"x" * 5000)
    saw = await looking(site, most=1000).look(site.url())
    assert saw == Seen("x" * 1000, 200, cut=True, size=1000)


async def test_what_is_compressed_though_nobody_asked_is_unpacked_and_bounded(site: Site) -> None:
    site.paths["/"] = answer(gzip.compress(b"x" * 10_000_000), "200 OK", "Content-Encoding: gzip")
    saw = await looking(site, most=1000).look(site.url())
    assert saw == Seen("x" * 1000, 200, cut=True, size=1000)
    site.paths["/"] = answer(b"?", "200 OK", "Content-Encoding: br")
    assert "compressed" in (await unseen(looking(site), site.url())).why


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"])
async def test_a_server_that_hangs_is_given_up(site: Site, said: bytes) -> None:
    site.paths["/"], site.hangs = said, True
    saw = await unseen(looking(site, limit=0.2), site.url())
    assert saw.why == "there was no answer within 0.2 seconds"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://none.example/", "none.example cannot be found"),
        ("http://pub.example:1/", "pub.example cannot be reached"),
    ],
)
async def test_what_cannot_be_reached_says_so(site: Site, url: str, why: str) -> None:
    assert (await unseen(looking(site), url)).why == why


async def test_what_is_no_web_server_says_so(site: Site) -> None:
    site.paths["/"] = b"220 mail ready\r\n"
    saw = await unseen(looking(site), site.url())
    assert saw.why == "pub.example did not answer as a web server does"


async def test_no_proxy_of_the_environment_is_asked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    site.paths["/"] = answer(b"there")
    assert await looking(site).look(site.url()) == Seen("there", 200, size=5)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
async def test_a_certificate_must_be_that_of_the_name(tmp_path: Path) -> None:
    key, cert = tmp_path / "key", tmp_path / "cert"
    making = await asyncio.create_subprocess_exec(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        *("-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=x"),
        *("-addext", "subjectAltName=DNS:pub.example"),
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await making.wait() == 0
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(cert, key)
    async with serving(served) as site:
        site.paths["/"] = answer(b"there")
        site.names["other.example"] = ["127.0.0.1"]
        trust = ssl.create_default_context(cafile=str(cert))
        look = PageLook(private=True, resolve=site.resolve, _trust=trust)
        secure = site.url().replace("http", "https")
        assert await look.look(secure) == Seen("there", 200, size=5)
        saw = await unseen(look, secure.replace("pub", "other"))
        assert saw.why == "the certificate of other.example is not valid"
        saw = await unseen(looking(site), secure)
        assert saw.why == "the certificate of pub.example is not valid"


async def test_a_page_in_an_encoding_of_python_alone_is_read_at_once(site: Site) -> None:
    long = b"b" * 900_000  # as punycode that takes minutes, in which nothing else would run
    for name in ("punycode", "Idna", "unicode_escape", "undefined", "rot13"):
        site.paths["/"] = answer(long, "200 OK", f"Content-Type: text/plain; charset={name}")
        assert await looking(site, limit=5).look(site.url()) == Seen(
            long.decode(), 200, size=900_000
        )


async def test_what_comes_behind_the_end_of_what_is_compressed_is_not_waited_for(
    site: Site,
) -> None:
    packed = gzip.compress(b"page")
    site.paths["/"] = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + packed + b"\0" * 100
    site.hangs = True
    saw = await looking(site, limit=5).look(site.url())
    assert saw == Seen("page", 200, size=4)


async def test_of_what_is_compressed_to_come_to_nothing_no_more_is_read_than_of_a_page(
    site: Site,
) -> None:
    empty = b"\x00\x00\x00\xff\xff"  # a block without contents
    head = b"\x78\x9c"
    site.paths["/"] = b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n" + head + empty * 2000
    site.hangs = True
    saw = await looking(site, limit=5, most=4096).look(site.url())
    assert saw == Seen("", 200, cut=True)


async def test_a_name_and_password_in_a_redirect_are_not_sent(site: Site) -> None:
    site.paths["/"] = leads(f"http://ana:secret@pub.example:{site.port}/inside")
    site.paths["/inside"] = answer(b"there")
    assert await looking(site).look(site.url()) == Seen("there", 200, size=5)
    assert not any("authorization" in head.lower() for head in site.heads)
