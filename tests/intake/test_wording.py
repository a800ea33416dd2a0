"""What people read: plain, with a next step, and nothing of others' words works as markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import lane_words, wording
from core.lane_commands import News, Refusal, Refuse, Tell
from core.turns import Kind, Origin, Status, Stop, StopKind, Turn
from tests.intake.scene import ANA, BEN


def name(person: str) -> str:
    return {ANA: "Ana", BEN: "Ben"}.get(person, person)


def turn(text: str = "fix the tests", person: str = BEN, **more: object) -> Turn:
    stop = more.get("stop")
    status = more.get("status", Status.STOPPED)
    assert isinstance(status, Status)
    assert stop is None or isinstance(stop, Stop)
    return Turn(
        1, "lane", person, Origin.PERSON, Kind.MAIN, 0, label=text, stop=stop, status=status
    )


def test_a_stop_names_who_stopped_whose_turn_and_what_was_dropped() -> None:
    stopped = turn(stop=Stop(StopKind.STOP, ANA))
    told = Tell(News.STOPPED, "lane", stopped, ANA, (turn("one"), turn("two", ANA)))
    assert lane_words.tell(told, name) == (
        'Ana stopped "fix the tests" of Ben. Dropped 2 messages:\n- "one" of Ben\n- "two"'
    )


def test_a_stop_of_ones_own_turn_does_not_name_its_owner_twice() -> None:
    told = Tell(News.STOPPED, "lane", turn(person=ANA, stop=Stop(StopKind.SKIP, ANA)), ANA)
    assert lane_words.tell(told, name) == 'Ana skipped "fix the tests".'


def test_a_stop_of_what_is_stopping_says_so_shortly() -> None:
    stopping = turn(person=ANA, stop=Stop(StopKind.STOP, ANA), status=Status.RUNNING)
    told = Tell(News.NOTHING, "lane", stopping, ANA, reason=Refusal.STOPPING)
    assert lane_words.tell(told, name) == '"fix the tests" is being stopped already.'


def test_one_dropped_message_is_named_with_whose_it_was() -> None:
    told = Tell(News.DROPPED, "lane", turn("one"), ANA)
    assert lane_words.tell(told, name) == 'Dropped "one" of Ben.'
    assert lane_words.tell(Tell(News.DROPPED, "lane", turn("one"), BEN), name) == 'Dropped "one".'


def test_what_has_to_be_put_right_first_is_not_to_be_sent_again() -> None:
    text = wording.failed("deploy", "the agent is signed out. Sign in first.", again=False)
    assert text == '"deploy" failed: the agent is signed out. Sign in first.'


def test_who_waits_for_a_pause_is_told_how_it_ends_and_by_whom() -> None:
    assert wording.waiting_paused(1) == (
        "Waiting: 1 message; paused. It is kept, and runs when an admin sends /resume."
    )
    both = wording.waiting_paused(2, here=True, everywhere=True)
    assert both.endswith("They are kept, and run when an admin sends /resume and /resume all.")
    assert wording.waiting_paused(2, here=False, everywhere=True).endswith("sends /resume all.")


def test_a_cap_of_one_turn_is_told_as_one() -> None:
    assert "1 turn of yours runs already" in wording.waiting_person(1, 1)
    assert "3 turns of yours run already" in wording.waiting_person(1, 3)


def test_a_full_queue_says_that_the_message_will_not_run() -> None:
    text = lane_words.refuse(Refuse(turn("q6"), Refusal.QUEUE_FULL), 5)
    assert "Not accepted" in text
    assert "5 messages" in text
    assert "will not run" in text


def test_a_message_without_words_is_refused_in_a_whole_sentence() -> None:
    text = lane_words.refuse(Refuse(turn(""), Refusal.QUEUE_FULL), 5)
    assert "so your message will not run." in text


@pytest.mark.parametrize("reason", list(Refusal))
def test_every_refusal_has_words(reason: Refusal) -> None:
    assert lane_words.refusal(reason, "something").endswith(".")


@pytest.mark.parametrize("news", list(News))
@pytest.mark.parametrize("about", [None, turn()])
def test_every_piece_of_news_has_words(news: News, about: Turn | None) -> None:
    assert lane_words.tell(Tell(news, "lane", about, by=ANA), name).strip()


@pytest.mark.parametrize("status", [one for one in Status if one.over])
@pytest.mark.parametrize("kind", [None, *StopKind])
def test_every_end_has_words(status: Status, kind: StopKind | None) -> None:
    about = turn(status=status, stop=Stop(kind) if kind else None)
    assert lane_words.tell(Tell(News.ENDED, "lane", about), name).strip()


def test_the_waiting_notice_tells_how_many_behind_what_and_since_when() -> None:
    text = wording.waiting_behind(2, "fix the tests", 180_000)
    assert text == 'Waiting: 2 messages behind "fix the tests", running 3 min.'
    assert "you are 2nd" in wording.waiting_slot(1, 8, 2)


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (5_400_000, "1 h 30 min"), (2e8, "2 days")],
)
def test_durations_are_short(ms: float, words: str) -> None:
    assert wording.duration(int(ms)) == words


def test_money_has_two_decimals_and_more_below_a_cent() -> None:
    assert [wording.money(one) for one in (0, 1.5, 0.0042)] == ["$0.00", "$1.50", "$0.0042"]


def test_ordinals() -> None:
    assert [wording.ordinal(one) for one in (1, 2, 3, 4, 11, 12, 21, 112)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "21st", "112th",
    ]  # fmt: skip


@given(st.text(max_size=80))
def test_words_of_others_are_one_line_without_markup_or_pings(text: str) -> None:
    shown = wording.plain(text)
    assert "\n" not in shown
    assert "\r" not in shown
    for at, char in enumerate(shown):
        if char in "*_`[]<>~|":
            assert shown[at - 1] == "\\"
        if char == "@":
            assert not shown[at + 1 : at + 2].isalnum()


@given(st.text(max_size=300))
def test_a_label_is_short_and_one_line(text: str) -> None:
    label = wording.label(text)
    assert len(label) <= wording.LABEL_WORDS
    assert "\n" not in label


def test_an_engines_error_is_quoted_and_the_next_step_is_told() -> None:
    text = wording.failed("deploy", "exit 1\n@everyone **boom**")
    assert "\n" not in text
    assert "@everyone" not in text
    assert "The thread is free" in text


@pytest.mark.parametrize("reason", list(Refusal))
def test_a_message_that_waits_is_never_said_to_be_gone(reason: Refusal) -> None:
    told = Tell(News.DENIED, "lane", turn(status=Status.WAITING), ANA, reason=reason)
    text = lane_words.tell(told, name)
    assert "not started" not in text
    assert "did not ask" not in text
    assert "queue it" not in text
