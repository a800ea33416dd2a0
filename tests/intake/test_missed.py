"""What was missed while nobody listened is told where it was said, and runs nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.messages import Address, Missed
from core.wording import missed as words
from tests.intake.scene import BEN, LAB, MAL, Scene

HOUR = 3_600_000
THREAD = Address("telegram", LAB, "7")


def missed(scene: Scene, address: Address = THREAD, direct: bool = False) -> Missed:
    now = scene.clock.now()
    return Missed(
        "missed:7", address, direct, 2, now - 50 * HOUR, now - 30 * HOUR, ("first *one*", "second")
    )


async def test_the_thread_is_told_what_was_missed_and_nothing_runs(scene: Scene) -> None:
    await scene.intake.accept([missed(scene)])
    assert scene.said == [
        "While I was away I missed 2 messages here. They came between 2 days and 30 h ago and "
        'will not run:\n- "first \\*one\\*"\n- "second"\n\nSend again what still matters.'
    ]
    assert [one.lane for one in scene.rules.deliveries] == [f"telegram:{LAB}:7"]
    assert await scene.turns() == []


async def test_the_same_miss_is_told_once(scene: Scene) -> None:
    for _ in range(2):
        await scene.intake.accept([missed(scene)])
    assert len(scene.said) == 1


async def test_a_message_goes_on_in_the_thread_that_was_told(scene: Scene) -> None:
    said = scene.message("second", chat=LAB, thread="7", addressed=True)
    await scene.intake.accept([missed(scene), said])
    (turn,) = await scene.turns()
    assert turn.lane == f"telegram:{LAB}:7"


@pytest.mark.parametrize(
    ("chat", "direct"), [("-1005", False), (MAL.partition(":")[2], True), ("700000002", True)]
)
async def test_nobody_is_told_where_nobody_may_talk(scene: Scene, chat: str, direct: bool) -> None:
    await scene.say("/whoami", MAL)  # a stranger's direct chat has a lane as well
    before = list(scene.said)
    await scene.intake.accept([missed(scene, Address("telegram", chat), direct)])
    assert scene.said == before


async def test_a_known_persons_direct_chat_is_told(scene: Scene) -> None:
    said = await scene.say("hello", BEN)
    await scene.intake.accept([missed(scene, said.address, True)])
    assert len(scene.said) == 1


async def test_none_missed_is_not_told(scene: Scene) -> None:
    await scene.intake.accept([replace(missed(scene), count=0)])
    assert scene.said == []


def test_the_first_words_are_named_and_the_rest_counted() -> None:
    said = words(9, 2 * HOUR, 2 * HOUR, [f"message {n}" for n in range(9)])
    assert "came 2 h ago" in said
    assert '"message 4"' in said
    assert '"message 5"' not in said
    assert "- and 4 more" in said


def test_without_words_the_count_says_it() -> None:
    assert words(1, HOUR, HOUR, ["", " "]) == (
        "While I was away I missed 1 message here. It came 1 h ago and will not run. "
        "Send again what still matters."
    )
