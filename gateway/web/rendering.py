"""Templates to pages, and the files that go with them. Everything is in memory after its first use.

It must not know what a page shows.
"""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from gateway.web.visitor import Visitor

_KEPT = "public, max-age=31536000, immutable"  # a file's address changes with what is in it


@dataclass(frozen=True, slots=True)
class Asset:
    """A style sheet, script or picture."""

    content: bytes
    kind: str
    digest: str


@dataclass(frozen=True, slots=True)
class Place:
    """One entry of the navigation."""

    path: str
    label: str
    admins: bool = False


PLACES = (
    Place("/chat", "Chat"),
    Place("/lanes", "Lanes"),
    Place("/jobs", "Jobs"),
    Place("/usage", "Usage"),
    Place("/people", "People", admins=True),
    Place("/settings", "Settings", admins=True),
    Place("/audit", "Audit", admins=True),
)


@cache
def assets() -> dict[str, Asset]:
    """Every file of static/, by name."""
    found = {}
    for file in files("gateway.web").joinpath("static").iterdir():
        if file.is_file():
            content = file.read_bytes()
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            if kind.startswith("text/"):
                kind += "; charset=utf-8"
            digest = hashlib.sha256(content).hexdigest()[:16]
            found[file.name] = Asset(content, kind, digest)
    return found


@cache
def _together() -> str:
    """Of all files: scripts load each other by name, so their address changes as one."""
    digests = "".join(asset.digest for _, asset in sorted(assets().items()))
    return hashlib.sha256(digests.encode()).hexdigest()[:12]


def asset_url(name: str) -> str:
    """Where a page finds a file; KeyError when there is none such."""
    assets()[name]
    return f"/static/{_together()}/{name}"


async def static(request: Request) -> Response:
    """A file of the page; the version in the address is only there to change."""
    asset = assets().get(request.path_params["name"])
    if asset is None:
        return Response("there is no such file", status_code=404)
    headers = {"Cache-Control": _KEPT, "ETag": f'"{asset.digest}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.kind, headers=headers)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("gateway.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["asset"] = asset_url
    return made


def html(
    request: Request, template: str, visitor: Visitor | None, status: int = 200, **values: Any
) -> HTMLResponse:
    """A page of a template; ``me`` is the visitor, ``places`` where they can go."""
    admin = visitor is not None and visitor.admin
    places = [place for place in PLACES if visitor and (admin or not place.admins)]
    text = (
        _environment()
        .get_template(template)
        .render(me=visitor, places=places, here=request.url.path, **values)
    )
    return HTMLResponse(text, status_code=status)
