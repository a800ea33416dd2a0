"""When a watch speaks up: once for what comes true, never for what stays true or was not seen."""

from __future__ import annotations

import json
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.addresses import is_public
from core.watch_asking import read_what
from core.watch_rules import (
    LINE_MOST,
    LINES_MOST,
    LONGEST_PAUSE,
    PATIENCE,
    Condition,
    Judged,
    Known,
    Look,
    News,
    Seen,
    Unseen,
    What,
    evidence,
    holds,
    judge,
    next_look,
)
from core.when import parse

CHANGED = What(Look.URL, "u", Condition.CHANGED)
DOWN = What(Look.URL, "u", Condition.STATUS, op="!=", value=200)
MINUTE = 60_000


def page(text: str, code: int = 200) -> Seen:
    return Seen(text, code)


def run(what: What, *saw: Seen | Unseen, known: Known | None = None) -> list[Judged]:
    known, judged = known or Known(), []
    for one in saw:
        judged.append(judge(what, known, one))
        known = judged[-1].known
    return judged


def found(judged: list[Judged]) -> list[bool]:
    return [one.found for one in judged]


# Edges ------------------------------------------------------------------------------------


def test_a_first_look_is_what_later_ones_are_compared_with() -> None:
    assert found(run(CHANGED, page("a"), page("a"), page("b"), page("b"), page("a"))) == [
        False, False, True, False, True,
    ]  # fmt: skip


def test_what_is_true_at_the_first_look_is_found_at_once() -> None:
    assert found(run(DOWN, page("", 500), page("", 503), page("", 200), page("", 404))) == [
        True, False, False, True,
    ]  # fmt: skip


def test_a_look_that_failed_is_no_change_and_no_end_of_a_condition() -> None:
    gone = Unseen("it is down")
    assert found(run(CHANGED, page("a"), gone, page("a"), gone, page("b"))) == [
        False, False, False, False, True,
    ]  # fmt: skip
    assert found(run(DOWN, page("", 500), gone, page("", 500))) == [True, False, False]


@given(st.lists(st.sampled_from("aabbx!"), max_size=60))
def test_in_any_history_every_rise_is_found_once_and_failures_are_told_in_pairs(
    history: list[str],
) -> None:
    """Against a plain account of the same: a=calm, b=true, x=failed look, !=restart."""
    what = What(Look.URL, "u", Condition.CONTAINS, text="b")
    known, held, failed, told = Known(), False, 0, False
    for sign in history:
        if sign == "!":  # only what is remembered survives
            known = Known(known.digest, known.text, known.held, known.failures, known.told)
            continue
        one = judge(what, known, Unseen("x") if sign == "x" else page(sign))
        known = one.known
        if sign == "x":
            failed += 1
            assert one.found is False
            assert (one.news is News.TROUBLE) is (failed >= PATIENCE and not told)
            told = told or failed >= PATIENCE
        else:
            assert (one.news is News.WELL) is told
            assert one.found is (sign == "b" and not held)
            held, failed, told = sign == "b", 0, False


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=40))
def test_in_any_history_a_change_is_found_exactly_where_two_looks_differ(
    history: list[str | None],
) -> None:
    known, last = Known(), None
    for text in history:
        one = judge(CHANGED, known, Unseen("x") if text is None else page(text))
        known = one.known
        assert one.found is (text is not None and last is not None and text != last)
        last = text if text is not None else last


def test_what_may_have_been_found_before_a_backup_is_only_remembered() -> None:
    known = run(CHANGED, page("a"))[-1].known
    one = judge(CHANGED, known, page("b"), anew=True)
    assert (one.found, one.perhaps) == (False, True)
    assert judge(CHANGED, one.known, page("b")).found is False


# Failures ---------------------------------------------------------------------------------


