"""What people write for a watch, and what every refusal says would work."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.job_asking import JobLimits
from core.job_rules import IfBusy, JobKind
from core.watch_asking import read_what, typed
from core.watch_rules import Condition, Look, What
from core.when import BadWhen
from tests.watches.scene import NOON

DAY = 86_400_000
U = "https://example.org/a?b=1:2"


def asked(text: str, **limits: Any) -> Any:
    return typed(text, "UTC", NOON, JobLimits(**limits))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (f"url {U} changed", What(Look.URL, U, Condition.CHANGED)),
        (f"url <{U}> changed", What(Look.URL, U, Condition.CHANGED)),
        (f"URL {U} status != 200", What(Look.URL, U, Condition.STATUS, op="!=", value=200)),
        (f"url {U} status>=500", What(Look.URL, U, Condition.STATUS, op=">=", value=500)),
        (f"url {U} status 404", What(Look.URL, U, Condition.STATUS, op="==", value=404)),
        (f'url {U} contains "sold  out"', What(Look.URL, U, Condition.CONTAINS, text="sold  out")),
        (f"url {U} contains “it's”", What(Look.URL, U, Condition.CONTAINS, text="it's")),
        (f"url {U} contains gone", What(Look.URL, U, Condition.CONTAINS, text="gone")),
        (
            f"url {U} json .jobs[0].state == done",
            What(Look.URL, U, Condition.JSON, path=("jobs", 0, "state"), op="==", value="done"),
        ),
        (
            f'url {U} json ."a b"[-1] != "3"',
            What(Look.URL, U, Condition.JSON, path=("a b", -1), op="!=", value="3", exact=True),
        ),
        (f"url {U} json .n<10", What(Look.URL, U, Condition.JSON, path=("n",), op="<", value=10.0)),
        (f"url {U} json . == null", What(Look.URL, U, Condition.JSON, op="==", value=None)),
        (
            f"url {U} json .tags contains new",
            What(
                Look.URL, U, Condition.JSON, path=("tags",), op="contains", value="new", exact=True
            ),
        ),
        (f"url {U} json .n changed", What(Look.URL, U, Condition.CHANGED, path=("n",))),
        (
            "run \"grep 'a b' x\" exit 0",
            What(Look.RUN, "grep 'a b' x", Condition.EXIT, op="==", value=0),
        ),
        (
            "run 'echo \"a: b\"' exit != 0",
            What(Look.RUN, 'echo "a: b"', Condition.EXIT, op="!=", value=0),
        ),
        ("run make changed", What(Look.RUN, "make", Condition.CHANGED)),
        ("file a/b.csv exists", What(Look.FILE, "a/b.csv", Condition.EXISTS)),
        ('file "a b.csv" contains "x"', What(Look.FILE, "a b.csv", Condition.CONTAINS, text="x")),
    ],
)
def test_what_is_looked_at_and_waited_for(words: str, meant: What) -> None:
    watch = asked(f"/watch {words} every 5m : x".removeprefix("/watch "))
    assert watch.what == meant
    assert read_what(watch.words) == meant  # as it is read again from the store


def test_the_parts_stand_in_any_order() -> None:
    one = asked(f'url {U} contains "a: b" every 5m until fri 18:00 each time budget 0.50 : do it')
    other = asked(
        f'each time, until fri 18:00, budget 0.50, every 5m, url {U} contains "a: b" : do it'
    )
    late = asked(f'url {U} every 5m contains "a: b" each time until fri 18:00 budget 0.50 : do it')
    assert one == other == late
    assert (one.each_time, one.options.budget, one.prompt) == (True, 0.5, "do it")
    assert one.until == NOON + 3 * DAY + 6 * 3_600_000


def test_a_watch_lasts_seven_days_unless_something_else_is_said() -> None:
    assert asked(f"url {U} changed every 5m : x").until == NOON + 7 * DAY
    assert asked(f"url {U} changed every 5m for 2d : x").until == NOON + 2 * DAY
    assert asked(f"url {U} changed every 5m for 1 hour : x").until == NOON + 3_600_000
    assert asked(f"url {U} changed every 5m until 20:00 : x").until == NOON + 8 * 3_600_000
    assert asked(f"url {U} changed every 5m until 8:00 : x").until == NOON + 20 * 3_600_000


def test_a_watch_becomes_a_job_that_looks_at_once() -> None:
    job = asked(f"url {U} changed if busy skip every 0 9 * * 1-5 : x").job(3, "lane", "person")
    assert (job.kind, job.next_at, job.if_busy) == (JobKind.WATCH, NOON, IfBusy.SKIP)
    assert (job.said, job.what) == ("0 9 * * 1-5", f"url {U} changed")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "Write a colon"),
        (f"url {U} changed every 5m", "Write a colon"),
        (f"url {U} changed every 5m : ", "behind the colon"),
        ("changed every 5m : x", "begins with what it looks at"),
        ("every 5m : x", "Say url, run or file"),
        (f"url {U} changed : x", "How often"),
        (f"url {U} changed in 5m : x", "How often|I do not understand"),
        (f"url {U} every 5m : x", "What shall I wait for"),
        ("url every 5m : x", "What shall I look at"),
        (f"url {U} changed every 2s : x", "at least 10 s"),
        (f"url {U} changed every 5m every 6m : x", "twice"),
        (f"url {U} changed every 5m until yesterday : x", "Until when"),
        (f"url {U} changed every 5m until 2h : x", "Say for 2h"),
        (f"url {U} changed every 5m until 2001-01-01 10:00 : x", "has passed"),
        (f"url {U} changed every 5m until every 5m : x", "twice|Until when"),
        (f"url {U} changed every 5m for ever : x", "How long"),
        (f"url {U} changed every 5m for 2d until fri 18:00 : x", "not both"),
        (f"url {U} contains sold out every 5m : x", "in quotes"),
        (f"url {U} is nice every 5m : x", "I do not understand “is nice”"),
        (f"url {U} exit 0 every 5m : x", "means nothing for url"),
        ("file x exit 0 every 5m : x", "means nothing for file"),
        ("run make test exit 0 every 5m : x", "Put the command in quotes"),
        ("run 'a\nb' exit 0 every 5m : x", "one line"),
        ("url ftp://example.org changed every 5m : x", "begins with https://"),
        ("url https://[::1 changed every 5m : x", "begins with https://"),
        ("url https://a:b@example.org changed every 5m : x", "signs in nowhere"),
        ("url http://127.0.0.1:80/ changed every 5m : x", "private address"),
        ("url http://[::ffff:10.0.0.1]/ changed every 5m : x", "private address"),
        ("url http://LOCALHOST/ changed every 5m : x", "private address"),
        (f"url {U} json .a < b every 5m : x", "compares numbers"),
        (f"url {U} json a == b every 5m : x", "no way to a value"),
        (f"url {U} json .a every 5m : x", "Say which value"),
        (f"url {U} json .a == b c every 5m : x", "Put the text in quotes"),
    ],
)
def test_every_refusal_says_what_would_work(text: str, word: str) -> None:
    with pytest.raises(BadWhen) as refused:
        asked(text)
    assert any(one in str(refused.value) for one in word.split("|")), str(refused.value)


def test_the_shortest_time_that_is_allowed_is_allowed() -> None:
    assert asked(f"url {U} changed every 10s : x").said == "every 10s"


def test_private_addresses_may_be_named_where_the_settings_allow_it() -> None:
    watch = asked("url http://127.0.0.1:80/ changed every 5m : x", watch_private=True)
    assert watch.what.target == "http://127.0.0.1:80/"


WORDS = st.sampled_from(
    [
        *("url", "run", "file", U, "changed", "contains", '"a b"', "'x", "json", ".a[0]", "=="),
        *("every", "5m", "until", "fri", "18:00", "for", "2d", "each", "time", "exit", "0", ":"),
        *("budget", "0.5", "status", "!=", "200", ",", '"', "“", "”", "\0", "\n", "-1", "[", "."),
    ]
)


@given(st.lists(WORDS, max_size=14))
def test_whatever_is_written_is_read_or_refused_in_words(words: list[str]) -> None:
    with contextlib.suppress(BadWhen):
        watch = asked(" ".join(words))
        assert read_what(watch.words) == watch.what
        assert watch.until > NOON
