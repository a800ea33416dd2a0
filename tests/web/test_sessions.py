"""Being signed in: the cookies, who may ask for them, where one is led, and how long it lasts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from core.people import Role
from core.store import web
from gateway.web.signin import own_path
from tests.fakes.mail_server import MailServer
from tests.web.signing import ANA, page, server, shift, signed_in, start, verify
from tests.web.site import Page

__all__ = ["page", "server"]


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


async def test_signing_in_is_for_pages_of_our_own_and_for_json_only(page: Page) -> None:
    for path in ("start", "verify", "link"):
        where = f"/api/signin/{path}"
        body = {"email": ANA, "code": "12345678", "token": "x"}
        foreign = {"Origin": "https://evil.test"}
        assert (await page.browser().post(where, json=body, headers=foreign)).status_code == 403
        assert (await page.browser().post(where, data=body)).status_code == 415
        none = httpx.AsyncClient(base_url=page.url, trust_env=False, verify=False)
        async with none:
            for site in ("cross-site", "same-site", "none"):
                other = {"Sec-Fetch-Site": site}
                assert (await none.post(where, json=body, headers=other)).status_code == 403
            assert (await none.post(where, data=body)).status_code == 415
            for own in ({"Sec-Fetch-Site": "same-origin"}, {}):  # {}: no browser
                assert (await none.post(where, json=body, headers=own)).status_code in (200, 401)


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


async def test_whoever_sits_at_the_machine_uses_the_page_beside_its_public_address(
    tmp_path: Path,
) -> None:
    async with Page(tmp_path, LANEWAY_WEB_URL="https://lab.example.org") as page:
        body = {"email": ANA}
        port = page.gateway.web_port

        async def asked(origin: str, **headers: str) -> int:
            browser = page.browser(**{"Origin": origin, **headers})
            return (await browser.post("/api/signin/start", json=body)).status_code

        assert await asked(page.url) == 200
        assert await asked("https://lab.example.org") == 200
        assert await asked(f"http://localhost:{port}", Host=f"localhost:{port}") == 200
        by_a_proxy = {"X-Forwarded-For": "198.51.100.7"}
        assert await asked(page.url, **by_a_proxy) == 403
        assert await asked("https://lab.example.org", **by_a_proxy) == 200
        for other in (f"https://127.0.0.1:{port}", "http://127.0.0.1", "http://localhost", ""):
            assert await asked(other) == 403, other
        for host in ("evil.test", "127.0.0.1.evil.test", "127.0.0.1@evil.test"):
            assert await asked(f"http://{host}", Host=host) == 403, host


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
