"""Rates, penalties and whose turn it is: pure, so time is a number."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rates import CHAT_BURST, GROUP_BURST, KEPT, Bucket, Rank, Rates, Ticket
from tests.examples import tried


def rates(total: float = 30.0, chat: float = 1.0, group: float = 20 / 60) -> Rates:
    return Rates(total, chat, group)


def granted(it: Rates, now: float) -> int:
    return len(it.grants(now))


def ask(it: Rates, count: int, chat: str = "c", rank: Rank = Rank.FINAL) -> list[Ticket]:
    return [it.ask(chat, True, rank) for _ in range(count)]


def test_a_conversation_is_not_delayed_and_a_flood_keeps_to_the_rate() -> None:
    it = rates()
    ask(it, 10)
    assert granted(it, 0.0) == CHAT_BURST
    assert granted(it, 0.9) == 0
    assert granted(it, 1.0) == 1
    assert granted(it, 3.0) == 2


def test_a_group_has_a_rate_of_its_own() -> None:
    it = rates()
    for _ in range(40):
        it.ask("g", False, Rank.FINAL)
    assert granted(it, 0.0) == GROUP_BURST
    assert granted(it, 60.0) == GROUP_BURST  # no more than that piles up
    assert it.next_at(60.0) == 63.0


def test_it_says_when_it_is_worth_asking_again() -> None:
    it = rates()
    assert it.next_at(0.0) is None
    ask(it, 6)
    it.grants(0.0)
    assert it.next_at(0.0) == 1.0


def test_what_is_cosmetic_leaves_calls_for_what_is_not() -> None:
    it = rates()
    ask(it, 10, rank=Rank.PREVIEW)
    ask(it, 10, rank=Rank.REACTION)
    assert {ticket.rank for ticket in it.grants(0.0)} == {Rank.PREVIEW}
    ask(it, 2, rank=Rank.FINAL)
    assert granted(it, 0.0) == 2


def test_a_reaction_never_takes_the_call_of_a_preview() -> None:
    it = rates()
    ask(it, 10, rank=Rank.REACTION)
    it.grants(0.0)
    ask(it, 1, rank=Rank.PREVIEW)
    assert granted(it, 0.0) == 1


def test_urgent_before_final_before_notice_before_preview() -> None:
    it = rates(total=1.0)
    ask(it, 1, "x")
    it.grants(0.0)
    for rank in reversed(Rank):
        it.ask(f"chat {rank}", True, rank)
    order = [ticket.rank for second in range(1, 6) for ticket in it.grants(float(second))]
    assert order == list(Rank)


def test_who_hurries_goes_with_the_better_rank() -> None:
    it = rates(total=1.0)
    ask(it, 1, "x")
    it.grants(0.0)
    first, second = ask(it, 1, "a", Rank.NOTICE) + ask(it, 1, "b", Rank.NOTICE)
    it.hurry(second, Rank.FINAL)
    assert it.grants(1.0) == [second]
    assert it.grants(2.0) == [first]


def test_a_penalty_holds_its_chat_to_the_end_and_no_other() -> None:
    it = rates()
    it.hold("c", True, 7.0, 0.0)
    ask(it, 1)
    other = it.ask("other", True, Rank.NOTICE)
    assert it.grants(6.999) == [other]
    assert it.next_at(6.999) == 7.0
    assert granted(it, 7.0) == 1


def test_a_longer_penalty_is_not_shortened_by_a_later_one() -> None:
    it = rates()
    it.hold("c", True, 7.0, 0.0)
    it.hold("c", True, 1.0, 1.0)
    ask(it, 1)
    assert granted(it, 6.0) == 0


def test_a_penalty_of_the_token_holds_everybody() -> None:
    it = rates()
    it.hold_everywhere(5.0, 0.0)
    ask(it, 1, "a", Rank.URGENT)
    assert not it.spare("b", True, 4.9)
    assert granted(it, 4.9) == 0
    assert granted(it, 5.0) == 1


def test_a_penalty_for_typing_holds_signs_and_no_message() -> None:
    it = rates()
    it.hold("c", True, 30.0, 0.0, cosmetic=True)
    ask(it, 1, rank=Rank.PREVIEW)
    ask(it, 1, rank=Rank.FINAL)
    assert [ticket.rank for ticket in it.grants(1.0)] == [Rank.FINAL]
    assert not it.spare("c", True, 1.0)


def test_typing_takes_nothing_from_its_chat() -> None:
    it = rates()
    for _ in range(5):
        assert it.spare("c", True, 0.0)
    ask(it, 5)
    assert granted(it, 0.0) == 5


def test_typing_takes_only_what_the_token_has_to_spare() -> None:
    it = rates(total=30.0)
    assert sum(it.spare(f"c{n}", True, 0.0) for n in range(100)) < 15
    ask(it, 1)
    assert granted(it, 0.0) == 1


def test_a_platform_without_limits_never_waits() -> None:
    it = rates(math.inf, math.inf, math.inf)
    ask(it, 1000)
    assert granted(it, 0.0) == 1000


def test_even_the_smallest_rate_lets_a_preview_through() -> None:
    it = rates(total=0.5)
    ask(it, 1, rank=Rank.PREVIEW)
    ask(it, 1, rank=Rank.REACTION)
    assert granted(it, 0.0) == 1
    assert granted(it, 2.0) == 1


def test_chats_at_rest_are_forgotten() -> None:
    it = rates(total=math.inf)
    for n in range(20 * KEPT):
        ask(it, 1, f"c{n}")
        it.grants(float(n))
    assert len(it._chats) <= KEPT + 1


def test_a_call_that_was_not_made_is_given_back() -> None:
    it = rates()
    tickets = ask(it, 5)
    it.grants(0.0)
    it.give_back(tickets[0], 0.0)
    ask(it, 1)
    assert granted(it, 0.0) == 1


steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("abc"), st.sampled_from(list(Rank))),
        st.tuples(st.just("wait"), st.floats(0.0, 10.0)),
        st.tuples(st.just("hold"), st.sampled_from("abc"), st.floats(0.0, 20.0)),
        st.tuples(st.just("hold all"), st.floats(0.0, 20.0)),
    ),
    max_size=60,
)


@tried(50)
@given(steps)
def test_whatever_happens_penalties_and_rates_are_kept_and_everybody_gets_a_turn(
    steps: list[tuple],
) -> None:
    it, now = rates(), 0.0
    held = dict.fromkeys("abc", 0.0)
    everywhere = 0.0
    asked = served = 0
    calls: dict[str, list[float]] = {chat: [] for chat in "abc"}

    def grant() -> None:
        nonlocal served
        for ticket in it.grants(now):
            assert now >= max(held[ticket.chat], everywhere)
            calls[ticket.chat].append(now)
            served += 1

    for step in steps:
        match step:
            case ("ask", chat, rank):
                it.ask(chat, True, rank)
                asked += 1
            case ("wait", seconds):
                now += seconds
            case ("hold", chat, seconds):
                it.hold(chat, True, seconds, now)
                held[chat] = max(held[chat], now + seconds)
            case ("hold all", seconds):
                it.hold_everywhere(seconds, now)
                everywhere = max(everywhere, now + seconds)
        grant()
    while (at := it.next_at(now)) is not None:
        assert at > now or it.grants(now)
        now = max(now, at)
        grant()
    assert served == asked
    for times in calls.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                span = times[last] - times[first]
                assert last - first + 1 <= CHAT_BURST + span * 1.0 + 0.01


class Plain:
    """The same by walking past everybody each time: slow, and easy to see through."""

    def __init__(self) -> None:
        self.total = Bucket(30.0, 15.0)
        self.chats = {chat: Bucket(1.0, CHAT_BURST) for chat in "abc"}
        self.waiting: list[Ticket] = []

    def grants(self, now: float) -> list[Ticket]:
        granted = []
        for rank in Rank:
            for ticket in [one for one in self.waiting if one.rank is rank]:
                bucket = self.chats[ticket.chat]
                if max(self.total.ready_at(rank, now), bucket.ready_at(rank, now)) <= now:
                    self.total.take(now)
                    bucket.take(now)
                    self.waiting.remove(ticket)
                    granted.append(ticket)
        return granted

    def next_at(self, now: float) -> float | None:
        return min(
            (
                max(
                    self.total.ready_at(one.rank, now), self.chats[one.chat].ready_at(one.rank, now)
                )
                for one in self.waiting
            ),
            default=None,
        )


moves = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from("abc"), st.sampled_from(list(Rank))),
        st.tuples(st.just("wait"), st.floats(0.0, 5.0)),
        st.tuples(st.just("hold"), st.sampled_from("abc"), st.booleans()),
        st.tuples(st.just("withdraw"), st.integers(0, 50)),
        st.tuples(st.just("give back"), st.integers(0, 50)),
        st.tuples(st.just("hurry"), st.integers(0, 50), st.sampled_from(list(Rank))),
    ),
    max_size=80,
)


@tried(20)
@given(moves)
def test_the_same_go_at_the_same_time_as_if_everybody_was_looked_at(moves: list[tuple]) -> None:
    it, plain, now = rates(), Plain(), 0.0
    granted: list[Ticket] = []
    for move in moves:
        match move:
            case ("ask", chat, rank):
                plain.waiting.append(it.ask(chat, True, rank))
            case ("wait", seconds):
                now += seconds
            case ("hold", chat, cosmetic):
                it.hold(chat, True, 2.0, now, cosmetic=cosmetic)
                bucket = plain.chats[chat]
                if cosmetic:
                    bucket.held_cosmetic = max(bucket.held_cosmetic, now + 2.0)
                else:
                    bucket.held_until = max(bucket.held_until, now + 2.0)
            case ("withdraw", number) if plain.waiting:
                it.withdraw(plain.waiting.pop(number % len(plain.waiting)))
            case ("give back", number) if granted:
                ticket = granted[number % len(granted)]
                it.give_back(ticket, now)
                plain.chats[ticket.chat].give_back(now)
                plain.total.give_back(now)
            case ("hurry", number, rank) if plain.waiting:
                ticket = plain.waiting[number % len(plain.waiting)]
                if rank < ticket.rank:  # goes behind those who have that rank already
                    plain.waiting.remove(ticket)
                    plain.waiting.append(ticket)
                it.hurry(ticket, rank)
        expected = plain.grants(now)
        assert it.grants(now) == expected
        granted += expected
        assert it.next_at(now) == pytest.approx(plain.next_at(now))


@pytest.mark.parametrize(
    "chat_of", [lambda number: "c", lambda number: f"c{number}"], ids=["one chat", "a chat each"]
)
def test_thousands_that_wait_cost_no_walk_past_them(
    monkeypatch: pytest.MonkeyPatch, chat_of: Callable[[int], str]
) -> None:
    waiting, seconds = 3000, 20
    it, looks = rates(), 0
    ready_at = Bucket.ready_at

    def counted(bucket: Bucket, rank: Rank, now: float) -> float:
        nonlocal looks
        looks += 1
        return ready_at(bucket, rank, now)

    for number in range(waiting):
        it.ask(chat_of(number), True, Rank.FINAL)
    it.grants(0.0)
    it.next_at(0.0)
    monkeypatch.setattr(Bucket, "ready_at", counted)
    done = 0
    for second in range(1, seconds + 1):
        for ticket in it.grants(float(second)):
            done += 1
            it.ask(ticket.chat, True, Rank.FINAL)  # it failed, and is tried again
            it.next_at(float(second))
    assert done >= seconds
    assert looks < 40 * (done + seconds)
