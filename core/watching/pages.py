"""A look at an address: one request, and the redirects after it, by hand.

A name is resolved here, every address it has must be public, and the connection goes to that very
address: so neither a name that changes its meaning nor a redirect leads into the private network.
No proxy is asked, no cookie kept, no password sent. The HTTP library is loaded with the first look.
"""

from __future__ import annotations

import asyncio
import codecs
import importlib
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from core.addresses import is_public
from core.messages import clean
from core.watch_rules import Seen, Unseen
from core.watching.beside import beside

if TYPE_CHECKING:
    import httpx

MOST = 1024 * 1024  # bytes of a page, as it comes and unpacked
HOPS = 5  # redirects
TRIED = 3  # addresses of one name
CONNECT = 10.0  # seconds for each
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GZIP = 32 + zlib.MAX_WBITS  # gzip or zlib, whichever it is
# Of Python alone, no page is written in them; of a long one some take minutes.
_ODD = frozenset({"idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape"})
_HEADERS = {"User-Agent": "laneway-watch", "Accept": "*/*", "Accept-Encoding": "identity"}

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class _Refused(Exception):
    """Nothing is seen of it; the message is half a sentence."""

    def __init__(self, why: str, *, barred: bool = False) -> None:
        super().__init__(why)
        self.barred = barred


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the machine finds them."""

    def ask() -> Sequence[tuple[object, ...]]:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    found = await beside(ask, "name of a watched page")
    places = (one[4] for one in found)
    return list(dict.fromkeys(str(place[0]) for place in places if isinstance(place, tuple)))


@dataclass(slots=True)
class PageLook:
    """``private``: private addresses may be reached. ``limit``: seconds of the machine's time."""

    private: bool = False
    limit: float = 30.0
    most: int = MOST
    resolve: Resolve = resolve
    _trust: ssl.SSLContext | None = field(default=None)

    async def look(self, url: str, follow: bool = True) -> Seen | Unseen:
        try:
            async with asyncio.timeout(self.limit):
                trust = await self._loaded()
                return await self._through(url, follow, trust)
        except TimeoutError:
            return Unseen(f"there was no answer within {self.limit:g} seconds")
        except _Refused as fault:
            return Unseen(str(fault), fault.barred)

    async def _loaded(self) -> ssl.SSLContext:
        """Late and beside the loop: the library and the certificates take a tenth of a second."""
        if self._trust is None:

            def load() -> ssl.SSLContext:
                library = importlib.import_module("httpx")
                trust: ssl.SSLContext = library.create_ssl_context()
                return trust

            self._trust = await asyncio.to_thread(load)
        return self._trust

    async def _through(self, url: str, follow: bool, trust: ssl.SSLContext) -> Seen:
        for _ in range(HOPS + 1):
            seen, onward = await self._once(url, follow, trust)
            if not onward:
                return seen
            try:
                url = urljoin(url, onward)
            except ValueError:
                raise _Refused("it leads to an address that is none") from None
        raise _Refused(f"it leads on more than {HOPS} times")

    async def _once(self, url: str, follow: bool, trust: ssl.SSLContext) -> tuple[Seen, str]:
        """What is there, and where it leads on to; "" for what is the end."""
        import httpx  # is loaded by now

        host, port = _place(url)
        try:
            asked = httpx.URL(url)
            headers = {**_HEADERS, "Host": asked.netloc.decode("ascii")}
            name = asked.raw_host.decode("ascii")
            found = await self._addresses(name, host, port)
            # A client each: a connection that stays open is one to a name that has moved since.
            async with httpx.AsyncClient(
                verify=trust, trust_env=False, timeout=httpx.Timeout(self.limit, connect=CONNECT)
            ) as client:
                for place, address in enumerate(found[:TRIED], 1):
                    there = asked.copy_with(host=address, fragment=None, userinfo=b"")
                    request = client.build_request(
                        "GET", there, headers=headers, extensions={"sni_hostname": name}
                    )
                    try:
                        response = await client.send(request, stream=True)
                    except (httpx.ConnectError, httpx.ConnectTimeout):
                        if place == len(found[:TRIED]):
                            raise
                        continue
                    try:
                        return await self._told(response, follow)
                    finally:
                        await response.aclose()
            raise AssertionError("the last address answers or raises")
        except httpx.InvalidURL:
            raise _Refused("its address is none") from None
        except (httpx.HTTPError, ssl.SSLError, OSError) as fault:
            raise _Refused(_reason(host, fault)) from fault

    async def _told(self, response: httpx.Response, follow: bool) -> tuple[Seen, str]:
        onward = response.headers.get("location", "")
        if follow and response.status_code in _REDIRECTS and onward:
            return Seen(code=response.status_code), onward
        return await self._read(response), ""

    async def _addresses(self, name: str, host: str, port: int) -> Sequence[str]:
        """Where to connect to; every address of the name must be one that may be reached."""
        try:
            found = await self.resolve(name.strip("[]"), port)
        except (OSError, UnicodeError):
            raise _Refused(f"{host} cannot be found") from None
        if not found:
            raise _Refused(f"{host} cannot be found")
        if not self.private and not all(map(_public, found)):
            raise _Refused(
                f"{host} is at a private address, which watches reach only with "
                "LANEWAY_WATCH_PRIVATE=on",
                barred=True,
            )
        return found

    async def _read(self, response: httpx.Response) -> Seen:
        """As much of the body as is taken, whatever size it pretends to have."""
        coding = response.headers.get("content-encoding", "identity").lower().strip()
        if coding not in ("identity", "", "gzip", "x-gzip", "deflate"):
            raise _Refused(f"the server answers compressed in a way nobody asked for ({coding})")
        unpack = None if coding in ("identity", "") else zlib.decompressobj(_GZIP)
        body, came, cut = bytearray(), 0, False
        async for piece in response.aiter_raw():
            came += len(piece)
            room = self.most - len(body)
            try:
                body += unpack.decompress(piece, room + 1) if unpack else piece[: room + 1]
            except zlib.error:
                raise _Refused("the server's answer cannot be unpacked") from None
            if max(len(body), came) > self.most:  # also what is packed so as to come to nothing
                cut = True
                del body[self.most :]
                break
            if unpack is not None and unpack.eof:
                break  # what stands behind its end belongs to nothing
        text = clean(body.decode(_charset(response), "replace"))
        return Seen(text, response.status_code, cut=cut, size=len(body))


def _place(url: str) -> tuple[str, int]:
    """Host and port; only the web's own schemes lead anywhere."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _Refused("it leads to an address that is none") from None
    if parts.scheme not in ("http", "https") or not host:
        raise _Refused(f"it leads to {parts.scheme or 'nowhere'}, and only http and https are read")
    return host, port or (443 if parts.scheme == "https" else 80)


def _public(address: str) -> bool:
    try:
        return is_public(address)
    except ValueError:
        return False


def _charset(response: httpx.Response) -> str:
    named = response.charset_encoding or "utf-8"
    try:
        b"a".decode(named, "replace")  # refuses what encodes no text
        known = codecs.lookup(named).name
    except (LookupError, UnicodeError, ValueError):
        return "utf-8"
    return "utf-8" if known.replace("-", "_") in _ODD else known


def _reason(host: str, fault: Exception) -> str:
    """Half a sentence; nothing of the library's own words but what a certificate is wrong with."""
    said = str(fault)
    if "CERTIFICATE" in said.upper():
        return f"the certificate of {host} is not valid"
    kind = type(fault).__name__
    if "Connect" in kind:
        return f"{host} cannot be reached"
    return f"{host} did not answer as a web server does"
