"""Files of local threads: sent up before the message that names them, and shown below it.

They lie in the home, where no agent has any business, under names that are made here. What somebody
sent up and never used goes after a day; what is older than three months is not kept. Only pictures
that cannot run anything are shown in place, all else is handed over to be saved.
"""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from channels.local.channel import LIMITS, received_file, sent_file
from core import inside
from core.folders import safe_name
from core.messages import FileKind, FileRef
from core.store import reads, threads
from core.store.records import FilePart
from core.store.threads import Upload
from gateway.paths import FILES
from gateway.web import theirs
from gateway.web.access import Bad, Who, api
from gateway.web.site import Site, site_of
from gateway.web.threads import IMAGES, ident_of
from gateway.web.visitor import Visitor

UNUSED_MOST = 40  # files that somebody may have sent up and not used yet
UNUSED_BYTES = 200_000_000
UNUSED_FOR = 86_400_000  # ms
NAMED_MOST = 20  # files of one message
SILENT_MOST = 30.0  # seconds in which something of a file has to come
_EXTRA = 64 * 1024  # bytes of a form around its file
_HEADER_MOST = 8 * 1024


def routes() -> list[Route]:
    members = Who.MEMBERS
    receive = partial(_receive, _UnderWay())
    return [
        api("/api/files", receive, ["POST"], members, LIMITS.file_in + _EXTRA, raw=True),
        api("/api/files/{id}/{name}", _hand_out, who=members),
    ]


# In -----------------------------------------------------------------------------------------


class _UnderWay:
    """What comes up now, by person: it counts as what waits there, or many at once pass the limit.

    Each is a size in bytes.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, list[int]] = {}

    @contextlib.contextmanager
    def one(self, person: str, size: int, held: Sequence[Upload]) -> Iterator[None]:
        """Room for one of this size beside what is ``held``; raises Bad when there is none."""
        mine = self._sizes.setdefault(person, [])
        waiting = [*mine, *(one.size for one in held)]
        if len(waiting) >= UNUSED_MOST or (waiting and sum(waiting) + size > UNUSED_BYTES):
            raise Bad("too many files wait to be sent; send or remove some first", 429)
        mine.append(size)
        try:
            yield
        finally:
            mine.remove(size)
            if not mine:
                del self._sizes[person]


async def _receive(under_way: _UnderWay, request: Request, visitor: Visitor) -> Response:
    """One file as multipart/form-data; answers with the id by which a message names it."""
    site = site_of(request)
    await _tidy(site)
    held = await threads.uploads_unused(site.parts.store, visitor.person)
    told, most = request.headers.get("content-length", ""), LIMITS.file_in + _EXTRA
    size = min(int(told[:20]), most) if told.isdecimal() else most
    with under_way.one(visitor.person, size, held):
        one = await _stored(request, visitor)
    return JSONResponse({"id": one.id, "name": one.name, "size": one.size, "mime": one.mime})


async def _stored(request: Request, visitor: Visitor) -> Upload:
    site, ident = site_of(request), secrets.token_urlsafe(16)
    folder = site.settings.home / FILES
    await asyncio.to_thread(inside.private, folder)
    path = folder / received_file(ident)
    try:
        name, size = await _save(request, path)
    except OSError as fault:
        await asyncio.to_thread(path.unlink, missing_ok=True)
        raise Bad(
            f"the file could not be stored: {fault.strerror or 'the disk refused it'}", 507
        ) from fault
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    mime = mimetypes.guess_type(name)[0] or "application/octet-stream"
    one = Upload(ident, visitor.person, name, mime, size, site.clock.now())
    await site.parts.store.save(threads.upload(one))
    return one


async def _save(request: Request, path: Path) -> tuple[str, int]:
    """Write the first file of a form; its harmless name, and its size in bytes."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise Bad("send the file as a form (multipart/form-data)", 415)
    form = _Form()
    try:
        parser = MultipartParser(options[b"boundary"], form.callbacks())  # type: ignore[arg-type]
        with await asyncio.to_thread(_private_file, path) as file:
            async for chunk in _limited(request):
                parser.write(chunk)
                if data := form.taken():
                    await asyncio.to_thread(file.write, data)
            parser.finalize()
    except FormParserError as fault:
        raise Bad("this is no form with a file") from fault
    if not form.found or not form.ended:
        raise Bad("there is no file in this form")
    if form.size > LIMITS.file_in:
        raise _too_big()
    return safe_name(form.name), form.size


def _private_file(path: Path) -> BinaryIO:
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


async def _limited(request: Request) -> AsyncIterator[bytes]:
    read, most = 0, LIMITS.file_in + _EXTRA
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(SILENT_MOST):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise Bad("nothing more of this file came; try again", 408) from None
        if chunk is None:
            return
        read += len(chunk)
        if read > most:
            raise _too_big()
        yield chunk


