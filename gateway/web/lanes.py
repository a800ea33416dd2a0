"""The lanes page: what runs where, for whom and since when, what waits, and what can be done.

Whatever somebody does here goes the way it would go from the lane's thread: the same rights, and
the thread is told. It must not know how lanes decide.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core import engine_words
from core.attending import begun
from core.cards import visible
from core.items import Item
from core.lane_events import DropAsked, PauseAsked, ResumeAsked, SkipAsked, StopAsked
from core.people import Person
from core.store import reads, rows, threads, web
from core.store.records import ALL_LANES, ApprovalState
from core.turns import Stop, StopKind
from gateway import reports
from gateway.web import theirs
from gateway.web.access import Bad, Who, api, page, text
from gateway.web.hub import LISTED
from gateway.web.lane_views import key_of, views
from gateway.web.naming import name_of
from gateway.web.rendering import html
from gateway.web.site import Site, site_of
from gateway.web.theirs import Belonging
from gateway.web.visitor import Visitor

TURNS = 50  # that are listed of a lane
WORDS_MOST = 200  # characters of a search
CHOICES = frozenset({"allow", "always", "deny"})
GONE = "there is no such lane"


def routes() -> list[Route]:
    members, post = Who.MEMBERS, ["POST"]
    return [
        page("/lanes", _page, members),
        api("/api/lanes", _lanes, who=members),
        api("/api/lanes/{lane}/turns", _turns, who=members),
        api("/api/lanes/{lane}/stop", _stop, post, who=members),
        api("/api/lanes/{lane}/skip", _skip, post, who=members),
        api("/api/lanes/{lane}/drop", _drop, post, who=members),
        api("/api/lanes/{lane}/pause", _pause, post),
        api("/api/lanes/{lane}/resume", _resume, post),
        api("/api/pause", _pause_all, post),
        api("/api/resume", _resume_all, post),
        api("/api/approvals/{id}", _approval, who=members),
        api("/api/approvals/{id}", _decide, post, who=members),
    ]


async def _page(request: Request, visitor: Visitor) -> Response:
    keys = [key_of(one) for one in (visitor.person, *sorted(visitor.linked))]
    starter = site_of(request).parts.intake.ground.house.starter_approves
    return html(request, "lanes.html", visitor, keys=" ".join(keys), starter=starter)


# Looking ------------------------------------------------------------------------------------


async def _lanes(request: Request, visitor: Visitor) -> Response:
    """The lanes that somebody may see: the newest, or those with some words in their name."""
    site = site_of(request)
    words = request.query_params.get("q", "")[:WORDS_MOST].strip().lower()
    if words and visitor.admin:
        found = await threads.named_like(site.parts.store, words, LISTED)
        seen = await views(site, found)
    elif words:
        own = await theirs.rows_of(site, visitor)
        found = [row for row in own if words in row.title.lower() or words in row.id.lower()]
        seen = await views(site, found[:LISTED])
    else:
        seen = list((await site.hub.listing(visitor)).values())
    return JSONResponse({"lanes": [one.shown for one in seen]})


async def _turns(request: Request, visitor: Visitor) -> Response:
    """The newest turns of a lane, newest first, each with its end and how its answer stands."""
    site, lane = site_of(request), await _lane(request, visitor)
    found = await reports.turns(site.parts.store, lane.row.id, TURNS)
    for turn in found:
        person = turn.pop("person")
        turn |= {"name": name_of(site, person), "key": key_of(person)}
    return JSONResponse({"turns": found[::-1]})


async def _approval(request: Request, visitor: Visitor) -> Response:
    """The whole command of a question, as it is shown on a card."""
    row = await reads.approval(site_of(request).parts.store, _number(request))
    if row is None or not await theirs.may_see(site_of(request), visitor, row.lane):
        raise Bad("there is no such question", 404)
    body = {"id": row.id, "tool": visible(row.tool), "command": visible(row.command)}
    return JSONResponse(body | {"open": row.state is ApprovalState.ASKED})


# Acting -------------------------------------------------------------------------------------


async def _stop(request: Request, visitor: Visitor) -> Response:
    """As /stop: what runs ends, and what waits is dropped. With a turn, that one alone."""
    site, lane = site_of(request), await _lane(request, visitor)
    turn, person = _turn(request), _person(site, visitor, lane)
    stop = Stop(StopKind.STOP, person.id)
    found = site.parts.runner.view(lane.row.id)
    first = found.main if found and found.main and not found.main.status.over else None
    site.parts.runner.cancel_now(lane.row.id, stop, turn)
    event = StopAsked(lane.row.id, person.id, person.admin, turn, first if turn is None else None)
    await site.parts.runner.take(Item(event=event))
    return JSONResponse({"said": ""})


async def _skip(request: Request, visitor: Visitor) -> Response:
    """As /skip: one running turn ends, and the queue goes on."""
    site, lane = site_of(request), await _lane(request, visitor)
    turn, person = _turn(request), _person(site, visitor, lane)
    site.parts.runner.cancel_now(lane.row.id, Stop(StopKind.SKIP, person.id), turn)
    await site.parts.runner.take(Item(event=SkipAsked(lane.row.id, person.id, turn=turn)))
    return JSONResponse({"said": ""})


async def _drop(request: Request, visitor: Visitor) -> Response:
    """A waiting message is taken out; one's own, or any for an admin."""
    site, lane = site_of(request), await _lane(request, visitor)
    turn, person = _turn(request), _person(site, visitor, lane)
    view = site.parts.runner.view(lane.row.id)
    waiting = next((one for one in (view.waiting if view else ()) if one.id == turn), None)
    if waiting is None:
        raise Bad("it does not wait any more", 409)
    if not (person.admin or visitor.is_me(waiting.person)):
        raise Bad("that message is somebody else's; only its sender or an admin can drop it", 403)
    by = waiting.person if visitor.is_me(waiting.person) else person.id
    event = DropAsked(waiting.id, lane.row.id, by, person.admin)
    await site.parts.runner.take(Item(event=event))
    return JSONResponse({"said": ""})


