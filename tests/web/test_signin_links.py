"""Links that sign in once: whoever can read the home makes them, and nobody else."""

from __future__ import annotations

import argparse
import asyncio
import logging
from pathlib import Path

import httpx
import pytest

from core.store import web
from gateway.cli import signin as command
from gateway.cli.client import talk
from gateway.signin_links import hash_of
from gateway.socket_path import socket_path
from gateway.trouble import Trouble
from tests.web.signing import Ahead, acts, shift, signed_in
from tests.web.site import ANA, OWNER, Page


async def follow(browser: httpx.AsyncClient, token: str) -> httpx.Response:
    return await browser.post("/api/signin/link", json={"token": token})


async def asked(page: Page, email: str = "") -> dict[str, str]:
    """What the command gets from the running gateway."""
    assert socket_path(page.home).exists()
    async with talk(page.home) as gateway:
        assert gateway is not None
        gateway.send({"do": "signin", "email": email})
        async for answer in gateway.answers():
            found: dict[str, str] = answer["result"]
            return found
    raise AssertionError("no answer")


def token_of(address: str) -> str:
    return address.partition("#token=")[2]


async def test_a_link_of_a_start_signs_the_owner_in_once_and_until_the_next_start(
    tmp_path: Path,
) -> None:
    async with Page(tmp_path, LANEWAY_ADMIN_EMAILS="") as page:
        token, browser = page.gateway.owner_token, page.browser()
        assert (await follow(browser, token)).json()["person"] == OWNER
        assert (await browser.get("/api/session")).json()["role"] == "admin"
        assert (await follow(page.browser(), token)).status_code == 401
        await page.stop()
        await page.start()
        second = page.gateway.owner_token
        await page.stop()
        await page.start()
        assert (await follow(page.browser(), second)).status_code == 401
        assert (await follow(page.browser(), page.gateway.owner_token)).status_code == 200
        assert len(await acts(page, "signin.link_made")) == 3
        stored = await page.site.parts.store.fetch("signin_link.one", id=hash_of(second))
        assert not stored


async def test_two_requests_at_once_with_one_link_are_one_sign_in(tmp_path: Path) -> None:
    async with Page(tmp_path, LANEWAY_ADMIN_EMAILS="") as page:
        token = page.gateway.owner_token
        answers = await asyncio.gather(*(follow(page.browser(), token) for _ in range(8)))
        assert sorted(answer.status_code for answer in answers) == [200] + [401] * 7


async def test_the_command_signs_in_who_is_on_a_list_for_ten_minutes_and_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with Page(tmp_path, clock=Ahead()) as page:
            links = [await asked(page, " Ben@Example.ORG ") for _ in range(3)]
            assert links[0]["address"].startswith(f"{page.url}/signin/link#token=")
            assert {link["person"] for link in links} == {"web:ben@example.org"}
            first, second, third = (token_of(link["address"]) for link in links)
            assert (await follow(page.browser(), second)).json()["role"] == "member"
            shift(page, 599)
            assert (await follow(page.browser(), first)).status_code == 200
            shift(page, 2)
            assert (await follow(page.browser(), third)).status_code == 401
            for token in (first, second, third):
                assert token not in caplog.text
                assert token not in str(
                    [tuple(row) for row in await page.site.parts.store.fetch("link.list")]
                )


@pytest.mark.parametrize(
    ("email", "words"),
    [
        ("", "say for whom"),  # the owner is nobody beside a named admin
        ("mal@evil.test", "on no list"),
        ("@members.example.org", "on no list"),
        ("ben", "has no @"),
        ("x@y@members.example.org", "on no list"),
        ("bän@members.example.org", "on no list"),
    ],
)
async def test_the_command_says_in_plain_words_for_whom_there_is_no_link(
    tmp_path: Path, email: str, words: str
) -> None:
    async with Page(tmp_path) as page:
        assert page.gateway.owner_token == ""
        with pytest.raises(Trouble, match=words):
            await asked(page, email)