def test_pauses_grow_after_five_failures_up_to_an_hour() -> None:
    plan = parse("every 1m", UTC, 0)
    pauses = [next_look(plan, 0, failures) for failures in range(20)]
    assert pauses[:7] == [MINUTE] * 5 + [2 * MINUTE, 4 * MINUTE]
    assert pauses[-1] == LONGEST_PAUSE
    daily = parse("every day at 09:00", UTC, 0)
    assert next_look(daily, 0, 99) == 24 * 3_600_000


@pytest.mark.parametrize(
    ("words", "saw", "why"),
    [
        ("url https://x changed", page("oops", 503), "status 503"),
        ('url https://x contains "a"', page("a", 404), "status 404"),
        ("url https://x json .a == 1", page("<html>"), "not JSON"),
        ("url https://x json .a == 1", page('{"b": 1}'), "no .a in the answer"),
        ("url https://x json .a[3] == 1", page('{"a": [1]}'), "no .a[3] in the answer"),
        ("url https://x json .a == 1", page("[" * 100_000), "not JSON"),
        ("url https://x json .a == 1", Seen("{", 200, cut=True), "too long"),
        ("run x changed", Seen("", 2, noise="no such table"), "exit status 2: no such table"),
        ("run x contains a", Seen("b", 3), "exit status 3"),
        ("run x exit 0", Seen("", 127, noise="not found"), "cannot be run"),
        ("run x exit != 0", Seen("", 126), "cannot be run"),
    ],
)
def test_what_says_nothing_about_the_condition_is_a_look_that_failed(
    words: str, saw: Seen, why: str
) -> None:
    one = run(read_what(words), *[saw] * PATIENCE)[-1]
    assert (one.found, one.news) == (False, News.TROUBLE)
    from core.watch_rules import _fit

    fault = _fit(read_what(words), saw)
    assert isinstance(fault, Unseen)
    assert why in fault.why


@pytest.mark.parametrize(
    ("words", "saw", "true"),
    [
        ("run x exit 0", Seen("", 0), True),
        ("run x exit 0", Seen("", 2), False),
        ("run x exit != 0", Seen("", -9), True),
        ("run x contains failed", Seen("it failed", 3), True),
        ("run x contains failed", Seen("", 1), False),
        ("file x exists", Seen(there=False), False),
        ("file x exists", Seen(), True),
        ("url https://x status < 500", page("", 404), True),
    ],
)
def test_an_exit_or_a_status_is_an_answer_where_it_is_asked_about(
    words: str, saw: Seen, true: bool
) -> None:
    assert found(run(read_what(words), saw)) == [true]


@pytest.mark.parametrize(
    ("condition", "value", "true"),
    [
        ("== 3", 3, True), ("== 3", 3.0, True), ("== 3", "3", True), ('== "3"', 3, False),
        ('== "3"', "3", True), ("!= done", "open", True), ("!= done", None, True),
        ("== true", True, True), ("== true", 1, False), ("== 1", True, False),
        ("== null", None, True), ("< 10", 9.5, True), ("< 10", "9", True), ("< 10", None, False),
        (">= 10", 10, True), ("> 10", 1e999, True), ("contains a", ["b", "a"], True),
        ("contains a", "cat", True), ("contains 3", [1, 2, 3], True), ("contains a", [], False),
        ("== done", ["done"], False), ("contains ö", {"a": "ö"}, True),
    ],
)  # fmt: skip
def test_values_of_json_are_compared_as_people_mean_it(
    condition: str, value: object, true: bool
) -> None:
    what = read_what(f"url https://x json .v {condition}")
    (one,) = run(what, page(json.dumps({"v": value})))
    assert one.found is true
    assert holds(what, Seen(json.dumps(value))) is true


def test_a_redirect_is_not_gone_after_where_it_is_what_is_asked_about() -> None:
    assert read_what("url https://x status == 301").follows is False
    assert read_what("url https://x status != 200").follows is True
    assert CHANGED.follows is True


# Evidence ---------------------------------------------------------------------------------


def shown(what: What, before: str, now: str) -> list[str]:
    first, second = run(what, page(before), page(now))
    return evidence(what, first.known, second.seen)


