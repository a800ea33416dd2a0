"""The settings page: what it lists, what saving does, who is told what, and what never leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from core.store import web
from gateway.editors import Kind, kind_of
from gateway.keys import KEY_FILE
from gateway.living import Change
from gateway.setting import Applies
from gateway.settings_table import table
from tests.web.site import OWNER, Page

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECRET = "xoxb-this-is-never-seen"
API = "/api/settings"
EARLIER = [0]  # the last act before a test


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with Page(tmp_path_factory.mktemp("settings")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def page(shared: Page) -> Page:
    """A gateway in which nothing is saved and nothing was done yet."""
    living = shared.site.living
    await living.save({name: Change(None, living.revision(name)) for name in living.saved.rows}, "")
    EARLIER[0] = max([act.id for act in await web.acts(shared.site.parts.store, 2**62, 1)] or [0])
    return shared


@pytest_asyncio.fixture(loop_scope="module")
async def own(tmp_path: Path) -> AsyncIterator[Page]:
    """One that is started with other things around it."""
    async with Page(tmp_path) as running:
        yield running


async def rows(browser: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    answer = await browser.get(API)
    assert answer.status_code == 200
    return {row["name"]: row for group in answer.json()["groups"] for row in group["settings"]}


async def save(browser: httpx.AsyncClient, based: int | None = None, **more: Any) -> httpx.Response:
    """Save settings by their names without LANEWAY_, on what is there now or on ``based``."""
    sure = more.pop("sure", False)
    changes = {f"LANEWAY_{name}": value for name, value in more.items()}
    now = await rows(browser)
    revisions = {
        name: based if based is not None else now[name]["revision"]
        for name in changes
        if name in now
    }
    return await browser.post(API, json={"changes": changes, "based": revisions, "sure": sure})


async def audit(page: Page) -> list[web.Act]:
    found = await web.acts(page.site.parts.store, 2**62, 100)
    return [act for act in found if act.id > EARLIER[0]]


async def test_every_setting_has_a_name_a_meaning_a_source_and_an_editor(page: Page) -> None:
    ana = await page.signed_in("ana@example.org")
    listed = await rows(ana)
    assert list(listed) == [setting.name for setting in table()]
    for row in listed.values():
        assert all(row[part] for part in ("label", "meaning", "source"))
        assert row["kind"] in set(Kind)
        assert row["fixed"] or row["applies"] in set(Applies)
    labels = [(row["label"], row["kind"]) for row in listed.values()]
    assert len(listed) - len(set(labels)) == 2  # three platforms call it the bot token


async def test_the_page_is_for_admins(page: Page) -> None:
    ben = await page.signed_in("ben@example.org")
    assert (await ben.get("/settings")).status_code == 403
    assert (await ben.get(API)).status_code == 403
    refused = await ben.post(API, json={"changes": {"LANEWAY_MAX_TURNS": "2"}})
    assert refused.status_code == 403
    assert (await ben.post(f"{API}/test", json={"what": "telegram"})).status_code == 403


async def test_the_page_is_small(page: Page) -> None:
    ana = await page.signed_in("ana@example.org")
    shown = (await ana.get("/settings")).text
    size = len(shown)
    for name in ("page.css", "settings.css", "page.js", "settings.js"):
        size += len((await ana.get(f"/static/x/{name}")).content)
    assert size < 100_000


async def test_what_is_saved_is_there_after_a_restart(page: Page) -> None:
    ana = await page.signed_in("ana@example.org")
    assert (await save(ana, QUEUE_LIMIT="7", PREVIEW="off")).status_code == 200
    assert page.site.settings.queue_limit == 7
    await page.stop()
    await page.start()
    assert (page.site.settings.queue_limit, page.site.settings.preview) == (7, False)
    listed = await rows(await page.signed_in("ana@example.org"))
    row = listed["LANEWAY_QUEUE_LIMIT"]
    assert (row["value"], row["source"], row["by"]) == ("7", "saved here", "ana@example.org")


async def test_removing_what_was_saved_brings_the_default_back(page: Page) -> None:
    ana = await page.signed_in("ana@example.org")
    await save(ana, QUEUE_LIMIT="7")
    assert (await save(ana, QUEUE_LIMIT=None)).status_code == 200
    row = (await rows(ana))["LANEWAY_QUEUE_LIMIT"]
    assert (row["value"], row["set"], row["source"]) == (None, False, "the default")
    assert page.site.settings.queue_limit == 20


class TestSources:
    async def test_the_environment_goes_first_and_the_page_says_so(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        row = (await rows(ana))["LANEWAY_STOP_GRACE"]
        assert row["fixed"]
        assert row["given"]["value"] == "2s"
        assert row["source"] == "the environment"
        answer = await save(ana, STOP_GRACE="9s")
        assert answer.status_code == 422
        assert "set in the environment" in answer.json()["wrong"]["LANEWAY_STOP_GRACE"]

    async def test_what_was_saved_waits_below_the_environment(self, own: Page) -> None:
        ana = await own.signed_in("ana@example.org")
        await save(ana, QUEUE_LIMIT="7")
        await own.stop()
        own.settings["LANEWAY_QUEUE_LIMIT"] = "5"
        await own.start()
        ana = await own.signed_in("ana@example.org")
        row = (await rows(ana))["LANEWAY_QUEUE_LIMIT"]
        assert own.site.settings.queue_limit == 5
        assert (row["fixed"], row["given"]["value"], row["value"]) == (True, "5", "7")
        assert (await save(ana, QUEUE_LIMIT=None)).status_code == 200

    async def test_a_dotenv_file_of_the_home_is_named(self, tmp_path: Path) -> None:
        home = tmp_path / "home"
        home.mkdir(mode=0o700)
        (home / ".env").write_text("LANEWAY_PREVIEW=off\n")
        async with Page(tmp_path) as page:
            row = (await rows(await page.signed_in("ana@example.org")))["LANEWAY_PREVIEW"]
            assert row["source"].startswith(".env")

    async def test_lists_add_up_and_the_environments_part_stays(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        assert (await save(ana, ADMINS="telegram:700000009")).status_code == 200
        row = (await rows(ana))["LANEWAY_ADMINS"]
        assert row["given"]["entries"] == ["telegram:700000001"]
        assert row["value"] == "telegram:700000009"
        assert page.site.settings.admins == {"telegram:700000001", "telegram:700000009"}
        assert (await save(ana, ADMINS=None)).status_code == 200
        assert page.site.settings.admins == {"telegram:700000001"}

    @pytest.mark.parametrize("name", ["HOME", "WEB_HOST", "WEB_PORT"])
    async def test_what_a_start_needs_cannot_be_saved(self, page: Page, name: str) -> None:
        ana = await page.signed_in("ana@example.org")
        answer = await save(ana, None, **{name: "1234"})
        assert answer.status_code == 422
        assert "before the start" in answer.json()["wrong"][f"LANEWAY_{name}"]


class TestWrongValues:
    async def test_each_is_told_beside_its_field_and_nothing_is_saved(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        answer = await save(ana, MAX_TURNS="many", CATCH_UP="soon", QUEUE_LIMIT="3")
        assert answer.status_code == 422
        assert set(answer.json()["wrong"]) == {"LANEWAY_MAX_TURNS", "LANEWAY_CATCH_UP"}
        assert "duration like" in answer.json()["wrong"]["LANEWAY_CATCH_UP"]
        assert not page.site.living.saved.rows

    async def test_settings_that_do_not_fit_together_are_told(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        answer = await save(ana, SLACK_BOT_TOKEN=SECRET)
        assert answer.status_code == 422
        assert "LANEWAY_SLACK_APP_TOKEN" in answer.json()["wrong"]["LANEWAY_SLACK_BOT_TOKEN"]
        answer = await save(ana, FALLBACK_ENGINE="openai")
        assert "OPENAI" in answer.json()["wrong"]["LANEWAY_FALLBACK_ENGINE"]

    @pytest.mark.parametrize("value", ["gpt\nx", "a\u2028b", "x\x00"])
    async def test_a_sign_that_cannot_be_seen_is_refused(self, page: Page, value: str) -> None:
        ana = await page.signed_in("ana@example.org")
        answer = await save(ana, OPENAI_MODEL=value)
        assert "by hand" in answer.json()["wrong"]["LANEWAY_OPENAI_MODEL"]

    async def test_a_setting_that_is_none_is_refused(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        assert (await save(ana, NO_SUCH_THING="1")).status_code == 422

    @pytest.mark.parametrize(
        "body",
        [{"changes": []}, {"changes": {"LANEWAY_PREVIEW": 1}}, {"changes": {}, "based": 3},
         {"changes": {"LANEWAY_PREVIEW": "x" * 40_000}}],
    )  # fmt: skip
    async def test_a_body_of_another_shape_is_refused(self, page: Page, body: object) -> None:
        ana = await page.signed_in("ana@example.org")
        assert (await ana.post(API, json=body)).status_code == 400


class TestSecrets:
    async def test_one_goes_in_and_never_comes_out(
        self, page: Page, caplog: pytest.LogCaptureFixture
    ) -> None:
        ana = await page.signed_in("ana@example.org")
        answer = await save(ana, METRICS_TOKEN=SECRET)
        assert answer.status_code == 200
        assert page.site.settings.metrics_token.reveal() == SECRET
        row = (await rows(ana))["LANEWAY_METRICS_TOKEN"]
        assert (row["value"], row["set"], row["by"]) == (None, True, "ana@example.org")
        for seen in (answer.text, (await ana.get(API)).text, (await ana.get("/settings")).text):
            assert SECRET not in seen
        assert SECRET not in caplog.text
        acts = await audit(page)
        assert [(act.act, act.about, act.detail) for act in acts if act.act == "setting.saved"] == [
            ("setting.saved", "LANEWAY_METRICS_TOKEN", "set")
        ]
        (stored,) = page.site.living.saved.rows.values()
        assert SECRET not in stored.value
        database = b"".join(path.read_bytes() for path in page.home.glob("laneway.db*"))
        assert SECRET.encode() not in database

    async def test_the_password_of_an_address_is_a_secret_as_well(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        address = "http://ana:hunter2hunter2@127.0.0.1:9/v1"
        assert (await save(ana, TRANSCRIBE_URL=address)).status_code == 200
        assert page.site.settings.transcribe_url == address
        assert "hunter2" not in (await ana.get(API)).text
        assert "hunter2" not in str(await audit(page))
        assert "hunter2" not in str(page.site.living.saved.rows)
        assert (await rows(ana))["LANEWAY_TRANSCRIBE_URL"]["kind"] == "secret"

    async def test_one_is_removed(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        await save(ana, METRICS_TOKEN=SECRET)
        assert (await save(ana, METRICS_TOKEN=None)).status_code == 200
        assert not page.site.settings.metrics_token

    @pytest.mark.parametrize("key", [b"x" * 32, None, b"short"])
    async def test_with_another_key_file_it_counts_as_not_set_and_the_gateway_starts(
        self, own: Page, key: bytes | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        ana = await own.signed_in("ana@example.org")
        await save(ana, METRICS_TOKEN=SECRET, QUEUE_LIMIT="7")
        await own.stop()
        path = own.home / KEY_FILE
        path.unlink()
        if key:
            path.write_bytes(key)
        await own.start()
        assert not own.site.settings.metrics_token
        assert own.site.settings.queue_limit == 7
        assert "LANEWAY_METRICS_TOKEN was sealed with another key" in caplog.text
        ana = await own.signed_in("ana@example.org")
        said = (await ana.get(API)).json()
        assert any("LANEWAY_METRICS_TOKEN" in problem for problem in said["problems"])
        assert (await rows(ana))["LANEWAY_METRICS_TOKEN"]["problem"]
        answer = await save(ana, METRICS_TOKEN="another-one")
        if key == b"short":
            assert "cannot be kept safe" in answer.json()["wrong"]["LANEWAY_METRICS_TOKEN"]
        else:
            assert answer.status_code == 200
            assert own.site.settings.metrics_token.reveal() == "another-one"
            assert own.site.living.problems() == []

    async def test_one_of_another_setting_is_not_taken_for_it(self, own: Page) -> None:
        """A sealed value that was moved to another row opens nothing."""
        ana = await own.signed_in("ana@example.org")
        await save(ana, METRICS_TOKEN=SECRET)
        await own.site.parts.store.save(
            ("setting.save", {"name": "LANEWAY_TRANSCRIBE_API_KEY", "at": 5, "by": "web:eve",
             "value": own.site.living.saved.rows["LANEWAY_METRICS_TOKEN"].value})
        )  # fmt: skip
        await own.stop()
        await own.start()
        assert not own.site.settings.transcribe_api_key
        assert own.site.settings.metrics_token


class TestSeveralAdmins:
    async def test_the_later_save_does_not_undo_the_earlier_one(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        cleo = await page.signed_in("ana@example.org")
        assert (await save(ana, QUEUE_LIMIT="7")).status_code == 200
        answer = await save(cleo, 0, QUEUE_LIMIT="9", MAX_TURNS="2")
        assert answer.status_code == 409
        (clash,) = answer.json()["clashes"]
        assert (clash["name"], clash["value"]) == ("LANEWAY_QUEUE_LIMIT", "7")
        assert clash["by"] == "ana@example.org"
        assert clash["at"]
        assert page.site.settings.queue_limit == 7
        assert page.site.settings.max_turns == 8
        assert (await save(cleo, clash["revision"], QUEUE_LIMIT="9")).status_code == 200

    async def test_of_two_saves_in_the_same_moment_one_is_told_of_the_other(
        self, page: Page
    ) -> None:
        ana = await page.signed_in("ana@example.org")
        bodies = [
            {"changes": {"LANEWAY_QUEUE_LIMIT": value}, "based": {"LANEWAY_QUEUE_LIMIT": 0}}
            for value in ("7", "9")
        ]
        answers = await asyncio.gather(*(ana.post(API, json=body) for body in bodies))
        assert sorted(answer.status_code for answer in answers) == [200, 409]
        assert len([act for act in await audit(page) if act.act == "setting.saved"]) == 1

    async def test_different_settings_are_no_clash(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        assert (await save(ana, 0, QUEUE_LIMIT="7")).status_code == 200
        assert (await save(ana, 0, MAX_TURNS="2")).status_code == 200

    async def test_the_same_value_twice_is_no_clash_and_no_change(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        await save(ana, 0, QUEUE_LIMIT="7")
        assert (await save(ana, 0, QUEUE_LIMIT="7")).status_code == 200
        assert len([act for act in await audit(page) if act.act == "setting.saved"]) == 1

    async def test_a_removal_meanwhile_is_told_with_who_did_it(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        await save(ana, QUEUE_LIMIT="7")
        seen = (await rows(ana))["LANEWAY_QUEUE_LIMIT"]["revision"]
        await save(ana, QUEUE_LIMIT=None)
        answer = await save(ana, seen, QUEUE_LIMIT="9")
        (clash,) = answer.json()["clashes"]
        assert (clash["value"], clash["by"]) == (None, "ana@example.org")


class TestLockingOut:
    async def test_who_would_stop_being_an_admin_is_asked_first(self, tmp_path: Path) -> None:
        async with Page(tmp_path, LANEWAY_ADMIN_EMAILS="") as page:
            owner = await page.signed_in(OWNER)
            answer = await save(owner, ADMIN_EMAILS="dora@example.org")
            assert answer.status_code == 428
            assert "built-in owner is signed out" in answer.json()["warnings"][0]
            assert (await owner.get(API)).status_code == 200
            answer = await save(owner, ADMIN_EMAILS="dora@example.org", sure=True)
            assert answer.status_code == 200
            assert (await owner.get(API)).status_code == 401
            assert await page.site.accounts.listed(OWNER) == []
            dora = await page.signed_in("dora@example.org")
            answer = await save(dora, ADMIN_EMAILS=None)
            assert answer.status_code == 428
            assert "no admin any more" in answer.json()["warnings"][0]

    async def test_an_address_that_does_not_lead_here_is_asked_about(self, page: Page) -> None:
        ana = await page.signed_in("ana@example.org")
        answer = await save(ana, WEB_URL="https://elsewhere.example.org")
        assert answer.status_code == 428
        anew, elsewhere = answer.json()["warnings"]
        assert "signs in anew" in anew
        assert "elsewhere.example.org" in elsewhere
        assert page.site.settings.web_url == ""


async def test_a_saved_value_that_cannot_be_read_any_more_stops_no_start(
    own: Page, caplog: pytest.LogCaptureFixture
) -> None:
    await own.site.parts.store.save(
        ("setting.save", {"name": "LANEWAY_MAX_TURNS", "value": "lots", "at": 5, "by": "web:x"}),
        ("setting.save", {"name": "LANEWAY_OF_LATER", "value": "1", "at": 5, "by": "web:x"}),
        ("setting.save", {"name": "LANEWAY_SLACK_APP_TOKEN", "value": "x", "at": 5, "by": "web:x"}),
    )
    await own.stop()
    await own.start()
    assert own.site.settings.max_turns == 8
    assert not own.site.settings.slack_app_token
    problems = "\n".join(own.site.living.problems())
    for name in ("LANEWAY_MAX_TURNS must be", "LANEWAY_OF_LATER is no", "LANEWAY_SLACK_APP_TOKEN"):
        assert name in problems
        assert name in caplog.text


async def test_how_the_platforms_are_connected_is_told(page: Page) -> None:
    ana = await page.signed_in("ana@example.org")
    await save(ana, DISCORD_TOKEN="wrong", DISCORD_API_BASE="http://127.0.0.1:9")
    assert (await ana.get(f"{API}/connections")).json()["discord"]
    await save(ana, DISCORD_TOKEN=None)
    assert (await ana.get(f"{API}/connections")).json() == {}


async def test_what_changed_is_an_audit_row_with_the_old_and_the_new(page: Page) -> None:
    ana = await page.signed_in("ana@example.org")
    await save(ana, QUEUE_LIMIT="7")
    await save(ana, QUEUE_LIMIT="9")
    await save(ana, QUEUE_LIMIT=None)
    details = [act.detail for act in await audit(page) if act.about == "LANEWAY_QUEUE_LIMIT"]
    assert details == ["removed; was 9", "7 → 9", "7"]


async def test_secrets_of_all_kinds_are_write_only() -> None:
    secrets = {one.name for one in table() if kind_of(one) is Kind.SECRET}
    words = ("TOKEN", "SECRET", "KEY", "SMTP")
    assert secrets == {one.name for one in table() if any(word in one.name for word in words)}