def _too_big() -> Bad:
    return Bad(f"this file is larger than {LIMITS.file_in // 1_000_000} MB", 413)


@dataclass(slots=True)
class _Form:
    """The first file of a form, as its pieces come."""

    name: str = "file"
    size: int = 0
    found: bool = False
    ended: bool = False
    _data: bytes = b""
    _field: bytes = b""
    _value: bytes = b""
    _inside: bool = False

    def callbacks(self) -> dict[str, Any]:
        return {
            "on_part_begin": self._begin,
            "on_header_begin": self._header,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_part_data": self._part,
            "on_part_end": self._end,
        }

    def taken(self) -> bytes:
        data, self._data = self._data, b""
        return data

    def _begin(self) -> None:
        self._inside = False

    def _header(self) -> None:
        self._field, self._value = b"", b""

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._field = (self._field + data[start:end])[:_HEADER_MOST]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value = (self._value + data[start:end])[:_HEADER_MOST]

    def _header_end(self) -> None:
        if self._field.lower() != b"content-disposition" or self.found:
            return
        _, options = parse_options_header(self._value)
        if b"filename" in options:
            self.found = self._inside = True
            self.name = options[b"filename"].decode(errors="replace")

    def _part(self, data: bytes, start: int, end: int) -> None:
        if self._inside:
            self._data += data[start:end]
            self.size += end - start

    def _end(self) -> None:
        self.ended = self.ended or self._inside
        self._inside = False


async def named(site: Site, visitor: Visitor, idents: Sequence[str]) -> tuple[FileRef, ...]:
    """The files that a message names; raises Bad where one is not there or not theirs."""
    if len(idents) > NAMED_MOST:
        raise Bad(f"at most {NAMED_MOST} files go with one message")
    found = []
    for ident in dict.fromkeys(idents):
        one = await threads.upload_of(site.parts.store, ident)
        if one is None or one.person != visitor.person:
            raise Bad("a file is not there any more; add it again", 409)
        kind = FileKind.IMAGE if one.mime in IMAGES else FileKind.DOCUMENT
        found.append(FileRef(one.id, kind, one.name, one.mime, one.size))
    return tuple(found)


async def _tidy(site: Site) -> None:
    """Remove what nobody used; there is little of it, and only when somebody sends more."""
    store, folder = site.parts.store, site.settings.home / FILES
    for one in await threads.uploads_old(store, site.clock.now() - UNUSED_FOR):
        await store.save(threads.remove_upload(one.id))
        with contextlib.suppress(OSError):
            await asyncio.to_thread((folder / received_file(one.id)).unlink, missing_ok=True)


# Out ----------------------------------------------------------------------------------------


async def _hand_out(request: Request, visitor: Visitor) -> Response:
    site, ident = site_of(request), request.path_params["id"]
    found = await _found(site, visitor, ident)
    if found is None:
        raise Bad("there is no such file", 404)
    path, name = found
    if not await asyncio.to_thread(path.is_file):
        raise Bad("this file is not kept any more", 410)
    mime = mimetypes.guess_type(name)[0] or ""
    shown = mime in IMAGES
    return FileResponse(
        path,
        media_type=mime if shown else "application/octet-stream",
        headers={
            "Content-Disposition": _disposition(name, shown),
            "Cache-Control": "private, max-age=3600",
            "Content-Security-Policy": "default-src 'none'; sandbox",
        },
    )


async def _found(site: Site, visitor: Visitor, ident: str) -> tuple[Path, str] | None:
    """Where a file lies and what it is called, if it is for this person."""
    folder, store = site.settings.home / FILES, site.parts.store
    kind, _, key = ident.partition("-")
    if kind == "in":
        one = await threads.upload_of(store, key)
        if one is None:
            return None
        own = one.person == visitor.person
        if own or (one.lane and await theirs.may_see(site, visitor, one.lane)):
            return folder / received_file(one.id), one.name
    if kind == "out":
        number = key.rpartition(".1")[2]
        try:
            row = await reads.delivery(store, int(number, 16))
        except (ValueError, OverflowError):
            return None
        there = row is not None and isinstance(row.part, FilePart) and ident_of(row) == key
        if row is not None and there and await theirs.may_see(site, visitor, row.lane):
            assert isinstance(row.part, FilePart)
            return folder / sent_file(key), row.part.name
    return None


def _disposition(name: str, shown: bool) -> str:
    """How it is handed over; a name can neither end the header nor lead anywhere."""
    plain = safe_name(name)
    ascii_name = plain.encode("ascii", "replace").decode().replace("?", "_").replace('"', "_")
    how = "inline" if shown else "attachment"
    return f"{how}; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(plain, safe='')}"
