"""Signing in with a code by mail: who gets one, what it is good for, and what nobody can tell."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from core.clock import SystemClock
from core.people import Role
from core.store import web
from core.store.store import Store
from gateway.web.signin import own_path
from tests.fakes.mail_server import MailServer
from tests.web.site import Page

ANA = "ana@example.org"
OFF = "code=900/15m,network=900/1h,failure=900/10m"


class Ahead(SystemClock):
    """The real clock, moved by ``ahead`` ms."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


@pytest_asyncio.fixture
async def server() -> AsyncIterator[MailServer]:
    async with MailServer() as running:
        yield running


@pytest_asyncio.fixture
async def page(tmp_path: Path, server: MailServer) -> AsyncIterator[Page]:
    """Behind a proxy on this machine, so that tests can come from anywhere."""
    async with Page(
        tmp_path,
        clock=Ahead(),
        LANEWAY_SMTP_URL=server.url,
        LANEWAY_TRUSTED_PROXIES="127.0.0.1",
    ) as running:
        yield running


def at(page: Page, address: str) -> httpx.AsyncClient:
    """A browser somewhere on the network."""
    return page.browser(**{"X-Forwarded-For": address})


async def start(browser: httpx.AsyncClient, address: str = ANA) -> httpx.Response:
    return await browser.post("/api/signin/start", json={"email": address})


async def verify(browser: httpx.AsyncClient, code: str, address: str = ANA) -> httpx.Response:
    return await browser.post("/api/signin/verify", json={"email": address, "code": code})


async def signed_in(browser: httpx.AsyncClient) -> bool:
    return (await browser.get("/api/session")).status_code == 200


async def acts(page: Page, act: str) -> list[web.Act]:
    return [one for one in await web.acts(page.site.parts.store, 2**62, 100) if one.act == act]


def shift(page: Page, seconds: float) -> None:
    assert isinstance(page.clock, Ahead)
    page.clock.ahead += round(seconds * 1000)


async def test_a_code_by_mail_signs_in_and_signing_out_ends_it(
    page: Page, server: MailServer
) -> None:
    browser = page.browser()
    assert not await signed_in(browser)
    assert (await start(browser)).status_code == 200
    answer = await verify(browser, server.code(await server.mail(0)))
    assert (answer.status_code, answer.json()["email"]) == (200, ANA)
    session = (await browser.get("/api/session")).json()
    assert (session["person"], session["role"]) == ("web:ana@example.org", "admin")
    kept = dict(browser.cookies)
    assert (await browser.post("/api/signout", json={})).status_code == 200
    assert not await signed_in(browser)
    browser.cookies.update(kept)
    assert not await signed_in(browser)  # ended here, not only forgotten by the browser
    assert [one.person for one in await acts(page, "signin.opened")] == ["web:ana@example.org"]
    assert len(await acts(page, "signin.closed")) == 1


async def test_an_address_is_one_however_it_is_spelled_and_another_mailbox_is_another(
    page: Page, server: MailServer
) -> None:
    for number, spelled in enumerate((" Ana@Example.ORG ", "ana@example.org")):
        browser = page.browser()
        await start(browser, spelled)
        answer = await verify(browser, server.code(await server.mail(number)), spelled)
        assert answer.json()["person"] == "web:ana@example.org"
    for other in ("ana+x@example.org", "nobody@members.example.org.evil.test"):
        assert (await start(page.browser(), other)).status_code == 200
    await start(page.browser(), "cleo@members.example.org")  # its whole domain is on the list
    await server.mail(2)
    assert server.recipients == [ANA, ANA, "cleo@members.example.org"]


