"""``laneway when`` as scripts use it."""

from __future__ import annotations

import pytest

from gateway.__main__ import main

SINCE = ("--from", "2027-01-04T12:00Z")


def test_it_prints_the_next_times_with_their_offset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["when", "0 9 * * 1-5", "--tz", "Europe/Berlin", *SINCE, "--count", "2"]) == 0
    assert capsys.readouterr().out == "2027-01-05T09:00:00+01:00\n2027-01-06T09:00:00+01:00\n"


def test_a_time_that_comes_once_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["when", "in 20m", "--tz", "UTC", "--from", "2027-01-04T12:00"]) == 0
    assert capsys.readouterr().out == "2027-01-04T12:20:00+00:00\n"


def test_the_zone_of_the_settings_counts_where_none_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_TIMEZONE", "Asia/Kolkata")
    assert main(["when", "every day at 09:00", *SINCE, "--count", "1"]) == 0
    assert capsys.readouterr().out == "2027-01-05T09:00:00+05:30\n"


def test_times_that_no_clock_can_show_end_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["when", "every 36000d", "--tz", "UTC", *SINCE, "--count", "200"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert (len(shown), shown[-1][:4]) == (80, "9912")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["60 * * * *", "--tz", "UTC"], "field minute"),
        (["", "--tz", "UTC"], "When?"),
        (["every day at 9:00", "--tz", "Mars/Base"], "no time zone"),
        (["in 20m", "--tz", "UTC", "--from", "soon"], "no ISO time"),
        (["in 20m", "--tz", "UTC", "--from", "9999-12-31T23:50Z"], "no ISO time"),
        (["every 1h", "--tz", "America/New_York", "--from", "0001-01-01T00:00"], "no ISO time"),
        (["2027-01-04 11:00", "--tz", "UTC", *SINCE], "has passed"),
    ],
)
def test_a_bad_one_ends_with_status_2_and_the_reason(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["when", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert why in shown.err