async def _pause(request: Request, visitor: Visitor) -> Response:
    return await _command(request, visitor, "pause")


async def _resume(request: Request, visitor: Visitor) -> Response:
    return await _command(request, visitor, "resume")


async def _command(request: Request, visitor: Visitor, name: str) -> Response:
    site, lane = site_of(request), await _lane(request, visitor)
    person = Person(visitor.person, visitor.name, visitor.role)
    await site.parts.intake.on_page(lane.row, person, name)
    return JSONResponse({"said": ""})


async def _pause_all(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    now = site.clock.now()
    written = (
        rows.pause(ALL_LANES, engine_words.BY_ADMIN, now),
        web.act(now, visitor.person, "all.paused"),
    )
    await site.parts.runner.take(Item(event=PauseAsked(), rows=written))
    site.hub.house_changed()
    return JSONResponse({"said": "Nothing new starts anywhere now; what waits is kept."})


async def _resume_all(request: Request, visitor: Visitor) -> Response:
    site = site_of(request)
    act = web.act(site.clock.now(), visitor.person, "all.resumed")
    await site.parts.runner.take(Item(event=ResumeAsked(), rows=(rows.resume(ALL_LANES), act)))
    site.hub.house_changed()
    return JSONResponse({"said": "Everything goes on, except what is paused by itself."})


async def _decide(request: Request, visitor: Visitor) -> Response:
    """A decision about what an agent asks, as by a press on the card in its thread."""
    site, choice = site_of(request), text(request, "choice", 10)
    if choice not in CHOICES:
        raise Bad("choice is allow, always or deny")
    row = await reads.approval(site.parts.store, _number(request))
    lane = await theirs.belonging(site, row.lane) if row else None
    if row is None or lane is None or not theirs.sees(site.parts.people, visitor, lane):
        raise Bad("there is no such question", 404)
    may = visitor.admin
    turn = await reads.turn(site.parts.store, row.turn)
    if not may and turn is not None and site.parts.intake.ground.house.starter_approves:
        may = visitor.is_me((await begun(site.parts.store, turn.turn())).starter)
    site.parts.people.person(visitor.person, visitor.name)  # so that others are told a name
    said = await site.parts.approvals.decide(
        row.id, choice, visitor.person, may, visitor.admin, row.lane
    )
    return JSONResponse({"said": said})


# Who, and what ------------------------------------------------------------------------------


async def _lane(request: Request, visitor: Visitor) -> Belonging:
    """The lane of the address, if it is for this person; else Bad."""
    site = site_of(request)
    found = await theirs.belonging(site, request.path_params["lane"])
    if found is None or not theirs.sees(site.parts.people, visitor, found):
        raise Bad(GONE, 404)
    return found


def _person(site: Site, visitor: Visitor, lane: Belonging) -> Person:
    """Who acts there: under the name whose turn runs or waits, with the rights of the page."""
    view = site.parts.runner.view(lane.row.id)
    turns = (view.main, *view.sides, *view.waiting) if view else ()
    acts_as = theirs.as_in(visitor, lane, [turn.person for turn in turns if turn is not None])
    site.parts.people.person(visitor.person, visitor.name)  # so that others are told a name
    return Person(acts_as, site.parts.people.name(acts_as), visitor.role)


def _turn(request: Request) -> int | None:
    turn = request.state.body.get("turn")
    if turn is not None and (not isinstance(turn, int) or isinstance(turn, bool)):
        raise Bad("turn is a number")
    return turn


def _number(request: Request) -> int:
    typed = request.path_params["id"]
    if not (typed.isascii() and typed.isdecimal() and len(typed) <= 15):
        raise Bad("there is no such question", 404)
    return int(typed)
