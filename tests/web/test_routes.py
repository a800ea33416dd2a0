"""A walk over all routes: each is for whom its rule says, and takes what its rule says."""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from docs.web_routes import table
from gateway.web import access, app
from gateway.web.access import READING, Kind, Rule, Who, cookie_name, rule_of
from tests.web.direct import Walker
from tests.web.site import Page
from tests.web.wire import Answer

JSON = {"content_type": "application/json"}
METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS")
ODD = (
    {},
    {"lane": 5, "id": {}, "text": [], "email": None, "code": 10**400, "names": 1, "changes": "x"},
    {"lane": "\ud800", "id": "\0", "text": "\ud800", "email": "\0@", "code": "²", "when": "\0"},
    dict.fromkeys(("id", "job", "seq", "lane", "turn", "before", "count", "from", "at"), 10**30),
    {name: [[["x"]]] for name in ("id", "job", "lane", "turn", "press", "choice", "files", "when")},
    {"person": "web:", "place": ":", "account": [], "settings": {"LANEWAY_HOME": {}}, "token": 1},
)
ENDLESS = "/api/events"  # until the browser leaves
QUERY = ("lane", "person", "before", "after", "page", "since", "within", "next", "act", "at", "q")


@dataclass
class House:
    """The page of a running gateway, and who walks through it."""

    page: Page
    made: Starlette

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.page.gateway.web_port}"

    @property
    def nobody(self) -> Walker:
        return Walker(self.made, self.host)

    async def of(self, mailbox: str) -> Walker:
        """A browser in which somebody has just signed in."""
        token = await self.page.site.accounts.open(f"web:{mailbox}@example.org", "a test")
        return Walker(self.made, self.host, f"{cookie_name(False)}={token}")


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with Page(tmp_path) as page:
        yield House(page, app.application(page.site))


def rules() -> Iterator[tuple[str, Rule]]:
    """Each route with an address that fits it."""
    for route in app.all_routes():
        path = re.sub(r"\{\w+:int\}", "999", route.path)
        path = path.replace("{lane}", "local:nowhere").replace("{channel}", "telegram")
        yield re.sub(r"\{\w+\}", "none", path), rule_of(route)


def reading() -> list[tuple[str, Rule]]:
    return [(path, rule) for path, rule in rules() if rule.methods <= READING]


def changing() -> list[tuple[str, Rule]]:
    return [(path, rule) for path, rule in rules() if not rule.methods <= READING]


async def status(walker: Walker, method: str, path: str, **more: Any) -> int:
    return (await answer_to(walker, method, path, **more)).status


async def answer_to(walker: Walker, method: str, path: str, **more: Any) -> Answer:
    """With what holds for all answers."""
    answer = await walker.ask(method, path, **more)
    assert answer.status not in (0, 500), (method, path, more)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert b"Traceback" not in answer.body
    return answer


def words(answer: Answer) -> str:
    """What a program is told is wrong."""
    said: str = json.loads(answer.body)["error"]
    return said


async def test_nobody_reads_what_is_for_somebody(house: House) -> None:
    for path, rule in reading():
        answer = await answer_to(house.nobody, "GET", path)
        if rule.who is Who.ANYONE:
            assert answer.status in (200, 404), path
        elif rule.kind is Kind.PAGE:
            assert answer.status == 303, path
            assert answer.headers["location"].startswith("/signin?next=/"), path
        else:
            assert answer.status == 401, path
            assert "not signed in" in words(answer)


async def test_members_read_what_is_theirs_and_admins_everything(house: House) -> None:
    ben, ana = await house.of("ben"), await house.of("ana")
    for path, rule in reading():
        refused = rule.who is Who.ADMINS
        assert (await status(ben, "GET", path) == 403) == refused, path
        assert await status(ana, "GET", path) in (200, 303, 400, 404), path


async def test_a_head_is_answered_as_its_get(house: House) -> None:
    ana = await house.of("ana")
    for path, _ in reading():
        there = 200 if path == ENDLESS else await status(ana, "GET", path)
        assert await status(ana, "HEAD", path) == there, path


async def test_other_methods_are_refused_in_plain_words(house: House) -> None:
    taken: defaultdict[str, set[str]] = defaultdict(set)
    for path, rule in rules():
        taken[path] |= rule.methods
    ana = await house.of("ana")
    for path, methods in taken.items():
        for method in METHODS:
            if method not in methods:
                answer = await answer_to(ana, method, path, body=b"{}", **JSON)
                assert answer.status == 405, (method, path)
                assert "cannot be used like that" in words(answer)
                assert answer.headers["allow"]


