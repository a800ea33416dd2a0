"""Settings of a gateway that runs: each is applied as the table says, nothing else is touched."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from channels import registry
from core import delivering
from core.store import reads
from core.store.records import TurnRow
from core.store.store import Store
from gateway import app, logs, switched, tending
from gateway.channel_parts import wanted_channels
from gateway.living import Change
from gateway.paths import DATABASE
from gateway.setting import Applies, Setting
from gateway.settings_table import Settings, table
from tests import log_levels
from tests.end_to_end.house import until
from tests.fakes.discord import FakeDiscord
from tests.fakes.slack import FakeSlack
from tests.fakes.telegram import ANA, TOKEN, FakeTelegram
from tests.web.site import Page

OTHER = "800000001:OTHERtokenOTHERtokenOTHERtokenOTHERto"


@pytest_asyncio.fixture
async def fake() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as running:
        yield running


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "PAUSES", (0.05,))
    monkeypatch.setattr(switched, "HELD", 0.05)
    monkeypatch.setattr(tending, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(app, "FLUSH", 0.05)


@pytest_asyncio.fixture
async def page(tmp_path: Path, fake: FakeTelegram) -> AsyncIterator[Page]:
    async with Page(tmp_path, LANEWAY_TELEGRAM_API_BASE=fake.url, LANEWAY_STOP_GRACE="") as running:
        yield running


async def save(page: Page, **values: str | None) -> Settings:
    living = page.site.living
    changes = {
        f"LANEWAY_{name}": Change(value, living.revision(f"LANEWAY_{name}"))
        for name, value in values.items()
    }
    return await living.save(changes, "web:ana@example.org")


def up(page: Page, name: str = "telegram") -> bool:
    found = page.site.parts.intake.connections.get(name)
    return found is not None and found.up


async def ended(store: Store) -> list[TurnRow]:
    found = [await reads.turn(store, number) for number in (1, 2)]
    return [turn for turn in found if turn is not None and turn.status.over]


def waiting(page: Page) -> bool:
    view = page.site.parts.runner.view(f"telegram:{ANA}")
    return view is not None and bool(view.waiting)


class TestChannels:
    async def test_a_token_that_is_saved_connects_its_platform(
        self, page: Page, fake: FakeTelegram
    ) -> None:
        assert page.site.reasons() == []
        await save(page, TELEGRAM_TOKEN=TOKEN)
        fake.user_says("/say hello")
        await fake.until(lambda: fake.texts(ANA) == ["hello"])
        assert up(page)
        await until(lambda: fake.called("setMyCommands"))

    async def test_a_running_turn_survives_a_new_connection_and_is_answered_on_it(
        self, page: Page, fake: FakeTelegram
    ) -> None:
        await save(page, TELEGRAM_TOKEN=TOKEN)
        fake.user_says("/hold\n/sleep 0.4\n/say whole")
        await until(lambda: page.site.parts.runner.lanes.running)
        fake.revoke(OTHER)
        await save(page, TELEGRAM_TOKEN=OTHER)
        await fake.until(lambda: any("whole" in text for text in fake.texts(ANA)))
        fake.user_says("/say again")
        await fake.until(lambda: fake.texts(ANA)[-1] == "again")

    async def test_a_wrong_token_is_told_and_what_was_to_be_said_waits_for_a_right_one(
        self, page: Page, fake: FakeTelegram
    ) -> None:
        await save(page, TELEGRAM_TOKEN=TOKEN)
        fake.user_says("/sleep 0.4\n/say in time")
        await until(lambda: page.site.parts.runner.lanes.running)
        await save(page, TELEGRAM_TOKEN=OTHER)
        await until(lambda: page.site.reasons() and "telegram" in page.site.reasons()[0])
        await until(lambda: not page.site.parts.runner.lanes.running)
        assert not any("in time" in text for text in fake.texts(ANA))
        await save(page, TELEGRAM_TOKEN=TOKEN)
        await fake.until(lambda: any("in time" in text for text in fake.texts(ANA)))
        assert page.site.reasons() == []

    async def test_a_token_that_is_removed_takes_the_platform_away_and_nothing_is_lost(
        self, page: Page, fake: FakeTelegram
    ) -> None:
        await save(page, TELEGRAM_TOKEN=TOKEN)
        fake.user_says("/say one")
        await fake.until(lambda: fake.texts(ANA) == ["one"])
        await save(page, TELEGRAM_TOKEN=None)
        assert "telegram" not in page.site.parts.here
        assert page.site.reasons() == []
        polls = len(fake.called("getUpdates"))
        fake.user_says("/say two")
        assert len(fake.called("getUpdates")) == polls
        await save(page, TELEGRAM_TOKEN=TOKEN)
        await fake.until(lambda: fake.texts(ANA) == ["one", "two"])

    async def test_threads_and_jobs_of_one_that_was_taken_away_say_so_on_the_page(
        self, page: Page, fake: FakeTelegram
    ) -> None:
        await save(page, TELEGRAM_TOKEN=TOKEN)
        fake.user_says("/every day at 09:00 : look around")
        await fake.until(lambda: fake.texts(ANA))
        ana = await page.signed_in("ana@example.org")

        async def seen() -> tuple[list[bool], int, int]:
            lanes = (await ana.get("/api/lanes")).json()["lanes"]
            jobs = (await ana.get("/jobs")).text
            away = [lane["away"] for lane in lanes if lane["channel"] == "telegram"]
            return away, jobs.count(">not set up<"), jobs.count('<option value="telegram:')

        assert await seen() == ([False], 0, 1)
        await save(page, TELEGRAM_TOKEN=None)
        assert await seen() == ([True], 1, 0)
        (lane,) = (await ana.get("/api/lanes")).json()["lanes"]
        body = {"lane": lane["lane"], "when": "every day at 10:00", "prompt": "look"}
        refused = await ana.post("/api/jobs", json=body)
        assert (refused.status_code, "not set up" in refused.text) == (400, True), refused.text
        await save(page, TELEGRAM_TOKEN=TOKEN)
        assert await seen() == ([False], 0, 1)

    async def test_what_an_earlier_process_left_goes_on_when_its_platform_is_set_up_again(
        self, page: Page, fake: FakeTelegram
    ) -> None:
        """The answer that was not sent, and the turn that waited; each once."""
        await save(page, TELEGRAM_TOKEN=TOKEN)
        fake.user_says("/sleep 0.3\n/say left")
        await until(lambda: page.site.parts.runner.lanes.running)
        fake.user_says("/say waited")
        await until(lambda: waiting(page))
        await fake.stop()
        await page.stop()
        with closing(sqlite3.connect(page.home / DATABASE)) as database:
            database.execute("DELETE FROM settings")
            database.commit()
        await page.start()
        assert "telegram" not in page.site.parts.here
        await fake.start(fake.port)
        await save(page, TELEGRAM_TOKEN=TOKEN)
        await fake.until(lambda: "waited" in fake.texts(ANA))
        answers = [text for text in fake.texts(ANA) if "left" in text or "waited" in text]
        assert len(answers) == 2, fake.texts(ANA)

    async def test_another_platforms_connection_is_not_touched(
        self, page: Page, fake: FakeTelegram
    ) -> None:
        await save(page, TELEGRAM_TOKEN=TOKEN)
        await until(lambda: up(page))
        asked = len(fake.called("getMe"))
        await save(page, DISCORD_API_BASE="http://127.0.0.1:9", DISCORD_TOKEN="wrong")
        assert len(fake.called("getMe")) == asked
        assert up(page)
        assert "discord" in page.site.parts.here

    async def test_one_that_cannot_be_opened_is_named_and_costs_no_other(
        self, page: Page, fake: FakeTelegram, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await save(page, TELEGRAM_TOKEN=TOKEN)
        await until(lambda: up(page))
        monkeypatch.setitem(registry.ADAPTERS, "discord", "no.such.library")
        await save(page, DISCORD_TOKEN="x", DISCORD_API_BASE="http://127.0.0.1:9")
        (reason,) = page.site.reasons()
        assert reason.startswith("discord: could not be opened (ModuleNotFoundError)")
        fake.user_says("/say hello")
        await fake.until(lambda: fake.texts(ANA) == ["hello"])
        await save(page, DISCORD_TOKEN=None)
        assert page.site.reasons() == []

    @pytest.mark.parametrize("name", ["slack", "discord"])
    async def test_the_other_platforms_are_connected_and_taken_away_as_well(
        self, tmp_path: Path, name: str
    ) -> None:
        async with FakeSlack() as slack, FakeDiscord() as discord, Page(tmp_path) as page:
            given = {
                "slack": {"SLACK_BOT_TOKEN": slack.bot_token, "SLACK_APP_TOKEN": slack.app_token,
                          "SLACK_API_BASE": slack.url},
                "discord": {"DISCORD_TOKEN": discord.token, "DISCORD_API_BASE": discord.url,
                            "DISCORD_GATEWAY_URL": discord.gateway_url},
            }[name]  # fmt: skip
            await save(page, **given)
            await until(lambda: up(page, name))
            await save(page, **dict.fromkeys(given))
            assert name not in page.site.parts.here
            await until(lambda: f"connection of {name}" not in names())
            await save(page, **given)
            await until(lambda: up(page, name))


class TestEngines:
    async def test_a_running_turn_ends_on_the_old_engine_and_the_next_begins_on_the_new(
        self, page: Page, fake: FakeTelegram
    ) -> None:
        await save(page, TELEGRAM_TOKEN=TOKEN)
        old = page.site.parts.engines["acp"]
        fake.user_says("/sleep 0.4\n/say of the old")
        await until(lambda: page.site.parts.runner.uses(old))
        await save(page, STOP_GRACE="3s")
        new = page.site.parts.engines["acp"]
        assert new is not old
        await fake.until(lambda: any("of the old" in text for text in fake.texts(ANA)))
        fake.user_says("/say of the new")
        await fake.until(lambda: fake.texts(ANA)[-1] == "of the new")
        await until(lambda: "end of the old engine acp" not in names())
        assert f"tend {new.name}" in names()

    async def test_a_default_engine_that_is_saved_takes_the_next_turn(
        self, tmp_path: Path, fake: FakeTelegram
    ) -> None:
        more = {"LANEWAY_TELEGRAM_API_BASE": fake.url, "LANEWAY_TELEGRAM_TOKEN": TOKEN}
        async with Page(tmp_path, clock=None, LANEWAY_ENGINE="", **more) as page:
            await save(page, ENGINE="acp")
            fake.user_says("/say from the agent")
            await fake.until(lambda: fake.texts(ANA) == ["from the agent"])

    async def test_what_waits_runs_with_the_new_default_engine_and_what_runs_ends_on_the_old(
        self, tmp_path: Path, fake: FakeTelegram
    ) -> None:
        more = {"LANEWAY_TELEGRAM_API_BASE": fake.url, "LANEWAY_TELEGRAM_TOKEN": TOKEN}
        async with Page(tmp_path, clock=None, LANEWAY_ENGINE="", **more) as page:
            await save(page, ENGINE="acp")
            fake.user_says("/sleep 0.3\n/say one")
            await until(lambda: page.site.parts.runner.lanes.running)
            fake.user_says("/say two")
            await until(lambda: waiting(page))
            await save(page, ENGINE="demo")
            store = page.site.parts.store
            async with asyncio.timeout(20):
                while [turn.engine for turn in await ended(store)] != ["acp", "demo"]:
                    await asyncio.sleep(0.01)

    async def test_an_engine_appears_and_goes_with_its_settings(self, page: Page) -> None:
        engines = page.site.parts.engines
        assert "openai" not in engines
        await save(page, OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_MODEL="m")
        assert "openai" in engines
        assert "openai" in page.site.parts.intake.ground.house.engines
        await save(page, FALLBACK_ENGINE="openai")
        assert page.site.parts.within.life.health.fallback == "openai"
        await save(page, FALLBACK_ENGINE=None, OPENAI_BASE_URL=None)
        assert "openai" not in engines
        assert page.site.parts.within.life.health.fallback == ""


async def test_what_is_saved_while_the_gateway_ends_does_not_keep_it(
    page: Page, fake: FakeTelegram
) -> None:
    await save(page, TELEGRAM_TOKEN=TOKEN)
    fake.user_says("/hang on")
    agent = page.site.parts.engines["acp"]
    await until(lambda: page.site.parts.runner.uses(agent))
    page.gateway.stop()
    await save(page, STOP_GRACE="3s", TELEGRAM_TOKEN=OTHER)
    await save(page, TELEGRAM_TOKEN=TOKEN)
    fake.user_says("/stop")
    async with asyncio.timeout(20):
        await page.stop()
    await page.start()
    assert page.site.settings.stop_grace == 3.0


async def test_what_is_exchanged_after_the_end_begins_nothing(page: Page) -> None:
    living, engines = page.site.living, page.site.parts.engines
    await save(page, OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_MODEL="m")
    old = engines["openai"]
    await page.stop()
    tended = tending.Tending(dict(engines), page.clock)
    tended.end()
    await tended.renew({"openai": old}, {"openai"})
    assert not any("old engine" in name for name in names())
    await tended.close()
    assert living.settings.openai_model == "m"
    await page.start()


def names() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks()}


# Every row of the table -------------------------------------------------------------------

# Another value of each setting, and where a running gateway shows that it goes by it.
Seen = Callable[[Page], object]


AT_ONCE: dict[str, tuple[str, Seen]] = {
    "timezone": ("Asia/Tokyo", lambda p: p.site.parts.within.voices.notices.zone),
    "admins": ("telegram:700000077", lambda p: p.site.parts.people.role("telegram:700000077")),
    "members": ("telegram:700000078", lambda p: p.site.parts.people.role("telegram:700000078")),
    "places": ("telegram:-100777", lambda p: p.site.parts.people.places("telegram")),
    "bots": ("telegram:700000079", lambda p: p.site.parts.people.lists.bots),
    "bot_turns": ("7/1m", lambda p: p.site.parts.intake.ground.house.bot_turns),
    "engine": ("demo", lambda p: p.site.parts.defaults.engine),
    "fallback_engine": ("demo", lambda p: p.site.parts.within.life.health.fallback),
    "workspace": ("/tmp", lambda p: p.site.parts.defaults.workspace),
    "approvals": ("full", lambda p: p.site.parts.defaults.approvals),
    "approvers": ("starter", lambda p: p.site.parts.intake.ground.house.starter_approves),
    "approval_timeout": ("3m", lambda p: p.site.parts.within.voices.approvals._patience),
    "approval_timeout_unattended": (
        "4m",
        lambda p: p.site.parts.within.voices.questions._patience_unattended,
    ),
    "when_busy": ("collect", lambda p: p.site.parts.intake.ground.house.busy),
    "max_turns": ("3", lambda p: p.site.parts.runner.lanes._board.door.limits.running),
    "max_turns_per_person": (
        "2",
        lambda p: p.site.parts.runner.lanes._board.door.limits.per_person,
    ),
    "max_side": ("2", lambda p: p.site.parts.runner.lanes._board.door.limits.sides_per_lane),
    "budget_person_day": ("5", lambda p: p.site.parts.runner.budgeting.budgets.standing.person),
    "budget_day": ("9", lambda p: p.site.parts.runner.budgeting.budgets.standing.everybody),
    "queue_limit": ("4", lambda p: p.site.parts.runner.lanes._board.door.limits.queue),
    "turn_idle_timeout": ("1m", lambda p: p.site.parts.within.life.limits.idle),
    "turn_timeout": ("2m", lambda p: p.site.parts.within.life.limits.turn),
    "drain_timeout": ("1s", lambda p: p.site.parts.runner.patience),
    "preview": ("off", lambda p: p.site.parts.within.life.previews),
    "receipts": ("off", lambda p: p.site.parts.within.voices.telling._receipts),
    "min_interval": ("1m", lambda p: p.site.parts.intake.ground.house.jobs.least),
    "jobs_per_person": ("3", lambda p: p.site.parts.within.job_tools.limits.most),
    "agent_jobs": ("allow", lambda p: p.site.parts.within.job_tools.limits.agents_ask),
    "watch_private": ("on", lambda p: p.site.parts.within.looks.pages.private),
    "catch_up": ("1h", lambda p: p.site.parts.jobs.firing.catch_up),
    "transcribe_url": (
        "http://127.0.0.1:9",
        lambda p: p.site.parts.within.life.preparing.hearing is not None,
    ),
    "log_level": ("debug", lambda p: p.site.settings.log_level),
    "log_format": ("json", lambda p: p.site.settings.log_format),
}
# What the page itself goes by is read from the site at each use.
OF_THE_SITE = frozenset(
    {"web_url", "trusted_proxies", "admin_emails", "member_emails", "signin_limits", "smtp",
     "mail_from", "metrics_token", "transcribe_api_key", "transcribe_model"}
)  # fmt: skip
SITE = {
    "web_url": "http://127.0.0.1",
    "trusted_proxies": "10.0.0.0/8",
    "admin_emails": "dora@example.org",
    "member_emails": "emil@example.org",
    "signin_limits": "code=1/1m",
    "smtp": "smtp+plain://127.0.0.1:9",
    "mail_from": "laneway@example.org",
    "metrics_token": "abcdefgh",
    "transcribe_api_key": "abcdefgh",
    "transcribe_model": "whisper",
}
CONNECTIONS: dict[str, dict[str, object]] = {
    "telegram": {"telegram_token": TOKEN},
    "slack": {"slack_bot_token": "xoxb-1", "slack_app_token": "xapp-1"},
    "discord": {"discord_token": "abc"},
}


@pytest_asyncio.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Page]:
    """With nothing in the environment but what a start needs."""
    empty = dict.fromkeys(
        ("ENGINE", "ADMINS", "MEMBERS", "PLACES", "STOP_GRACE", "DRAIN_TIMEOUT", "LOG_LEVEL"), ""
    )
    more = {f"LANEWAY_{name}": value for name, value in empty.items()}
    async with Page(tmp_path, clock=None, **more) as running:
        yield running


def named(setting: Setting) -> str:
    return setting.name.removeprefix("LANEWAY_")


async def test_what_applies_at_once_is_gone_by_at_once(bare: Page) -> None:
    rows = {one.field: one for one in table() if one.applies is Applies.AT_ONCE}
    assert rows.keys() == AT_ONCE.keys() | OF_THE_SITE
    await save(bare, ENGINE="acp")  # so that the demo engine may stand in for it
    for field, (value, seen) in AT_ONCE.items():
        if field == "engine":
            continue  # it was
        before = seen(bare)
        await save(bare, **{named(rows[field]): value})
        assert seen(bare) != before, field
    await save(bare, FALLBACK_ENGINE=None)
    await save(bare, ENGINE=None)
    assert bare.site.parts.defaults.engine == "demo"
    for field in OF_THE_SITE:
        value = SITE[field]
        await save(bare, **{named(rows[field]): value})
        assert getattr(bare.site.settings, field) == getattr(bare.site.living.settings, field), (
            field
        )
        assert getattr(bare.site.settings, field) != getattr(Settings(), field), field


async def test_what_reloads_an_engine_exchanges_it_and_no_other(bare: Page) -> None:
    values = {
        "acp_readonly_mode": "plan", "openai_api_key": "abcdefgh", "openai_model": "other",
        "openai_context": "9000", "claude_command": "claude --x", "codex_command": "codex --x",
        "engine_env": "NOT_SET_ANYWHERE", "stop_grace": "3s",
        "acp_command": "python3 -c pass", "openai_base_url": "http://127.0.0.1:8/v1",
    }  # fmt: skip
    rows = {one.field: one for one in table() if one.applies is Applies.RELOADS}
    assert rows.keys() == values.keys()
    await save(bare, OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_MODEL="m")
    await save(bare, CLAUDE_COMMAND="claude", CODEX_COMMAND="codex")
    engines = bare.site.parts.engines
    fixed = {"acp_command"}  # the environment's, as the scripted agent is
    for field, value in values.items():
        if field in fixed:
            continue
        before = dict(engines)
        await save(bare, **{named(rows[field]): value})
        assert engines.keys() == before.keys()
        changed = {name for name in engines if engines[name] is not before[name]}
        assert changed == set(rows[field].parts), field
    await until(lambda: not any(name.startswith("end of the old") for name in names()))


def test_what_reconnects_a_channel_changes_what_it_is_opened_with() -> None:
    values: dict[str, object] = {
        "telegram_token": OTHER, "telegram_api_base": "http://127.0.0.1:9",
        "telegram_mode": "webhook", "telegram_webhook_secret": "abc", "slack_bot_token": "xoxb-2",
        "slack_app_token": "xapp-2", "slack_api_base": "http://127.0.0.1:9/", "slack_mode":
        "webhook", "slack_signing_secret": "abc", "slack_streams": "off", "discord_token": "def",
        "discord_api_base": "http://127.0.0.1:9", "discord_gateway_url": "ws://127.0.0.1:9",
        "discord_auto_thread": "off",
    }  # fmt: skip
    rows = {one.field: one for one in table() if one.applies is Applies.RECONNECTS}
    assert rows.keys() == values.keys()
    hooks = {"telegram_webhook_secret": "telegram_mode", "slack_signing_secret": "slack_mode"}
    every = {one.field: one for one in table()}
    for field, row in rows.items():
        (name,) = row.parts
        given = {one: every[one].read(str(value)) for one, value in CONNECTIONS[name].items()} | {
            "web_url": "https://laneway.example.org"
        }
        secret = {one: every[one].read("earlier") for one, mode in hooks.items()}
        mode = hooks.get(field)
        posted = {mode: every[mode].read("webhook")} if mode else {}
        base = replace(Settings(), **given | secret | posted)  # type: ignore[arg-type]
        changed = replace(base, **{field: row.read(str(values[field]))})  # type: ignore[arg-type]
        (before,), (after,) = wanted_channels(base), wanted_channels(changed)
        assert before.name == after.name == name
        assert before.options != after.options, field


def test_the_rest_is_for_a_start() -> None:
    others = {one.field: one.applies for one in table() if one.applies.name.endswith("T")}
    assert others == {
        "home": Applies.ENVIRONMENT,
        "web_host": Applies.ENVIRONMENT,
        "web_port": Applies.ENVIRONMENT,
        "after_crash": Applies.NEXT_START,
    }


async def test_a_saved_secret_is_hidden_in_the_log_from_then_on(
    page: Page, fake: FakeTelegram
) -> None:
    hidden: list[str] = []

    class Ours(logs.SafeHandler):
        def emit(self, record: logging.LogRecord) -> None:
            hidden.append(self.format(record))

    handler = Ours(io.StringIO(), page.site.settings.log_format, logs.Redactor())
    logging.getLogger().addHandler(handler)
    try:
        with log_levels.given_back():
            await save(page, METRICS_TOKEN="never-in-a-log")
            logging.getLogger("laneway").warning("somebody wrote never-in-a-log")
            await save(page, LOG_FORMAT="json")
            logging.getLogger("laneway").warning("as an object")
    finally:
        logging.getLogger().removeHandler(handler)
    assert any("[secret]" in line for line in hidden)
    assert json.loads(hidden[-1])["message"] == "as an object"
    assert not any("never-in-a-log" in line for line in hidden)