def test_of_a_change_the_lines_that_went_and_came_are_shown() -> None:
    before = "\n".join(f"line {n}" for n in range(3000))
    assert shown(CHANGED, before, before.replace("line 70\n", "line LXX\nmore\n")) == [
        "- line 70", "+ line LXX", "+ more",
    ]  # fmt: skip


def test_of_many_lines_that_changed_some_are_shown_and_the_rest_is_counted() -> None:
    first, second = "".join(f"a{n}\n" for n in range(500)), "".join(f"b{n}\n" for n in range(300))
    lines = shown(CHANGED, first, second)
    assert len(lines) == LINES_MOST + 1
    assert lines[-1] == f"… and {500 + 300 - LINES_MOST} more lines"


def test_what_may_never_be_looked_at_is_told_at_once() -> None:
    (one,) = run(CHANGED, Unseen("it is private", barred=True))
    assert (one.news, one.found, one.known) == (News.BARRED, False, Known())


def test_of_a_text_that_grew_only_what_was_added_is_shown() -> None:
    log = What(Look.FILE, "f", Condition.CHANGED)
    before = "".join(f"entry {n}\n" for n in range(9000))
    first = judge(log, Known(), Seen(before))
    second = judge(log, first.known, Seen(before + "the newest\n"))
    assert evidence(log, first.known, second.seen) == ["+ the newest"]


def test_of_one_long_line_the_part_that_changed_is_shown() -> None:
    before = "x" * 5000 + "one" + "y" * 5000
    went, came = shown(CHANGED, before, before.replace("one", "two"))
    assert went.startswith("- …xxx")
    assert "xoney" in went
    assert "xtwoy" in came
    assert max(len(went), len(came)) <= LINE_MOST + 3


def test_of_a_text_the_line_in_which_it_stands_is_shown() -> None:
    what = What(Look.URL, "u", Condition.CONTAINS, text="sold out")
    text = "\n".join(["a", "b", "c" * 900 + " sold out " + "d" * 900, "e", "f"])
    lines = evidence(what, Known(), page(text))
    assert (lines[0], lines[-1]) == ("b", "e")
    assert "sold out" in lines[1]


def test_of_a_command_the_end_of_its_output_and_errors_is_shown() -> None:
    what = What(Look.RUN, "make", Condition.EXIT, op="!=", value=0)
    saw = Seen("\n".join(map(str, range(5000))), 2, noise="it broke")
    assert evidence(what, Known(), saw)[-2:] == ["4999", "it broke"]


@given(st.text(max_size=300), st.text(max_size=300), st.sampled_from(list(Condition)))
def test_evidence_is_bounded_and_printable_whatever_was_seen(
    before: str, now: str, condition: Condition
) -> None:
    what = What(
        Look.URL, "u", condition, text=now[:3], path=("a",) if condition is Condition.JSON else ()
    )
    times = 1 + 60 // (len(now) + 1)
    lines = evidence(what, Known(text=before * times), page(now * times))
    assert len(lines) <= LINES_MOST + 1
    assert all(len(line) <= LINE_MOST + 20 for line in lines)
    assert all(c.isprintable() or c == "\t" for line in lines for c in line)


def test_evidence_of_hostile_texts_is_quick() -> None:
    one, other = "a\nb\n" * 30_000, "b\na\nb\n" * 20_000
    assert len(shown(CHANGED, one, other)) <= LINES_MOST + 1


# Addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "240.0.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b::a00:1"),
        *("2002:7f00:1::", "2002:a00:1::1", "2001:db8::1", "3fff::1", "192.0.0.8", "192.88.99.1"),
    ],
)
def test_an_address_that_is_not_for_everybody_is_not_public(address: str) -> None:
    assert is_public(address) is False


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:4700::1111", "::ffff:93.184.215.14", "64:ff9b::5db8:d70e"]
)
def test_an_address_for_everybody_is_public(address: str) -> None:
    assert is_public(address) is True
