"""``/usage``: what a thread, a person and all have used, and what of it is not known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.store import rows
from core.usage import Period, Used, cost, period, told
from core.wording import money
from tests.fakes.clock import FakeClock
from tests.intake.scene import ANA, BEN, Scene, opened

DAY = 86_400


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def scene(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Scene]:
    async with opened(tmp_path, clock) as made:
        yield made


async def used(
    scene: Scene,
    person: str,
    tokens: int | None,
    cost: float | None,
    model: str = "small-1",
    place: str = "",
) -> None:
    """A turn that has run, and what it told."""
    await (scene.mention if place else scene.say)("work", person)
    turn = (await scene.turns())[-1].id
    await scene.run(turn)
    now = scene.clock.now()
    written = [
        rows.turn_started(turn, now, "openai", model),
        rows.turn_prompted(turn, now, "s", model),
        rows.turn_result(turn, now, "done", ""),
    ]
    if tokens is not None:
        written.append(rows.usage(turn, tokens, tokens // 2, cost))
    await scene.store.save(*written)


async def test_a_member_sees_the_thread_and_the_own_sum(scene: Scene) -> None:
    await used(scene, BEN, 1000, 0.25)
    await used(scene, BEN, 3000, 0.5, place="lab")
    await used(scene, ANA, 8000, 4.0, place="lab")
    await scene.say("/usage", BEN)
    assert scene.said[-1].splitlines() == [
        "Used in the last 30 days:",
        "",
        "- here: 1 turn, 1,000 tokens in and 500 out, $0.25",
        "- by you: 2 turns, 4,000 tokens in and 2,000 out, $0.75",
    ]
    await scene.mention("/usage", BEN)
    assert "- here: 2 turns, 11,000 tokens in and 5,500 out, $4.50" in scene.said[-1]


async def test_an_admin_sees_all(scene: Scene) -> None:
    await used(scene, BEN, 1000, 0.25)
    await used(scene, ANA, 1000, 0.004)
    await scene.say("/usage")
    assert "- by you: 1 turn, 1,000 tokens in and 500 out, $0.004" in scene.said[-1]
    assert "- by all: 2 turns, 2,000 tokens in and 1,000 out, $0.25" in scene.said[-1]


async def test_nothing_used_is_said(scene: Scene) -> None:
    await scene.say("/usage", BEN)
    assert "- here: nothing" in scene.said[-1]
    assert "- by you: nothing" in scene.said[-1]


async def test_a_time_span_counts_up_to_now(scene: Scene) -> None:
    await used(scene, ANA, 1000, 1.0)
    await scene.clock.advance(8 * DAY)
    await used(scene, ANA, 2000, 2.0)
    await scene.say("/usage 7d")
    assert scene.said[-1].startswith("Used in the last 7 days:")
    assert "- here: 1 turn, 2,000 tokens in and 1,000 out, $2.00" in scene.said[-1]


async def test_everything_is_told_to_who_asks_for_it(scene: Scene) -> None:
    await used(scene, ANA, 1000, 1.0)
    await scene.clock.advance(31 * DAY)
    await scene.say("/usage")
    assert "- here: nothing" in scene.said[-1]
    await scene.say("/usage all")
    assert scene.said[-1].startswith("Used so far:\n\n- here: 1 turn")


async def test_a_span_that_is_none_is_told_with_an_example(scene: Scene) -> None:
    await scene.say("/usage last week")
    assert (
        scene.said[-1] == "last week is no time span. Write it like this: /usage 7d, or /usage all"
    )


async def test_a_cost_that_nobody_told_is_said_and_not_guessed(scene: Scene) -> None:
    await used(scene, ANA, 1000, 0.5)
    await used(scene, ANA, 1000, None, "mystery_1")
    await used(scene, ANA, None, None, "silent")
    await scene.say("/usage")
    assert "$0.50 and 2 turns whose cost is not known" in scene.said[-1]
    assert "No price was known for mystery\\_1 (openai)." in scene.said[-1]
    assert "prices.toml" in scene.said[-1]
    assert "silent" not in scene.said[-1], "no price would help where no tokens are told"


async def test_a_member_is_not_shown_what_models_others_use(scene: Scene) -> None:
    await used(scene, ANA, 1000, None, "mystery")
    await scene.say("/usage", BEN)
    assert "mystery" not in scene.said[-1]


async def test_a_turn_that_still_runs_has_no_unknown_cost_yet(scene: Scene) -> None:
    await scene.say("work")
    turn = (await scene.turns())[-1].id
    now = scene.clock.now()
    await scene.store.save(
        rows.turn_started(turn, now, "openai", "m"), rows.turn_prompted(turn, now, "s", "m")
    )
    await scene.say("/usage")
    assert "- here: 1 turn, $0.00" in scene.said[-1]


async def test_what_never_began_is_not_counted(scene: Scene) -> None:
    await scene.say("work")
    await scene.say("waits")
    await scene.say("/usage")
    assert "- here: nothing" in scene.said[-1]


# In words


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", Period(1_000_000_000_000 - 30 * DAY * 1000, "in the last 30 days")),
        ("ALL", Period(0, "so far")),
        ("7d", Period(1_000_000_000_000 - 7 * DAY * 1000, "in the last 7 days")),
        ("1d", Period(1_000_000_000_000 - DAY * 1000, "in the last day")),
        (" 12 H ", Period(1_000_000_000_000 - DAY * 500, "in the last 12 hours")),
        ("2w", Period(1_000_000_000_000 - 14 * DAY * 1000, "in the last 2 weeks")),
        ("90000d", Period(0, "in the last 90000 days")),
        ("0d", None),
        ("7", None),
        ("-7d", None),
        ("7d 7d", None),
        ("٧d", None),
    ],
)
def test_a_time_span_is_read(typed: str, found: Period | None) -> None:
    assert period(typed, 1_000_000_000_000) == found


@pytest.mark.parametrize(
    ("spent", "words"),
    [
        (Used(), "nothing"),
        (Used(2, 0, 0, None, 2), "2 turns, cost not known"),
        (Used(1, 10, 5, 0.1), "1 turn, 10 tokens in and 5 out, $0.10"),
        (Used(3, 0, 0, 0.1, 1), "3 turns, $0.10 and 1 turn whose cost is not known"),
    ],
)
def test_a_sum_is_told(spent: Used, words: str) -> None:
    assert told(spent) == words


def test_sums_keep_apart_what_is_nothing_and_what_is_not_known() -> None:
    assert (Used(1, cost=0.1) + Used(1, cost=0.2)).cost == 0.3
    assert (Used(1, unpriced=1) + Used(1, unpriced=1)) == Used(2, unpriced=2)
    assert cost(Used(1, unpriced=1) + Used(1, cost=0.0)).startswith("$0.00 and 1 turn")


@pytest.mark.parametrize(
    ("dollars", "shown"),
    [(0, "$0.00"), (1.5, "$1.50"), (0.0042, "$0.0042"), (1234.567, "$1234.57"), (1e-9, "$0.00")],
)
def test_money_has_two_decimals_and_more_below_a_cent(dollars: float, shown: str) -> None:
    assert money(dollars) == shown
