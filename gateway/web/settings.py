"""The settings page: what there is, where each value comes from, saving and testing.

Secrets go in and never come out. What is checked, stored and applied is the business of living.py;
this file only carries it between there and the browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.people import WEB
from gateway import logs
from gateway.channel_parts import lists
from gateway.config import ADDING, Settings, secrets_of
from gateway.control import OWNER
from gateway.editors import (
    Kind,
    advice,
    choices_of,
    entries,
    holds_secret,
    kind_of,
    label_of,
    shown,
)
from gateway.engine_parts import StoreLedger
from gateway.living import Change, Clash, Clashed, Wrong
from gateway.reports import instant
from gateway.setting import Applies, Setting
from gateway.settings_table import table
from gateway.web.access import Bad, api, page, text
from gateway.web.rendering import html
from gateway.web.site import Site, site_of
from gateway.web.trying import CHANNELS, ENGINES, LETTER, WHAT, tried
from gateway.web.visitor import Visitor

BODY_MOST = 512 * 1024
VALUE_MOST = 32_000  # characters
Json = dict[str, Any]


def routes() -> list[Route]:
    return [
        page("/settings", _page),
        api("/api/settings", _list),
        api("/api/settings", _save, methods=("POST",), body=BODY_MOST),
        api("/api/settings/connections", _connections),
        api("/api/settings/test", _test, methods=("POST",), body=BODY_MOST),
    ]


async def _page(request: Request, visitor: Visitor) -> Response:
    return html(request, "settings.html", visitor)


async def _list(request: Request, visitor: Visitor) -> Response:
    return JSONResponse(_everything(site_of(request)))


async def _connections(request: Request, visitor: Visitor) -> Response:
    return JSONResponse(_connected(site_of(request)))


async def _save(request: Request, visitor: Visitor) -> Response:
    site, changes = site_of(request), _changes(request)
    if site.parts.store.trouble:
        raise Bad(f"nothing can be saved now: {site.parts.store.trouble}", 503)
    try:
        wanted = site.living.with_changes(changes).settings
        warnings = _warnings(request, visitor, wanted)
        if warnings and request.state.body.get("sure") is not True:
            words = "this changes how you get in here; save it only if you are sure"
            return JSONResponse({"error": words, "warnings": warnings}, status_code=428)
        await site.living.save(changes, visitor.person)
    except Wrong as fault:
        words = "nothing was saved: some of it cannot be as it is"
        return JSONResponse({"error": words, "wrong": dict(fault.wrong)}, status_code=422)
    except Clashed as fault:
        clashes = [_clash(site, clash) for clash in fault.clashes]
        words = "nothing was saved: somebody else changed the same meanwhile"
        return JSONResponse({"error": words, "clashes": clashes}, status_code=409)
    return JSONResponse(_everything(site) | {"said": _said(changes)})


async def _test(request: Request, visitor: Visitor) -> Response:
    site, what = site_of(request), text(request, "what", 40)
    if what not in WHAT:
        raise Bad("there is no such test", 404)
    try:
        wanted = site.living.with_changes(_changes(request)).settings
    except Wrong as fault:
        words = "this cannot be tested as it is"
        return JSONResponse({"error": words, "wrong": dict(fault.wrong)}, status_code=422)
    to = ""
    if what == LETTER:
        to = visitor.person.removeprefix(WEB)
        if visitor.person == OWNER or "@" not in to:
            raise Bad("you have no mail address here: sign in with one, then send a test mail")
    logs.hide(secrets_of(wanted))  # typed just now, and perhaps never saved
    began = site.clock.monotonic()
    findings = await tried(what, wanted, site.clock, StoreLedger(site.parts.store), to)
    took = round(site.clock.monotonic() - began, 1)
    return JSONResponse({"findings": [asdict(one) for one in findings], "seconds": took})


# What comes in ----------------------------------------------------------------------------


def _changes(request: Request) -> dict[str, Change]:
    """``changes``: values by name, null for none; ``based``: the revisions they were made on."""
    given = request.state.body.get("changes", {})
    based = request.state.body.get("based", {})
    if not isinstance(given, dict) or not isinstance(based, dict):
        raise Bad("changes and based are objects")
    found: dict[str, Change] = {}
    for name, value in given.items():
        revision = based.get(name, 0)
        if not isinstance(value, str | None) or not isinstance(revision, int):
            raise Bad(f"{name}: a value is a text or null, a revision a number")
        if value is not None and len(value) > VALUE_MOST:
            raise Bad(f"{name} is longer than {VALUE_MOST} characters")
        found[name] = Change((value or "").strip() or None, revision)
    return found


def _warnings(request: Request, visitor: Visitor, wanted: Settings) -> list[str]:
    """What of it could keep this very admin out."""
    found: list[str] = []
    named = lists(wanted)
    if visitor.person == OWNER and named.admin_emails:
        found.append(
            "The built-in owner is signed out, here and everywhere, because an admin has a mail"
            " address then. Make sure that you can read the mails of one of these addresses."
            + ("" if wanted.smtp else " No mail server is set: codes are printed on the terminal.")
        )
    if visitor.person.startswith(WEB) and not _stays(visitor, wanted):
        found.append(
            f"{visitor.name} would be no admin any more: you could not change this back yourself."
        )
    site = site_of(request)
    if wanted.web_url.startswith("https:") is not site.https:
        found.append("Everybody signs in anew, you as well: cookies are not the same with https.")
    if wanted.web_url and wanted.web_url != site.settings.web_url:
        parts = urlsplit(wanted.web_url)
        origin = f"{parts.scheme}://{parts.netloc}".lower()
        if origin != request.headers.get("origin", origin).lower():
            found.append(
                f"The page takes changes only at {origin} then, and from the gateway's own machine;"
                " you are at another address now."
                " If that address does not lead here, set LANEWAY_WEB_URL in the environment."
            )
    return found


def _stays(visitor: Visitor, wanted: Settings) -> bool:
    address = visitor.person.removeprefix(WEB)
    return lists(wanted).of_mail(address) is visitor.role


# What goes out ----------------------------------------------------------------------------


def _everything(site: Site) -> Json:
    groups: dict[str, list[Json]] = {}
    for setting in table():
        groups.setdefault(setting.group, []).append(_row(site, setting))
    return {
        "groups": [{"name": name, "settings": rows} for name, rows in groups.items()],
        "problems": site.living.problems(),
        "connections": _connected(site),
        "tests": {"engines": list(ENGINES)},
    }


def _connected(site: Site) -> Json:
    """How the platforms are connected; empty words while all is well."""
    found = site.parts.intake.connections
    return {name: one.reason for name, one in found.items() if name in CHANNELS}


def _row(site: Site, setting: Setting) -> Json:
    living, name = site.living, setting.name
    stored, given = living.saved.rows.get(name), living.written.fixed(name)
    value = living.saved.values.get(name, "")
    secret = kind_of(setting) is Kind.SECRET
    hidden = secret or holds_secret(value)
    fixed = living.fixed(setting)
    row: Json = {
        "name": name,
        "label": label_of(setting),
        "meaning": setting.meaning,
        "kind": "secret" if hidden else kind_of(setting).value,
        "choices": list(choices_of(setting)),
        "default": setting.default,
        "applies": setting.applies.value,
        "adds": setting.field in ADDING,
        "fixed": fixed,
        "value": shown(setting, value) or None,
        "set": stored is not None,
        "revision": living.revision(name),
        "problem": living.settled.left_out.get(name, ""),
        "advice": advice(setting, given.value if given else value),
        "source": "the default",
    }
    if stored is not None:
        row |= {"by": _who(site, stored.saved_by), "at": instant(stored.saved_at)}
        row["source"] = "saved here"
    if given is not None:
        row["given"] = {
            "value": shown(setting, given.value),
            "entries": entries(given.value) if kind_of(setting) is Kind.LIST else [],
            "secret": secret or holds_secret(given.value),
            "set": bool(given.value),
            "source": given.source.value,
        }
        row["source"] = given.source.value if fixed or stored is None else "added up"
    elif setting.applies is Applies.ENVIRONMENT:
        row["given"] = None
    return row


def _clash(site: Site, clash: Clash) -> Json:
    return {
        "name": clash.name,
        "by": _who(site, clash.by),
        "at": instant(clash.at) if clash.at else None,
        "value": clash.value,
        "revision": clash.revision,
    }


def _who(site: Site, person: str) -> str:
    return site.accounts.name(person) if person else "somebody"


def _said(changes: Mapping[str, Change]) -> list[str]:
    """When each part of what was saved takes effect, in words."""
    when: dict[str, list[str]] = {}
    for setting in table():
        if setting.name in changes:
            when.setdefault(setting.applies.value, []).append(label_of(setting))
    return [f"{', '.join(labels)}: {words}" for words, labels in when.items()]