WELL_FORMED = (
    "äna@example.org", "ana@exämple.org", "ana@example.org\u200b", "\uff41na@example.org",
    "@members.example.org", "x@y@members.example.org", "a b@members.example.org",
    '"x"@members.example.org', "ana@example.org,mal@evil.test", "x@sub.members.example.org",
    "ana@example.org@evil.test", "<ana@example.org>", "ana@example.org.",
    "\u212a@members.example.org",
)  # fmt: skip
MALFORMED = (
    "", "ana", "ana.example.org", "ana\n@example.org", "ana@example.org\r\nBcc: mal@evil.test",
    "ana@example.org\0", "ana@example.org\x7f", "ana\u2028@example.org", "a" * 250 + "@b.cd",
)  # fmt: skip


async def test_what_is_no_address_is_refused_and_what_only_looks_like_one_gets_no_mail(
    page: Page, server: MailServer
) -> None:
    for number, address in enumerate(WELL_FORMED):
        answer = await start(at(page, f"198.51.100.{number}"), address)
        assert (address, answer.status_code) == (address, 200)
    for address in MALFORMED:
        body = json.dumps({"email": address})
        for path, more in (("start", ""), ("verify", ', "code": "12345678"')):
            answer = await page.browser().post(
                f"/api/signin/{path}",
                content=body[:-1] + more + "}",
                headers={"Content-Type": "application/json"},
            )
            assert (address, answer.status_code) == (address, 400)
    for wrong in ({}, {"email": 7}, {"email": None}, {"email": [ANA]}):
        answer = await page.browser().post("/api/signin/start", json=wrong)
        assert answer.status_code == 400
    await start(at(page, "203.0.113.1"))
    await server.mail(0)
    assert server.recipients == [ANA]


async def test_nobody_can_tell_from_answers_who_is_known(page: Page, server: MailServer) -> None:
    async def seen(address: str, network: str) -> list[object]:
        browser, found = at(page, network), []
        for _ in range(4):  # one more than are sent
            found.append(await start(browser, address))
        for _ in range(7):
            found.append(await verify(browser, "00000000", address))
        return [(one.status_code, one.text, _fixed(one)) for one in found]

    known = await seen(ANA, "198.51.100.1")
    await server.stop()  # nor from a mail server that is down
    down = await seen(ANA, "198.51.100.2")
    unknown = await seen("nobody@example.org", "198.51.100.3")
    beyond = await seen("\u00e4na@example.org", "198.51.100.4")
    assert known == down == unknown == beyond


def _fixed(answer: httpx.Response) -> list[tuple[str, str]]:
    """Headers without what is random in them."""
    return [
        (name, value.partition("=")[0][:14] if name == "set-cookie" else value)
        for name, value in answer.headers.multi_items()
    ]


