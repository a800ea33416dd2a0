"""Signing in and out over HTTP: the page with its two steps, and what it asks.

Nothing that a GET does changes anything, so that whoever looks at a link before its reader does,
as mail scanners do, takes nothing away.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from gateway.web import cookies
from gateway.web.access import Bad, Kind, Who, api, open_api, text, visitor_of
from gateway.web.callers import caller_of
from gateway.web.mail import MINUTES
from gateway.web.mailbox import NoAddress, mailbox
from gateway.web.rendering import html
from gateway.web.signin_rules import Answer, TooMany
from gateway.web.signins import Opened, new_name, plain_code
from gateway.web.site import site_of
from gateway.web.visitor import Visitor

WRONG = "this code is not right, or it is too old; use the newest one"
ASK_AGAIN = "no code is good here any more: ask for a new code"
BAD_LINK = "this link was used already or is too old; make a new one with: laneway signin"
SENT = "If this address may sign in here, a mail with a code is on its way to it."
CODE_MOST = 100  # characters, with what stands between the digits
TOKEN_MOST = 200
_OWN = re.compile(r"/(?![/\\])[!-~]*")  # a path here; browsers read // and /\ as another host


def routes() -> list[Route]:
    return [
        open_api("/signin", _page, kind=Kind.PAGE),
        open_api("/signin/link", _link_page, kind=Kind.PAGE),
        open_api("/api/signin/start", _start, ("POST",)),
        open_api("/api/signin/verify", _verify, ("POST",)),
        open_api("/api/signin/link", _link, ("POST",)),
        api("/api/signout", _signout, ("POST",), Who.MEMBERS),
        api("/api/session", _session, who=Who.MEMBERS),
    ]


def own_path(wanted: str) -> str:
    """Where to go after signing in: a page here, whatever an address asks for."""
    good = _OWN.fullmatch(wanted) and "\\" not in wanted and not wanted.startswith("/signin")
    return wanted if good and len(wanted) <= 2000 else "/"


async def _page(request: Request) -> Response:
    onward = own_path(request.query_params.get("next", ""))
    if await visitor_of(request):
        return RedirectResponse(onward, status_code=303)
    site = site_of(request)
    lists = site.parts.people.lists
    response = html(
        request, "signin.html", None,
        onward=onward, minutes=MINUTES, mailer=site.settings.smtp is not None,
        nobody=not (lists.admin_emails or lists.member_emails),
    )  # fmt: skip
    if not cookies.names_of(request):
        cookies.keep_name(request, response, new_name())  # before two tabs can ask at once
    return response


async def _link_page(request: Request) -> Response:
    return html(request, "signin_link.html", None)


async def _start(request: Request) -> Response:
    typed = text(request, "email", 1000)
    try:
        address = mailbox(typed)
    except NoAddress as fault:
        raise Bad(str(fault)) from None
    caller = caller_of(request, new_name())
    if wait := await site_of(request).signins.ask(address, typed, caller):
        return _too_many(wait)
    response = JSONResponse({"said": SENT, "minutes": MINUTES})
    cookies.keep_name(request, response, caller.names[0])
    return response


async def _verify(request: Request) -> Response:
    typed, code = text(request, "email", 1000), text(request, "code", CODE_MOST)
    try:
        address = mailbox(typed)
    except NoAddress as fault:
        raise Bad(str(fault)) from None
    if not plain_code(code):
        raise Bad("type the code that came by mail")
    signins = site_of(request).signins
    return _answered(request, await signins.guess(address, typed, code, caller_of(request)), WRONG)


async def _link(request: Request) -> Response:
    token = text(request, "token", TOKEN_MOST).strip()
    if not token:
        raise Bad("this link is not whole; copy all of it")
    found = await site_of(request).signins.follow(token, caller_of(request))
    return _answered(request, found, BAD_LINK)


def _answered(request: Request, found: Opened | Answer | TooMany, wrong: str) -> Response:
    match found:
        case TooMany():
            return _too_many(found)
        case Opened():
            site = site_of(request)
            response = JSONResponse(_account(site.accounts.name(found.person), found.person,
                                             site.accounts.role(found.person)))  # fmt: skip
            cookies.sign_in(request, response, found)
            return response
    again = found is Answer.ASK_AGAIN
    said = ASK_AGAIN if again else wrong
    return JSONResponse({"error": said, "ask_again": again}, status_code=401)


def _too_many(wait: TooMany) -> Response:
    minutes = -(-wait.seconds // 60)
    said = f"too many tries from your network; try again in {minutes} min"
    retry = {"Retry-After": str(wait.seconds)}
    return JSONResponse({"error": said, "seconds": wait.seconds}, status_code=429, headers=retry)


async def _signout(request: Request, visitor: Visitor) -> Response:
    await site_of(request).accounts.close(visitor.signin, visitor.person)
    response = JSONResponse({"signed_in": False})
    cookies.sign_out(request, response)
    return response


async def _session(request: Request, visitor: Visitor) -> Response:
    return JSONResponse(_account(visitor.name, visitor.person, visitor.role))


def _account(name: str, person: str, role: str) -> dict[str, object]:
    kind, _, address = person.partition(":")
    email = address if kind == "web" else ""
    return {"signed_in": True, "person": person, "name": name, "email": email, "role": str(role)}
