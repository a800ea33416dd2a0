"""The chat: threads of the local channel, said and pressed in as on any other channel.

A thread belongs to who began it. Who is an admin also talks in those of the terminal, and can look
into all others. What is shown comes by the stream of events, earlier pages by ``history``.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.commands import COMMANDS
from core.lane_ids import LOCAL, local_name
from core.people import Role
from core.store import reads, threads
from core.store.records import LaneRow
from gateway.choices import EngineName
from gateway.control import OWNER
from gateway.web import files, theirs
from gateway.web import threads as reading
from gateway.web.access import Bad, Who, api, page, text
from gateway.web.lane_views import THREAD, key_of, views
from gateway.web.rendering import html
from gateway.web.site import Site, site_of
from gateway.web.visitor import Visitor

TEXT_MOST = 200_000  # characters of one message
BODY = 4 * TEXT_MOST + 16_384
LISTED = 200
STORED_WITHIN = 20.0  # seconds; a message that takes longer is sent again by the page
_REF = re.compile(r"[A-Za-z0-9_-]{8,64}")
_NEW = re.compile(rf"{THREAD}[a-z0-9]{{12,40}}")
NOT_YOURS = "this thread is somebody else's: you can look, and act on it on the lanes page"
NO_THREAD = "there is no such thread"


def routes() -> list[Route]:
    members = Who.MEMBERS
    return [
        page("/chat", _page, members),
        page("/chat/{lane}", _page, members),
        api("/api/threads", _threads, who=members),
        api("/api/lanes/{lane}/history", _history, who=members),
        api("/api/lanes/{lane}/say", _say, ["POST"], who=members, body=BODY),
        api("/api/press", _press, ["POST"], who=members),
    ]


async def _page(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    lane = request.path_params.get("lane", "")
    speaks = True
    if lane:
        found = await _found(site, visitor, lane)
        speaks = found is None or _may_speak(visitor, found)
    name = f"{THREAD}{secrets.token_hex(10)}"
    person = site.parts.people.person(visitor.person, visitor.name)
    commands = [
        {"name": one.name, "args": one.args, "line": one.line}
        for one in COMMANDS.values()
        if one.open_to(person)
    ]
    owners = [*mine(visitor), *([OWNER] if visitor.admin else [])]
    return html(
        request,
        "chat.html",
        visitor,
        lane=lane or name,
        opened=bool(lane),
        speaks=speaks,
        keys=json.dumps([key_of(one) for one in mine(visitor)]),
        owners=json.dumps([key_of(one) for one in owners]),
        commands=json.dumps(commands),
        most=TEXT_MOST,
        demo=site.settings.engine is EngineName.DEMO,
    )


def mine(visitor: Visitor) -> tuple[str, ...]:
    """All under which somebody is known."""
    return (visitor.person, *sorted(visitor.linked))


async def _threads(request: Request, visitor: Visitor) -> Response:
    """The threads in which somebody talks, the newest first."""
    site = site_of(request)
    owners = [visitor.person, *([OWNER] if visitor.admin else [])]
    rows = await threads.begun_by(site.parts.store, owners, LISTED)
    seen = await views(site, rows)
    return JSONResponse({"lanes": [one.shown for one in seen]})


async def _history(request: Request, visitor: Visitor) -> Response:
    """What stands before an instant in a thread; ``before`` in ms."""
    site, lane = site_of(request), request.path_params["lane"]
    before = request.query_params.get("before", "")
    if not (before.isascii() and before.isdecimal() and len(before) <= 15):
        raise Bad("say before which instant, in milliseconds")
    if await _found(site, visitor, lane) is None:
        raise Bad(NO_THREAD, 404)
    part = await reading.read(site, lane, int(before))
    return JSONResponse({"entries": [one.as_json() for one in part.entries], "more": part.more})


async def _say(request: Request, visitor: Visitor) -> Response:
    """A message, with files that were sent up before; sent again with its id it is the same one."""
    site, lane = site_of(request), request.path_params["lane"]
    said, ref = text(request, "text", TEXT_MOST, needed=False), text(request, "id", 64)
    if not _REF.fullmatch(ref):
        raise Bad("id: 8 to 64 letters, digits, - and _, made anew for each message")
    idents = request.state.body.get("files", [])
    if not isinstance(idents, list) or not all(isinstance(one, str) for one in idents):
        raise Bad("files is a list of ids")
    if not said.strip() and not idents:
        raise Bad("write something, or add a file")
    if await _found(site, visitor, lane) is not None:
        await _speak(site, visitor, lane, said, ref, idents)
    else:
        async with site.hub.naming:  # two people who give one name do not make one lane
            await _speak(site, visitor, lane, said, ref, idents)
    return JSONResponse({"lane": lane, "id": ref})


async def _speak(
    site: Site, visitor: Visitor, lane: str, said: str, ref: str, idents: list[str]
) -> None:
    await _check(site, visitor, lane)
    with_it = await files.named(site, visitor, idents)
    kept = [threads.upload_named(file.ref, lane) for file in with_it]
    await site.parts.store.save(*kept)
    saying = site.local.say(
        lane, visitor.person, visitor.name, said,
        ident=reading.identity_of(visitor.person, ref), files=with_it,
    )  # fmt: skip
    try:
        async with asyncio.timeout(STORED_WITHIN):
            await saying
    except (TimeoutError, ConnectionError) as fault:
        raise Bad("the gateway cannot store it now; try again in a moment", 503) from fault


async def _check(site: Site, visitor: Visitor, lane: str) -> None:
    """Whether somebody may talk in a lane, or begin it; raises Bad."""
    found = await _found(site, visitor, lane)
    if found is not None and not _may_speak(visitor, found):
        raise Bad(NOT_YOURS, 403)
    if found is None and not (visitor.role is Role.ADMIN or _NEW.fullmatch(lane)):
        raise Bad(NO_THREAD, 404)


async def _found(site: Site, visitor: Visitor, lane: str) -> LaneRow | None:
    """The thread; None where it is new. Raises Bad where it is not for this person."""
    try:
        local_name(lane)
    except ValueError as fault:
        raise Bad(str(fault) if visitor.admin else NO_THREAD, 404) from fault
    found = await theirs.belonging(site, lane)
    if found is None:
        return None
    if found.row.address.channel != LOCAL or not theirs.sees(site.parts.people, visitor, found):
        raise Bad(NO_THREAD, 404)
    return found.row


def _may_speak(visitor: Visitor, row: LaneRow) -> bool:
    return visitor.is_me(row.owner) or (visitor.admin and row.owner == OWNER)


async def _press(request: Request, visitor: Visitor) -> Response:
    """A button below a message, pressed; answers with what this person is told."""
    site = site_of(request)
    lane, ident = text(request, "lane", 200), text(request, "button", 100)
    message_id = text(request, "message_id", 100, needed=False)
    button = await reads.button(site.parts.store, ident)
    here = button is not None and button.lane == lane
    if not here or await _found(site, visitor, lane) is None:
        raise Bad("this button is not there any more", 404)
    said = await site.local.press(lane, visitor.person, visitor.name, ident, message_id)
    return JSONResponse({"said": said})