async def test_the_same_is_stored_for_known_and_unknown(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[list[str]] = []
    save = Store.save

    async def watched(self: Store, *rows: tuple[str, object]) -> None:
        stored.append(sorted(name for name, _ in rows))
        await save(self, *rows)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(Store, "save", watched)

    async def work(address: str, network: str) -> list[list[str]]:
        stored.clear()
        browser = at(page, network)
        await start(browser, address)
        await verify(browser, "00000000", address)
        return list(stored)

    await work("first@example.org", "198.51.100.9")  # tidies as well
    known = await work(ANA, "198.51.100.1")
    assert known == await work("nobody@example.org", "198.51.100.2")
    assert len(known) == 2


async def test_an_answer_does_not_wait_for_the_mail_server(tmp_path: Path) -> None:
    asked = asyncio.Event()
    server = MailServer(before=asked.wait)
    async with server, Page(tmp_path, LANEWAY_SMTP_URL=server.url) as page:
        browser = page.browser()
        assert (await start(browser)).status_code == 200
        assert not server.mails
        asked.set()
        assert (await verify(browser, server.code(await server.mail(0)))).status_code == 200


async def test_a_code_works_once_and_in_the_browser_that_asked_only(
    page: Page, server: MailServer
) -> None:
    browser = page.browser()
    await start(browser)
    code = server.code(await server.mail(0))
    await start(browser)
    newer = server.code(await server.mail(1))
    other = page.browser()
    assert (await verify(other, code)).status_code == 401
    await start(other)  # one that has asked for itself
    await server.mail(2)
    assert (await verify(other, code)).status_code == 401
    assert (await verify(browser, newer)).status_code == 200
    for used in (newer, code):  # the old one ends with the newer one
        assert (await verify(browser, used)).status_code == 401
    assert not await signed_in(other)


async def test_a_code_is_for_the_address_it_was_sent_to(page: Page, server: MailServer) -> None:
    browser = page.browser()
    await start(browser, "ben@example.org")
    code = server.code(await server.mail(0))
    assert (await verify(browser, code, ANA)).status_code == 401
    assert (await verify(browser, code, "ben@example.org")).json()["role"] == "member"


async def test_a_code_that_is_older_than_ten_minutes_is_refused(
    page: Page, server: MailServer
) -> None:
    browser = page.browser()
    await start(browser)
    code = server.code(await server.mail(0))
    shift(page, 601)
    assert (await verify(browser, code)).status_code == 401


async def test_neither_codes_nor_addresses_nor_names_of_browsers_are_stored(
    page: Page, server: MailServer
) -> None:
    browser = page.browser()
    await start(browser)
    code = server.code(await server.mail(0))
    await start(browser, "nobody@example.org")
    store = page.site.parts.store
    rows = [
        tuple(row) for query in ("asking.list", "tries.list") for row in await store.fetch(query)
    ]
    assert rows
    kept = [value for name, value in browser.cookies.items() if "asked" in name]
    assert kept
    for secret in (code, ANA, "nobody@example.org", "127.0.0.1", *kept):
        assert secret not in str(rows)


async def test_what_counts_no_more_is_not_kept(page: Page) -> None:
    for number in range(3):
        browser = at(page, f"198.51.100.{number}")
        await start(browser)
        await verify(browser, "00000000")
    store = page.site.parts.store

    async def kept() -> tuple[int, int]:
        return len(await store.fetch("asking.list")), len(await store.fetch("tries.list"))

    assert await kept() == (3, 10)  # of each network three counts, and the mails
    shift(page, 3700)
    await start(at(page, "198.51.100.9"))
    assert await kept() == (1, 3)


async def test_five_wrong_tries_end_the_code_and_say_so(
    page: Page, server: MailServer, caplog: pytest.LogCaptureFixture
) -> None:
    browser = at(page, "198.51.100.7")
    await start(browser)
    code = server.code(await server.mail(0))
    wrong = f"{(int(code) + 1) % 10**8:08}"
    with caplog.at_level(logging.WARNING, "laneway.signin"):
        first, *_, last = [await verify(browser, wrong) for _ in range(5)]
    right = await verify(browser, code)
    assert (first.status_code, last.status_code, right.status_code) == (401, 401, 401)
    assert "not right" in first.json()["error"]
    assert "ask for a new code" in right.json()["error"]
    assert right.json()["ask_again"] is True
    assert "sign-in as ana@example.org from 198.51.100.7: a wrong code" in caplog.text
    assert code not in caplog.text
    assert wrong not in caplog.text
    (refused,) = await acts(page, "signin.refused")  # one for a network and ten minutes
    assert refused.about == "198.51.100.7"
    await start(browser)
    assert (await verify(browser, server.code(await server.mail(1)))).status_code == 200


async def test_behind_a_proxy_each_network_has_its_own_limit(tmp_path: Path) -> None:
    async with Page(
        tmp_path, LANEWAY_TRUSTED_PROXIES="127.0.0.1", LANEWAY_SIGNIN_LIMITS="network=3/1h"
    ) as page:
        for client, other in (
            ("1.2.3.{n}, 198.51.100.7", "198.51.100.8"),  # what the client wrote is not looked at
            ("[2001:db8:1::{n}]:4711", "2001:db8:2::1"),
            ("::ffff:198.51.100.9, 127.0.0.1", "::ffff:198.51.100.10"),
            ("198.51.100.11:{n}", "198.51.100.12"),
        ):
            said = [(await start(at(page, client.format(n=n)))).status_code for n in range(1, 6)]
            assert (client, said) == (client, [200] * 3 + [429] * 2)
            assert (await start(at(page, other))).status_code == 200


async def test_only_a_trusted_proxy_is_believed(tmp_path: Path) -> None:
    async with Page(tmp_path, LANEWAY_SIGNIN_LIMITS="network=3/1h") as page:
        said = [(await start(at(page, f"198.51.100.{n}"))).status_code for n in range(4)]
        assert said == [200, 200, 200, 429]


async def test_too_many_failures_are_told_how_long_to_wait_and_a_restart_forgets_nothing(
    page: Page, server: MailServer
) -> None:
    browser = page.browser()
    await start(browser)
    code = server.code(await server.mail(0))
    said = [await verify(page.browser(), "00000000", f"x{n}@example.org") for n in range(11)]
    assert [answer.status_code for answer in said] == [401] * 10 + [429]
    assert 590 <= int(said[-1].headers["retry-after"]) <= 600
    assert (await verify(browser, code)).status_code == 429
    assert (await browser.post("/api/signin/link", json={"token": "x"})).status_code == 429
    await page.stop()
    await page.start()
    later = page.browser()
    later.cookies.update(browser.cookies)
    assert (await verify(later, code)).status_code == 429
    shift(page, 601)
    await start(later)
    assert (await verify(later, server.code(await server.mail(1)))).status_code == 200


async def test_a_restart_keeps_codes_and_how_often_somebody_asked(
    page: Page, server: MailServer
) -> None:
    browser = page.browser()
    for _ in range(3):
        await start(browser)
    code = server.code(await server.mail(2))
    await page.stop()
    await page.start()
    later = page.browser()
    later.cookies.update(browser.cookies)
    assert (await start(later)).status_code == 200
    assert (await verify(later, code)).status_code == 200
    assert len(server.mails) == 3


async def test_a_browser_that_was_signed_in_before_gets_in_whatever_its_network_did(
    page: Page, server: MailServer
) -> None:
    mine = page.browser()
    await start(mine)
    await verify(mine, server.code(await server.mail(0)))
    await mine.post("/api/signout", json={})
    (device,) = [value for name, value in mine.cookies.items() if name.endswith("device")]
    assert "ana" not in device
    for n in range(20):
        await start(page.browser(), f"x{n}@example.org")
        await verify(page.browser(), "00000000", f"x{n}@example.org")
    forged = page.browser()
    forged.cookies.set("laneway-device", device[:-4] + "0000")
    assert (await start(forged)).status_code == 429
    assert (await start(mine)).status_code == 200
    assert (await verify(mine, server.code(await server.mail(1)))).status_code == 200
    shift(page, 366 * 86_400)
    old = page.browser()
    old.cookies.set("laneway-device", device)
    assert page.site.signins._device(device) == ""


async def test_a_mail_has_no_address_that_signs_in_and_looking_changes_nothing(
    page: Page, server: MailServer
) -> None:
    browser = page.browser()
    await start(browser)
    mail = await server.mail(0)
    assert "http" not in mail.as_string()
    scanner = httpx.AsyncClient(
        base_url=page.url, follow_redirects=True, trust_env=False, verify=False
    )
    async with scanner:
        for path in ("/signin", "/signin/link", "/signin/link?token=x", "/api/signin/verify"):
            for method in ("HEAD", "GET", "GET"):
                answer = await scanner.request(method, path)
                assert answer.status_code in (200, 405)
        assert "laneway" not in scanner.cookies
        assert not await signed_in(scanner)
    assert (await verify(browser, server.code(mail))).status_code == 200


async def test_a_code_is_read_as_people_paste_it(tmp_path: Path, server: MailServer) -> None:
    async with Page(tmp_path, LANEWAY_SMTP_URL=server.url, LANEWAY_SIGNIN_LIMITS=OFF) as page:
        shapes = (" {c} ", "{a} {b}", "{a}-{b}", "{c}\n", "\u00a0{a}\u2013{b}", "\t{a}\r\n{b}")
        for number, shape in enumerate(shapes):
            browser = page.browser()
            await start(browser)
            code = server.code(await server.mail(number))
            typed = shape.format(a=code[:4], b=code[4:], c=code)
            assert (shape, (await verify(browser, typed)).status_code) == (shape, 200)
        browser = page.browser()
        await start(browser)
        code = server.code(await server.mail(len(shapes)))
        for typed in (code[1:], code[:-1], f"0{code}", f"{code}0", f"+{code}", f"{code}.5e0"):
            browser = page.browser()
            await start(browser)
            assert (await verify(browser, typed)).status_code == 401
        for bad in ("", " - ", "1" * 10_000, None, 12345678):
            answer = await browser.post("/api/signin/verify", json={"email": ANA, "code": bad})
            assert answer.status_code == 400
        wide = "".join(chr(0xFF10 + int(digit)) for digit in code)
        assert (await verify(browser, wide)).status_code in (200, 401)


async def test_a_zero_in_front_is_part_of_the_code(
    page: Page, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.web.signins.secrets.randbelow", lambda _: 42917)
    browser = page.browser()
    await start(browser)
    assert server.code(await server.mail(0)) == "00042917"
    assert (await verify(browser, "42917")).status_code == 401
    wide = "".join(chr(0xFF10 + int(digit)) for digit in "00042917")
    assert (await verify(browser, wide)).status_code == 200


async def test_two_tabs_that_ask_at_once_can_both_use_the_last_mail(
    tmp_path: Path, server: MailServer
) -> None:
    async with Page(tmp_path, LANEWAY_SMTP_URL=server.url, LANEWAY_SIGNIN_LIMITS=OFF) as page:
        for number in range(20):
            browser = page.browser()  # that has not even seen the page
            if number % 2:
                await browser.get("/signin")
            answers = await asyncio.gather(start(browser), start(browser))
            assert [answer.status_code for answer in answers] == [200, 200]
            last = await server.mail(2 * number + 1)
            assert (await verify(browser, server.code(last))).status_code == 200
            assert await signed_in(browser)


async def test_signing_in_is_for_pages_of_our_own_and_for_json_only(page: Page) -> None:
    for path in ("start", "verify", "link"):
        where = f"/api/signin/{path}"
        body = {"email": ANA, "code": "12345678", "token": "x"}
        foreign = {"Origin": "https://evil.test"}
        assert (await page.browser().post(where, json=body, headers=foreign)).status_code == 403
        assert (await page.browser().post(where, data=body)).status_code == 415
        none = httpx.AsyncClient(base_url=page.url, trust_env=False, verify=False)
        async with none:
            assert (await none.post(where, json=body)).status_code == 403
            same = {"Sec-Fetch-Site": "same-origin"}
            assert (await none.post(where, json=body, headers=same)).status_code in (200, 401)


@pytest.mark.parametrize(
    ("wanted", "goes"),
    [
        ("/jobs", "/jobs"),
        ("/chat/main?x=1#end", "/chat/main?x=1#end"),
        *((evil, "/") for evil in (
            "", "//evil.test", "/\\evil.test", "https://evil.test", "javascript:alert(1)",
            "/\t/evil.test", "/\n/evil.test", "\\\\evil.test", "evil.test", "/a\\b", " //evil.test",
            "/signin?next=/signin", "/\u2028x", "/" + "a" * 3000,
        )),
    ],
)  # fmt: skip
def test_after_signing_in_one_stays_here(wanted: str, goes: str) -> None:
    assert own_path(wanted) == goes


async def test_who_is_signed_in_already_is_led_on(page: Page) -> None:
    ana = await page.signed_in(ANA)
    answer = await ana.get("/signin", params={"next": "/jobs"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")
    answer = await ana.get("/signin", params={"next": "//evil.test"})
    assert answer.headers["location"] == "/"


async def test_the_page_carries_the_way_on_and_nothing_of_it_is_markup(page: Page) -> None:
    text = (await page.browser().get("/signin", params={"next": '/"><b>'})).text
    assert 'data-onward="/&#34;&gt;&lt;b&gt;"' in text
    assert 'autocomplete="one-time-code"' in text


async def test_cookies_that_are_none_of_ours_are_nothing(page: Page, server: MailServer) -> None:
    browser = page.browser()
    asked = await start(browser)
    ours = asked.headers["set-cookie"].partition(";")[0]
    strange = (
        "laneway-asked(=x", "laneway-asked-0000000g=x", "laneway-asked-00000000=\u00e4",
        "laneway=x", "laneway-device=\u00e4.1.x", "=", ";;", "x" * 4000,
        "laneway-device=" + "0" * 32 + ".1." + "0" * 64,
    )  # fmt: skip
    answer = await browser.post(
        "/api/signin/verify",
        json={"email": ANA, "code": server.code(await server.mail(0))},
        headers={b"Cookie": "; ".join((*strange, ours)).encode("latin-1")},
    )
    assert answer.status_code == 200


async def test_by_https_cookies_are_for_this_host_and_never_sent_in_the_clear(
    tmp_path: Path, server: MailServer
) -> None:
    async with Page(
        tmp_path, LANEWAY_SMTP_URL=server.url, LANEWAY_WEB_URL="https://lab.example.org"
    ) as page:
        browser = page.browser(Origin="https://lab.example.org")
        asked = await start(browser)
        # A client that keeps https cookies to https needs help to send them here.
        sent = "; ".join(one.split(";")[0] for one in asked.headers.get_list("set-cookie"))
        answer = await browser.post(
            "/api/signin/verify",
            json={"email": ANA, "code": server.code(await server.mail(0))},
            headers={"Cookie": sent},
        )
        assert answer.status_code == 200
        cookies = answer.headers.get_list("set-cookie")
        assert any(one.startswith("__Host-laneway=") for one in cookies)
        assert any(one.startswith("__Host-laneway-device=") for one in cookies)
        for one in (*cookies, *asked.headers.get_list("set-cookie")):
            assert one.startswith("__Host-")
            assert {"HttpOnly", "Secure", "Path=/", "SameSite=lax"} <= set(one.split("; "))
            assert "Domain" not in one


async def test_a_sign_in_ends_with_the_right_to_be_here(page: Page) -> None:
    ben = await page.signed_in("ben@example.org")
    assert await signed_in(ben)
    people = page.site.parts.people
    lists = people.lists
    people.lists = type(lists)(admin_emails=frozenset({ANA}))
    assert people.role("web:ben@example.org") is Role.NONE
    assert not await signed_in(ben)
    people.lists = lists
    assert await signed_in(ben)


async def test_a_sign_in_lasts_while_it_is_used_and_half_a_year_at_most(page: Page) -> None:
    day = 86_400
    often, seldom = await page.signed_in(ANA), await page.signed_in(ANA)
    for _ in range(6):
        shift(page, 29 * day)
        assert await signed_in(often)
        await page.site.parts.store.save(web.remove_signin("nobody's"))  # stored after the visit
    assert not await signed_in(seldom)
    shift(page, 7 * day)
    assert not await signed_in(often)


async def test_a_visit_does_not_bring_back_a_sign_in_that_was_ended_meanwhile(page: Page) -> None:
    ana, accounts = await page.signed_in(ANA), page.site.accounts
    (row,) = await accounts.listed("web:ana@example.org")
    shift(page, 7200)
    visit = asyncio.create_task(signed_in(ana))
    await accounts.close(row.id, row.person)
    await visit
    assert not await signed_in(ana)
    assert not await accounts.listed(row.person)


async def test_signing_in_anew_ends_what_the_browser_had(page: Page, server: MailServer) -> None:
    browser = page.browser()
    for number in range(2):
        await start(browser)
        await verify(browser, server.code(await server.mail(number)))
    assert len(await page.site.accounts.listed("web:ana@example.org")) == 1
