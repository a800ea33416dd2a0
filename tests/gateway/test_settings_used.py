"""Every setting does something, and what platforms need of them reaches them."""

from __future__ import annotations

from pathlib import Path

from gateway import config
from gateway.channel_parts import wanted_channels
from gateway.config import Settings
from gateway.settings_table import table

ROOT = Path(__file__).parents[2]


def settings(tmp_path: Path, **given: str) -> Settings:
    return config.load({"LANEWAY_HOME": str(tmp_path), **given}, tmp_path)


def test_every_setting_is_used() -> None:
    folders = (ROOT / name for name in ("core", "channels", "gateway"))
    files = (path for folder in folders for path in folder.rglob("*.py"))
    apart = {"config.py", "settings_table.py"}
    code = "\n".join(path.read_text("utf-8") for path in files if path.name not in apart)
    assert not {row.field for row in table() if f"settings.{row.field}" not in code}


def test_slack_comes_over_a_socket_or_is_posted(tmp_path: Path) -> None:
    tokens = {"LANEWAY_SLACK_BOT_TOKEN": "xoxb-1-a", "LANEWAY_SLACK_APP_TOKEN": "xapp-1-b"}
    (wanted,) = wanted_channels(settings(tmp_path, **tokens))
    assert (wanted.name, wanted.options["api_base"]) == ("slack", "https://slack.com/api/")
    assert "signing_secret" not in wanted.options
    del tokens["LANEWAY_SLACK_APP_TOKEN"]
    posted = settings(
        tmp_path,
        **tokens,
        LANEWAY_SLACK_MODE="webhook",
        LANEWAY_SLACK_SIGNING_SECRET="hush",
        LANEWAY_WEB_URL="https://lab.example.org",
    )
    (wanted,) = wanted_channels(posted)
    assert wanted.options["signing_secret"] == "hush"


def test_telegram_is_polled_or_posts_under_the_address_of_the_page(tmp_path: Path) -> None:
    token = {"LANEWAY_TELEGRAM_TOKEN": "800000001:" + "x" * 35}
    (wanted,) = wanted_channels(settings(tmp_path, **token))
    assert "posted_to" not in wanted.options
    posted = settings(
        tmp_path,
        **token,
        LANEWAY_TELEGRAM_MODE="webhook",
        LANEWAY_TELEGRAM_WEBHOOK_SECRET="hush",
        LANEWAY_WEB_URL="https://lab.example.org/laneway/",
    )
    (wanted,) = wanted_channels(posted)
    assert wanted.options["posted_to"] == "https://lab.example.org/laneway/hooks/telegram"
