"""What was saved on the page, as commands and a start see it: sources, secrets, what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.store.store import Store
from gateway import saved
from gateway.__main__ import main
from gateway.choices import EngineName
from gateway.config import BadSettings, Settings, Written, settle, written
from gateway.editors import Kind, choices_of, entries, holds_secret, kind_of, label_of
from gateway.keys import KEY_FILE, Keys
from gateway.paths import DATABASE
from gateway.saved import LOST, SEALED
from gateway.setting import Applies
from gateway.settings_table import table
from tests.fakes.clock import FakeClock

ROWS = {one.name: one for one in table()}


async def stored(home: Path, values: Mapping[str, str]) -> None:
    """A home in which these were saved."""
    async with Store.open(home / DATABASE, FakeClock()) as store:
        keys = Keys.of(home)
        await store.save(
            *(saved.row_of(ROWS[name], value, keys, 7, "web:ana@example.org")
              for name, value in values.items())
        )  # fmt: skip


def look(home: Path, **environ: str) -> saved.Loaded:
    return saved.look({"LANEWAY_HOME": str(home), **environ}, home.parent)


async def test_commands_see_what_was_saved_and_leave_no_trace(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await stored(home, {"LANEWAY_TIMEZONE": "Asia/Tokyo", "LANEWAY_METRICS_TOKEN": "abcdefgh"})
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    loaded = look(home)
    assert str(loaded.settings.timezone) == "Asia/Tokyo"
    assert loaded.settings.metrics_token.reveal() == "abcdefgh"
    assert saved.problems(loaded.settled) == []
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    assert str(look(home, LANEWAY_TIMEZONE="UTC").settings.timezone) == "UTC"


def test_the_zone_of_laneway_when_is_the_saved_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    asyncio.run(stored(home, {"LANEWAY_TIMEZONE": "Asia/Tokyo"}))
    monkeypatch.setenv("LANEWAY_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    assert main(["when", "every day at 09:00"]) == 0
    assert "09:00:00+09:00" in capsys.readouterr().out


def test_the_doctor_says_what_does_not_count_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    asyncio.run(stored(home, {"LANEWAY_METRICS_TOKEN": "abcdefgh", "LANEWAY_QUEUE_LIMIT": "0"}))
    (home / KEY_FILE).write_bytes(b"k" * 32)
    monkeypatch.setenv("LANEWAY_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "FAIL  saved settings: LANEWAY_METRICS_TOKEN was sealed with another key" in said
    assert "FAIL  saved settings: LANEWAY_QUEUE_LIMIT must be a whole number" in said
    assert "enter it anew" in said


@pytest.mark.parametrize("key", [b"k" * 32, b"short", None])
async def test_a_secret_of_another_key_counts_as_not_set(tmp_path: Path, key: bytes | None) -> None:
    home = tmp_path / "home"
    await stored(home, {"LANEWAY_DISCORD_TOKEN": "abcdefgh", "LANEWAY_QUEUE_LIMIT": "7"})
    (home / KEY_FILE).unlink()
    if key:
        (home / KEY_FILE).write_bytes(key)
    loaded = look(home)
    assert loaded.settled.left_out == {"LANEWAY_DISCORD_TOKEN": LOST}
    assert not loaded.settings.discord_token
    assert loaded.settings.queue_limit == 7
    assert bool(loaded.key_trouble) is (key == b"short")
    assert (home / KEY_FILE).exists() is bool(key)


def test_a_database_that_cannot_be_read_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"this is no database at all" * 100)
    assert look(tmp_path).settings.queue_limit == 20


def test_a_value_is_sealed_when_it_is_a_secret_or_holds_one(tmp_path: Path) -> None:
    keys = Keys.of(tmp_path)

    def kept(name: str, value: str) -> object:
        return saved.row_of(ROWS[name], value, keys, 1, "")[1]["value"]

    assert str(kept("LANEWAY_SMTP_URL", "smtp://mail.example.org")).startswith(SEALED)
    assert str(kept("LANEWAY_WEB_URL", "https://a:b@example.org")).startswith(SEALED)
    assert str(kept("LANEWAY_OPENAI_MODEL", f"{SEALED}x")).startswith(SEALED)
    assert kept("LANEWAY_OPENAI_MODEL", "gpt") == "gpt"


class TestTogether:
    """Saved values that do not fit what is written are left out; they never stop a start."""

    @staticmethod
    def settled(saved_ones: dict[str, str], **environ: str) -> Settings:
        said = written({f"LANEWAY_{name}": value for name, value in environ.items()}, Path("/none"))
        return settle(said, saved_ones).settings

    def test_one_of_two_that_need_each_other(self) -> None:
        assert not self.settled({"LANEWAY_SLACK_BOT_TOKEN": "xoxb-1"}).slack_bot_token

    def test_an_engine_without_its_command(self) -> None:
        assert self.settled({"LANEWAY_ENGINE": "acp"}).engine is EngineName.DEMO

    def test_a_stand_in_that_the_environment_made_the_first(self) -> None:
        now = self.settled({"LANEWAY_FALLBACK_ENGINE": "codex"}, ENGINE="codex")
        assert (now.engine, now.fallback_engine) == (EngineName.CODEX, None)

    def test_a_half_that_was_lost_is_told_and_stops_nothing(self) -> None:
        said = written({"LANEWAY_SLACK_APP_TOKEN": "xapp-1"}, Path("/none"))
        found = settle(said, {}, {"LANEWAY_SLACK_BOT_TOKEN": LOST})
        assert "LANEWAY_SLACK_BOT_TOKEN" in found.together[0]

    def test_what_is_written_and_wrong_stops_the_start_as_ever(self) -> None:
        with pytest.raises(BadSettings, match="LANEWAY_SLACK_APP_TOKEN"):
            self.settled({}, SLACK_BOT_TOKEN="xoxb-1")

    def test_a_home_that_was_saved_is_none(self) -> None:
        found = settle(Written(), {"LANEWAY_HOME": "/elsewhere"})
        assert found.settings.home == Settings().home
        assert "LANEWAY_HOME" in found.left_out

    def test_lists_of_all_sources_add_up(self) -> None:
        name = "LANEWAY_MEMBER_EMAILS"
        now = self.settled({name: "a@example.org"}, MEMBER_EMAILS="b@example.org")
        assert now.member_emails == {"a@example.org", "b@example.org"}


def test_every_setting_has_an_editor_that_fits_and_says_when_it_applies() -> None:
    for setting in table():
        kind = kind_of(setting)
        assert isinstance(setting.applies, Applies)
        assert bool(setting.parts) is (setting.applies in (Applies.RECONNECTS, Applies.RELOADS))
        assert label_of(setting)[0].isupper(), setting.name
        assert (kind is Kind.CHOICE) is bool(choices_of(setting)), setting.name
        for choice in choices_of(setting):
            setting.read(choice)
        if kind is Kind.LIST:
            assert setting.read(",".join(entries(setting.default))) == setting.read(setting.default)


def test_passwords_in_addresses_are_seen() -> None:
    assert holds_secret("https://ana:b@example.org")
    assert holds_secret("http://[broken:x@y")
    assert not holds_secret("https://example.org/a@b")
    assert not holds_secret("ask")