async def test_a_change_needs_the_right_and_the_own_origin(house: House) -> None:
    nobody, ben, ana = house.nobody, await house.of("ben"), await house.of("ana")
    for path, rule in changing():
        if rule.who is Who.ANYONE and rule.kind is Kind.RAW:
            continue  # it proves itself in another way; see the tests of hooks
        for walker in (nobody, ben, ana):
            for origin in ("https://evil.example", "null", f"https://{house.host}", ""):
                if not origin and rule.who is Who.ANYONE:
                    continue  # no browser says nothing; see the tests of signing in
                headers = {**JSON, "origin": origin, "body": b"{}"}
                assert await status(walker, "POST", path, **headers) == 403, (path, origin)
        if rule.who is not Who.ANYONE:
            assert await status(nobody, "POST", path, body=b"{}", **JSON) == 401, path
        if rule.who is Who.ADMINS:
            assert await status(ben, "POST", path, body=b"{}", **JSON) == 403, path


async def test_a_change_is_json_of_a_bounded_length(house: House) -> None:
    ana = await house.of("ana")
    for path, rule in changing():
        if rule.kind is Kind.RAW:
            continue
        for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            answer = await answer_to(ana, "POST", path, body=b"{}", content_type=kind)
            assert answer.status == 415, (path, kind)
        for body in (b"{", b"[]", b'"x"', b"\xff", b"[" * 50_000, b"nul"):
            assert await status(ana, "POST", path, body=body, **JSON) == 400, path
        length = str(rule.body + 1)
        claimed = {**JSON, "content_length": length, "body": b"{"}
        assert await status(ana, "POST", path, **claimed) == 413, path
        pieces = [b" " * rule.body, b" "]
        assert await status(ana, "POST", path, body=pieces, **JSON) == 413, path


async def test_odd_values_break_nothing(house: House) -> None:
    broken = []
    for path, rule in changing():
        if rule.kind is not Kind.RAW:
            ana = house.nobody if rule.who is Who.ANYONE else await house.of("ana")
            for odd in ODD:
                said = json.dumps(odd)
                plain = json.dumps(odd, ensure_ascii=False).encode("utf-8", "surrogatepass")
                for body in (said.encode(), plain, said.encode("utf-16")):
                    answer = await ana.ask("POST", path, body, **JSON)
                    if answer.status in (0, 500):
                        broken.append((path, body))
    assert not broken


async def test_odd_addresses_break_nothing(house: House) -> None:
    ana = await house.of("ana")
    broken = []
    numbers = ("-1", "9" * 40, "9" * 5000)
    for route in app.all_routes():
        if not rule_of(route).methods <= READING:
            continue
        for odd in ("%00", "%ff%fe", "..%2f..%2f", "%F0%9F%92%A9", "x" * 3000, *numbers):
            path = re.sub(r"\{\w+(:int)?\}", odd, route.path)
            query = "&".join(f"{name}={odd}" for name in QUERY)
            for one in (path, f"{path}?{query}"):
                if (await ana.ask("GET", one)).status in (0, 500):
                    broken.append(one[:100])
    assert not broken


async def test_a_fault_is_told_in_plain_words_and_logged_once(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(*_: object) -> Response:
        raise KeyError("a secret of ours")

    def routes() -> list[Route]:
        return [access.open_api("/api/x", breaks), access.page("/x", breaks, Who.ANYONE)]

    monkeypatch.setattr(app, "AREAS", (routes,))
    nobody = Walker(app.application(house.page.site), house.host)
    with caplog.at_level(logging.ERROR):
        told = await nobody.ask("GET", "/api/x")
        shown = await nobody.ask("GET", "/x", accept="text/html,*/*")
    assert told.status == shown.status == 500
    assert "log says what" in words(told)
    assert b"<h1>That did not work</h1>" in shown.body
    for one in (told, shown):
        assert b"secret of ours" not in one.body
        assert one.headers["x-frame-options"] == "DENY"
    broke = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert broke == ["GET /api/x broke", "GET /x broke"]


async def test_what_is_not_there_is_told_to_people_and_to_programs(house: House) -> None:
    seen = await answer_to(house.nobody, "GET", "/no/such", accept="text/html")
    told = await answer_to(house.nobody, "GET", "/no/such")
    assert seen.status == told.status == 404
    assert b"There is nothing here" in seen.body
    assert "nothing here" in words(told)


@pytest.mark.parametrize(
    ("path", "leads"),
    [("/jobs/", "/jobs"), ("/api/jobs/", "/api/jobs"), ("//evil.test/", ""), ("/.//evil/", "")],
)
async def test_a_slash_too_many_leads_to_the_page_and_never_elsewhere(
    house: House, path: str, leads: str
) -> None:
    walker = Walker(house.made, "evil.test")
    answer = await answer_to(walker, "GET", path)
    assert answer.headers.get("location", "") == leads
    assert await status(walker, "POST", path, body=b"{}", **JSON) == 404


def test_the_table_of_routes_is_current() -> None:
    book = Path(__file__).parents[2] / "docs" / "web-routes.md"
    assert book.read_text("utf-8") == table(), "run make routes"
