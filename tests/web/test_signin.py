"""Signing in with a code by mail: who gets one, what it is good for, and what nobody can tell."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import httpx
import pytest

from core.store.store import Store
from gateway.web import signins
from tests.fakes.mail_server import MailServer
from tests.web.signing import ANA, OFF, acts, at, page, server, shift, signed_in, start, verify
from tests.web.site import Page

__all__ = ["page", "server"]


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


async def test_failures_from_many_networks_do_not_bury_what_people_did(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signins, "REFUSALS_MOST", 3)
    for n in range(6):
        await verify(at(page, f"2001:db8:{n}::1"), "00000000")
    assert len(await acts(page, "signin.refused")) == 3
    shift(page, 3600)
    await verify(at(page, "2001:db8:7::1"), "00000000")
    assert len(await acts(page, "signin.refused")) == 4


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
