"""What somebody sets that only a later version carries out: refused, or said to do nothing."""

from __future__ import annotations

from pathlib import Path

from gateway import config
from gateway.channel_parts import wanted_channels
from gateway.config import Settings
from gateway.later import UNUSED, missing_here, unused_here
from gateway.settings_table import table

ROOT = Path(__file__).parents[2]


def settings(tmp_path: Path, **given: str) -> Settings:
    return config.load({"LANEWAY_HOME": str(tmp_path), **given}, tmp_path)


def test_what_does_nothing_yet_is_named_and_the_rest_is_not(tmp_path: Path) -> None:
    given = settings(
        tmp_path,
        LANEWAY_ADMIN_EMAILS="ana@example.org",
        LANEWAY_METRICS_TOKEN="hush",
        LANEWAY_MEMBER_EMAILS="",  # as it is anyway
        LANEWAY_MAX_TURNS="2",
    )
    assert unused_here(given) == ("LANEWAY_METRICS_TOKEN",)
    assert not list(missing_here(given))
    assert not unused_here(settings(tmp_path))


def test_every_setting_is_used_or_named_here() -> None:
    """A setting that is carried out from now on leaves this list, a new one does not hide."""
    folders = (ROOT / name for name in ("core", "channels", "gateway"))
    files = (path for folder in folders for path in folder.rglob("*.py"))
    apart = {"config.py", "settings_table.py", "later.py"}
    code = "\n".join(path.read_text("utf-8") for path in files if path.name not in apart)
    idle = {row.field for row in table() if f"settings.{row.field}" not in code}
    assert idle == UNUSED


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