def run(home: Path, monkeypatch: pytest.MonkeyPatch, email: str = "", **settings: str) -> int:
    monkeypatch.chdir(home.parent)
    for name, value in {"LANEWAY_HOME": str(home), **settings}.items():
        monkeypatch.setenv(name, value)
    return command.main(argparse.Namespace(email=email))


async def test_a_link_made_while_the_gateway_is_down_is_good_when_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Page(tmp_path)
    with pytest.raises(Trouble, match="on no list"):
        await asyncio.to_thread(run, page.home, monkeypatch, ANA.partition(":")[2])
    async with page:
        await page.stop()
        capsys.readouterr()
        public = {
            "LANEWAY_ADMIN_EMAILS": "ana@example.org",
            "LANEWAY_WEB_URL": "https://lab.example.org",
        }
        assert (
            await asyncio.to_thread(run, page.home, monkeypatch, "ana@example.org", **public) == 0
        )
        address, once, down = capsys.readouterr().out.splitlines()
        assert address.startswith("https://lab.example.org/signin/link#token=")
        assert "as ana@example.org" in once
        assert "is down" in down
        with pytest.raises(Trouble, match="say for whom"):
            await asyncio.to_thread(run, page.home, monkeypatch)
        monkeypatch.delenv("LANEWAY_WEB_URL")
        monkeypatch.setenv("LANEWAY_WEB_PORT", "0")
        with pytest.raises(Trouble, match="only known while the gateway runs"):
            await asyncio.to_thread(run, page.home, monkeypatch, "ana@example.org")
        await page.start()
        assert (await follow(page.browser(), token_of(address))).json()["role"] == "admin"


async def test_the_owner_is_out_as_soon_as_an_admin_has_an_address_and_stays_out(
    tmp_path: Path,
) -> None:
    async with Page(tmp_path, LANEWAY_ADMIN_EMAILS="") as page:
        unused = token_of((await asked(page))["address"])
        owner = page.browser()
        await follow(owner, page.gateway.owner_token)
        kept = dict(owner.cookies)
        assert await signed_in(owner)
        await page.stop()
        page.settings["LANEWAY_ADMIN_EMAILS"] = "ana@example.org"
        await page.start()
        later = page.browser()
        later.cookies.update(kept)
        assert not await signed_in(later)
        assert (await follow(page.browser(), unused)).status_code == 401
        await page.stop()
        page.settings["LANEWAY_ADMIN_EMAILS"] = ""
        await page.start()
        later = page.browser()
        later.cookies.update(kept)
        assert not await signed_in(later)


async def test_failures_of_others_in_the_network_do_not_shut_the_owner_out(
    tmp_path: Path,
) -> None:
    async with Page(tmp_path, LANEWAY_ADMIN_EMAILS="") as page:
        said = [(await follow(page.browser(), "wrong")).status_code for _ in range(11)]
        assert said == [401] * 10 + [429]
        assert (await follow(page.browser(), page.gateway.owner_token)).status_code == 200


async def test_looking_at_a_link_changes_nothing_and_what_is_no_token_is_refused(
    tmp_path: Path,
) -> None:
    async with Page(tmp_path, LANEWAY_ADMIN_EMAILS="") as page:
        token = page.gateway.owner_token
        for method in ("HEAD", "GET", "GET"):
            browser = page.browser()
            answer = await browser.request(method, f"/signin/link?token={token}")
            assert answer.status_code == 200
            assert not browser.cookies
        for body in ({}, {"token": ""}, {"token": 7}, {"token": "x" * 500}):
            assert (await page.browser().post("/api/signin/link", json=body)).status_code == 400
        for wrong in ("x", hash_of(token), token[:-1], token.swapcase()):
            assert (await follow(page.browser(), wrong)).status_code == 401
        assert (await follow(page.browser(), token)).status_code == 200
        (refused,) = await acts(page, "signin.refused")
        assert refused.detail == "a wrong link"
        assert all(token not in f"{act}" for act in await _all(page))


async def _all(page: Page) -> list[web.Act]:
    return await web.acts(page.site.parts.store, 2**62, 100)
