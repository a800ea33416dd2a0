"""The rules of signing in, against a slow and obvious model, and at their edges."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from gateway.values import Rate, SigninLimits
from gateway.web import signin_rules
from gateway.web.signin_rules import (
    LASTS,
    OF_DEVICE,
    WRONG_MOST,
    Answer,
    Asker,
    Rules,
    TooMany,
)

NOW = 1_798_000_000_000
MINUTE = 60_000
LIMITS = SigninLimits(Rate(3, 900), Rate(20, 3600), Rate(500, 3600), Rate(10, 600))
OFF = SigninLimits()
OFF_BUT_NETWORK = SigninLimits(network=Rate(20, 3600))
ANA = Asker("lab", "ana at lab")


def ask(rules: Rules, code: str = "right", now: int = NOW, who: Asker = ANA) -> bool | TooMany:
    return rules.ask(who, "ana in tab", code, True, now, LIMITS)


def guess(rules: Rules, code: str, now: int = NOW, who: Asker = ANA) -> Answer | TooMany:
    return rules.guess(who, {"ana in tab": code}, True, now, LIMITS)


def test_a_code_signs_in_once() -> None:
    rules = Rules()
    assert ask(rules) is True
    assert guess(rules, "right") is Answer.RIGHT
    assert guess(rules, "right") is Answer.WRONG


@pytest.mark.parametrize(
    ("after", "answer"),
    [
        (0, Answer.RIGHT),
        (LASTS - 1, Answer.RIGHT),
        (LASTS, Answer.WRONG),
        (-1, Answer.WRONG),  # the clock was set back: it may be an old one
    ],
)
def test_a_code_is_good_for_ten_minutes(after: int, answer: Answer) -> None:
    rules = Rules()
    ask(rules)
    assert guess(rules, "right", NOW + after) is answer


def test_all_codes_of_a_browser_are_good_until_one_of_them_is_used() -> None:
    for used in ("first", "second"):
        rules = Rules()
        ask(rules, "first")
        ask(rules, "second")
        assert guess(rules, used) is Answer.RIGHT
        assert guess(rules, "first") is Answer.WRONG
        assert guess(rules, "second") is Answer.WRONG


@pytest.mark.parametrize("known", [True, False])
def test_five_wrong_tries_end_every_code_and_only_a_new_one_begins_anew(known: bool) -> None:
    rules = Rules()
    limits = replace(LIMITS, failure=None)
    for code in ("right", "also right"):
        rules.ask(ANA, "tab", code, known, NOW, limits)
    said = [rules.guess(ANA, {"tab": "no"}, known, NOW, limits) for _ in range(WRONG_MOST + 1)]
    assert said == [Answer.WRONG] * 4 + [Answer.ASK_AGAIN] * 2
    assert rules.guess(ANA, {"tab": "right"}, known, NOW, limits) is Answer.ASK_AGAIN
    rules.ask(ANA, "tab", "newer", known, NOW, limits)
    assert rules.guess(ANA, {"tab": "right"}, known, NOW, limits) is Answer.WRONG
    assert rules.guess(ANA, {"tab": "newer"}, known, NOW, limits) is (
        Answer.RIGHT if known else Answer.WRONG
    )


def test_a_code_that_was_not_made_begins_nothing_anew() -> None:
    rules = Rules()
    for _ in range(3):
        ask(rules)
    for _ in range(WRONG_MOST):
        guess(rules, "no")
    assert ask(rules, "one too many") is False
    assert guess(rules, "one too many") is Answer.ASK_AGAIN


def test_whoever_asked_for_nothing_is_told_to_ask() -> None:
    assert Rules().guess(ANA, {}, True, NOW, LIMITS) is Answer.ASK_AGAIN


def test_a_known_code_is_wrong_for_somebody_who_was_taken_off_the_list() -> None:
    rules = Rules()
    ask(rules)
    assert rules.guess(ANA, {"ana in tab": "right"}, False, NOW, LIMITS) is Answer.WRONG


def test_an_address_gets_three_codes_from_a_network_in_a_quarter_of_an_hour() -> None:
    rules = Rules()
    assert [ask(rules, now=NOW + n) for n in range(4)] == [True, True, True, False]
    elsewhere = Asker("home", "ana at home")
    assert ask(rules, who=elsewhere) is True
    assert ask(rules, now=NOW + 15 * MINUTE - 1) is False
    assert ask(rules, now=NOW + 15 * MINUTE) is True


def test_a_network_may_start_twenty_times_an_hour_and_is_told_when_again() -> None:
    rules = Rules()
    for n in range(20):
        who = Asker("lab", f"somebody {n}")
        assert rules.ask(who, f"tab {n}", "x", n % 2 == 0, NOW + n * 1000, LIMITS) is (n % 2 == 0)
    assert ask(rules, now=NOW + 30 * MINUTE) == TooMany(1800)
    assert ask(rules, now=NOW + 60 * MINUTE - 1) == TooMany(1)
    assert ask(rules, now=NOW + 60 * MINUTE) is True
    assert ask(rules, who=Asker("home", "ana at home")) is True


def test_when_all_mails_of_the_hour_are_sent_known_and_unknown_are_alike() -> None:
    rules = Rules()
    for n in range(500):
        who = Asker(f"net {n}", f"ana at net {n}")
        assert rules.ask(who, f"tab {n}", "x", True, NOW, LIMITS) is True
    assert ask(rules) is False
    assert guess(rules, "right") is Answer.WRONG
    assert len(rules.tallies["mail"]) == 1  # not five hundred instants to store each time
    later = NOW + 61 * MINUTE  # counted by the minute: never less than was sent
    assert ask(rules, now=later) is True


def test_mails_to_nobody_use_up_no_mails() -> None:
    rules = Rules()
    for n in range(600):
        rules.ask(Asker(f"net {n}", f"x at {n}"), f"tab {n}", "x", False, NOW, LIMITS)
    assert ask(rules) is True


def test_ten_failures_of_a_network_are_enough_for_ten_minutes() -> None:
    rules = Rules()
    for n in range(10):
        assert rules.guess(ANA, {f"tab {n}": "no"}, n % 2 == 0, NOW + n, LIMITS) is Answer.WRONG
    ask(rules, now=NOW + 10)
    assert guess(rules, "right", NOW + 10) == TooMany(600)
    assert guess(rules, "right", NOW + 10 * MINUTE) is Answer.RIGHT


def test_a_browser_of_an_earlier_sign_in_is_locked_out_by_nobody() -> None:
    rules = Rules()
    for n in range(30):
        rules.ask(ANA, f"tab {n}", "x", True, NOW, LIMITS)
        rules.guess(ANA, {f"tab {n}": "no"}, True, NOW, LIMITS)
    mine = replace(ANA, device="mine")
    for _ in range(OF_DEVICE.count):
        assert ask(rules, who=mine) is True
    assert guess(rules, "no", who=mine) is Answer.WRONG
    assert guess(rules, "right", who=mine) is Answer.RIGHT
    assert isinstance(ask(rules, who=mine), TooMany)  # then it is one of its network again
    assert ask(rules, now=NOW + 15 * MINUTE, who=mine) is True


def test_a_limit_that_was_lowered_holds_at_once() -> None:
    rules = Rules()
    for n in range(4):
        rules.ask(ANA, "tab", "x", True, NOW + n * MINUTE, OFF_BUT_NETWORK)
    lower = replace(OFF_BUT_NETWORK, network=Rate(2, 3600))
    said = rules.ask(ANA, "tab", "x", True, NOW + 4 * MINUTE, lower)
    assert said == TooMany((60 + 2 - 4) * 60)  # when two of the four count no more


def test_what_a_known_browser_asks_for_counts_for_no_limit() -> None:
    rules = Rules()
    for _ in range(5):
        ask(rules, who=replace(ANA, device="mine"))
    assert [ask(rules) for _ in range(3)] == [True] * 3


def test_a_part_that_is_left_out_limits_nothing() -> None:
    rules = Rules()
    for n in range(100):
        assert rules.ask(ANA, "tab", f"code {n}", True, NOW, OFF) is True
        assert rules.guess(ANA, {f"other {n}": "no"}, True, NOW, OFF) is Answer.WRONG
    assert not rules.tallies


def test_a_clock_that_is_set_back_locks_nobody_out() -> None:
    rules = Rules()
    for _ in range(30):
        ask(rules)
        guess(rules, "no")
    year = 365 * 24 * 60 * MINUTE
    assert ask(rules, now=NOW - year) is True
    assert guess(rules, "right", NOW - year) is Answer.RIGHT


def test_what_is_kept_does_not_grow_under_attack_and_codes_that_were_sent_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signin_rules, "ASKINGS_MOST", 100)
    monkeypatch.setattr(signin_rules, "TALLIES_MOST", 200)
    rules = Rules()
    rules.ask(ANA, "ana in tab", "right", True, NOW, LIMITS)
    for n in range(1000):
        rules.ask(Asker(f"net {n}", f"x at {n}"), f"tab {n}", "x", False, NOW + n, LIMITS)
        rules.changed.askings.clear()
        rules.changed.tallies.clear()
    assert len(rules.askings) == 100
    assert len(rules.tallies) == 200
    assert guess(rules, "right", NOW + 1000) is Answer.RIGHT
    end = NOW + 120 * MINUTE
    over = rules.tidy(end, LIMITS)
    assert over == (end - 20 * MINUTE + 1, end - 60 * MINUTE)
    assert not rules.askings
    assert not rules.tallies


# A slow model ------------------------------------------------------------------------------


@dataclass
class Model:
    """The same in the most obvious way: everything that ever happened, looked through each time."""

    starts: list[tuple[int, str]] = field(default_factory=list)
    given: list[tuple[int, str]] = field(default_factory=list)
    mails: list[int] = field(default_factory=list)
    failures: list[tuple[int, str]] = field(default_factory=list)
    own: list[tuple[int, str, str]] = field(default_factory=list)
    codes: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    wrong: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)

    def _come_back(self, tab: str, now: int) -> None:
        if now - self.last.get(tab, 0) >= 2 * LASTS:
            self.wrong[tab], self.codes[tab] = 0, []
        self.last[tab] = now

    def _own(self, what: str, who: Asker, now: int) -> bool:
        recent = [1 for at, w, d in self.own if (w, d) == (what, who.device) and now - at < 900_000]
        return bool(who.device) and len(recent) < 5

    def ask(
        self, who: Asker, tab: str, code: str, known: bool, now: int, most: SigninLimits
    ) -> bool | None:
        own = self._own("ask", who, now)
        if own:
            self.own.append((now, "ask", who.device))
        else:
            if _full(most.network, [at for at, n in self.starts if n == who.network], now):
                return None
            self.starts.append((now, who.network))
            if _full(most.code, [at for at, p in self.given if p == who.pair], now) or _full(
                most.mail, self.mails, now
            ):
                self._come_back(tab, now)
                return False
            self.given.append((now, who.pair))
            if known:
                self.mails.append(now)
        self._come_back(tab, now)
        good = [c for c in self.codes.get(tab, []) if now - c[1] < LASTS]
        if not good or self.wrong.get(tab, 0) >= 5:
            self.wrong[tab], good = 0, []
        self.codes[tab] = [*good, (code, now)]
        return known

    def guess(
        self, who: Asker, tab: str, code: str, known: bool, now: int, most: SigninLimits
    ) -> Answer | None:
        own = self._own("fail", who, now)
        if not own and _full(
            most.failure, [at for at, n in self.failures if n == who.network], now
        ):
            return None
        self._come_back(tab, now)
        good = [c for c, at in self.codes.get(tab, []) if now - at < LASTS]
        if known and code in good and self.wrong.get(tab, 0) < 5:
            self.codes[tab], self.wrong[tab] = [], 0
            return Answer.RIGHT
        if own:
            self.own.append((now, "fail", who.device))
        else:
            self.failures.append((now, who.network))
        self.wrong[tab] = min(5, self.wrong.get(tab, 0) + 1)
        return Answer.ASK_AGAIN if self.wrong[tab] >= 5 else Answer.WRONG


def _full(rate: Rate | None, times: list[int], now: int) -> bool:
    return rate is not None and sum(now - at < rate.per * 1000 for at in times) >= rate.count


@pytest.mark.parametrize("seed", range(40))
def test_random_histories_go_as_in_the_model(seed: int) -> None:
    dice = random.Random(seed)
    parts = (Rate(3, 900), Rate(8, 1200), Rate(12, 1800), Rate(6, 600))
    most = SigninLimits(*(rate if dice.random() < 0.8 else None for rate in parts))
    rules, model, now = Rules(), Model(), NOW
    for step in range(400):
        now += dice.choice((1, 1000, 20_000, 120_000, 120_000, 700_000))
        address, network = dice.choice(("ana", "ben", "who")), dice.choice(("lab", "home"))
        who = Asker(network, f"{address} at {network}", dice.choice(("", "", "d1", "d2")))
        tab, known = f"{address} in {dice.choice('ab')}", address != "who"
        if dice.random() < 0.5:
            asked = rules.ask(who, tab, f"code {step}", known, now, most)
            wanted = model.ask(who, tab, f"code {step}", known, now, most)
            assert (None if isinstance(asked, TooMany) else asked) == wanted
        else:
            some = [code for code, _ in model.codes.get(tab, [])] or ["none"]
            code = dice.choice(some) if dice.random() < 0.3 else "no"
            told = rules.guess(who, {tab: code}, known, now, most)
            assert (None if isinstance(told, TooMany) else told) == model.guess(
                who, tab, code, known, now, most
            )
        if dice.random() < 0.05:
            rules.tidy(now, most)


def test_ten_thousand_guesses_find_nothing_and_lock_out_no_known_browser() -> None:
    """Each code can be guessed five times, whatever is tried: 5 in 100 million for each mail."""
    rules, tries, codes = Rules(), 0, 0
    mine = replace(ANA, device="mine")
    for n in range(10_000):
        now = NOW + n * 60  # ten minutes in all
        attacker = Asker(f"net {n % 2000}", f"ana at net {n % 2000}")
        if n % 5 == 0:
            codes += rules.ask(attacker, f"tab {n // 5}", f"code {n}", True, now, LIMITS) is True
        answer = rules.guess(attacker, {f"tab {n // 5}": "guess"}, True, now, LIMITS)
        tries += isinstance(answer, Answer)
        assert answer is not Answer.RIGHT
    assert codes == 500
    assert rules.askings["tab 0"].codes == []
    end = NOW + 600_000
    assert ask(rules, "mine", end, mine) is True
    assert guess(rules, "mine", end, mine) is Answer.RIGHT
