"""Single values as people write them: what is taken, and what is said about what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import values
from gateway.config import BadSettings, load


@pytest.mark.parametrize("written", ["sk-1é", "sk-1\u200b", "sk-1\N{SNOWMAN}", "sk\x00"])
def test_a_key_that_no_header_can_carry_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="copy it anew"):
        values.secret(written)


def test_tokens_of_slack_are_not_taken_for_each_other() -> None:
    bot, app = values.slack_token("xoxb-"), values.slack_token("xapp-")
    assert bot("xoxb-1").reveal() == "xoxb-1"
    assert bot("xoxe.xoxb-1").reveal() == "xoxe.xoxb-1"  # one that is renewed now and then
    assert app("xapp-1").reveal() == "xapp-1"
    for read, written in ((bot, "xapp-1"), (bot, "xoxp-1"), (app, "xoxb-1")):
        with pytest.raises(ValueError, match="another token of Slack: this one starts with x"):
            read(written)


def test_a_duration_ends_where_instants_can_still_be_shown() -> None:
    assert values.duration("3650d") == values.LONGEST
    for written in ("3651d", "999999999d", "99999999999999h"):
        with pytest.raises(ValueError, match="at most 3650d"):
            values.duration(written)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://Lab.Example.org:443/", "https://lab.example.org"),
        ("http://lab.example.org:80", "http://lab.example.org"),
        ("https://lab.example.org:8443/gw/", "https://lab.example.org:8443/gw"),
        ("http://[::1]:80", "http://[::1]"),
        ("", ""),
    ],
)
def test_the_pages_address_is_what_browsers_call_its_origin(written: str, read: str) -> None:
    assert values.page_url(written) == read


@pytest.mark.parametrize("more", ["?q=1", "#top", "/?"])
def test_more_than_an_address_is_none(more: str) -> None:
    for written in (f"https://lab.example.org{more}1", "https://ana:pw@lab.example.org"):
        with pytest.raises(ValueError, match=r"like https://laneway\.example\.org"):
            values.page_url(written)


def test_what_cannot_be_seen_in_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# mine\nLANEWAY_HOME=/a\0b\n")
    with pytest.raises(BadSettings, match=r"line 2: LANEWAY_HOME has a character"):
        load({}, tmp_path)


def test_the_settings_read_these_values_so(tmp_path: Path) -> None:
    wrong = {
        "LANEWAY_HOME": str(tmp_path),
        "LANEWAY_SLACK_BOT_TOKEN": "xapp-1",
        "LANEWAY_SLACK_APP_TOKEN": "xoxb-1",
        "LANEWAY_WEB_URL": "https://ana:pw@lab.example.org",
    }
    with pytest.raises(BadSettings) as caught:
        load(wrong, tmp_path)
    assert {problem.split()[0] for problem in caught.value.problems} == set(wrong) - {
        "LANEWAY_HOME"
    }
    assert not any("pw@" in problem for problem in caught.value.problems)
