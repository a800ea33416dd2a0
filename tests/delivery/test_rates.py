"""Rates, penalties and whose turn it is: pure, so time is a number."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from core.rates import CHAT_BURST, GROUP_BURST, KEPT, Rank, Rates, Ticket


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


@settings(max_examples=200, deadline=None)
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
