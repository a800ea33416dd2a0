"""How far a channel was read: what is stored with what was accepted, and where it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core.channel import Mark
from core.messages import Address, Message, Missed, Moved
from core.people import Lists
from core.store import reads
from core.store.copies import restore
from tests.fakes.clock import FakeClock
from tests.intake.scene import ANA, BEN, LAB, MAL, Scene, opened

DAY = 24 * 3600.0
CHANNEL = "telegram"
LISTED = frozenset({f"telegram:{LAB}"})


@asynccontextmanager
async def asking(home: Path, clock: FakeClock, **more: Any) -> AsyncIterator[Scene]:
    """A gateway whose channel asks at its start, as it should."""
    async with opened(home, clock, **more) as scene:
        await scene.intake.marks(CHANNEL)
        yield scene


@pytest.fixture
async def scene(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Scene]:
    async with asking(tmp_path, clock) as made:
        yield made


async def saved(scene: Scene) -> int:
    """How far the channel came, as a restart would find it."""
    while scene.store.busy:
        await asyncio.sleep(0)
    found = (await reads.reached(scene.store)).get(CHANNEL)
    return found.at if found else 0


async def stuck(scene: Scene, at: int) -> asyncio.Task[Message]:
    """A message that the disk does not take yet."""
    scene.rules.stuck = asyncio.Event()
    task = asyncio.create_task(scene.say("slow", at=at))
    while not scene.ground.lock(CHANNEL).locked():
        await asyncio.sleep(0)
    return task


async def test_a_channel_that_never_listened_has_missed_nothing(scene: Scene) -> None:
    marks = await scene.intake.marks(CHANNEL)
    assert (marks.since, dict(marks.threads), marks.places) == (0, {}, LISTED)


async def test_the_newest_accepted_message_of_a_direct_chat_is_its_mark(scene: Scene) -> None:
    await scene.say("one")
    last = await scene.say("two")
    marks = await scene.intake.marks(CHANNEL)
    assert marks.threads == {last.address: Mark(last.message_id, last.at)}


async def test_nothing_is_marked_for_a_channel_that_does_not_ask(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with opened(tmp_path, clock) as scene:
        await scene.say("one")
        assert not (await scene.intake.marks(CHANNEL)).threads
        said = await scene.say("two")
        assert set((await scene.intake.marks(CHANNEL)).threads) == {said.address}


async def test_an_older_message_that_comes_later_moves_no_mark_back(scene: Scene) -> None:
    now = scene.clock.now()
    newest = scene.message("newest", at=now)
    await scene.intake.accept([newest, scene.message("older", at=now - 5)])
    await scene.say("older still", at=now - 9)
    marks = await scene.intake.marks(CHANNEL)
    assert marks.threads[newest.address] == Mark(newest.message_id, now)


async def test_commands_and_messages_that_run_nothing_are_marked_as_well(scene: Scene) -> None:
    for text in ("hello", "/status", ""):
        said = await scene.say(text)
        marks = await scene.intake.marks(CHANNEL)
        assert marks.threads[said.address].message_id == said.message_id


async def test_a_strangers_message_marks_nothing(scene: Scene) -> None:
    await scene.say("let me in", MAL)
    await scene.say("/whoami", MAL)
    assert not (await scene.intake.marks(CHANNEL)).threads


async def test_an_engaged_thread_is_named_for_seven_days(scene: Scene, clock: FakeClock) -> None:
    said = await scene.mention("here", BEN, thread="7", engages=True)
    await scene.mention("not engaged", BEN, thread="8")
    assert set((await scene.intake.marks(CHANNEL)).threads) == {said.address}
    await clock.advance(7 * DAY + 1)
    assert not (await scene.intake.marks(CHANNEL)).threads


async def test_a_thread_that_needs_mentions_is_left_to_its_place(scene: Scene) -> None:
    await scene.mention("here", BEN, thread="7", engages=True)
    await scene.mention("/listen mention", BEN, thread="7", engages=True)
    assert not (await scene.intake.marks(CHANNEL)).threads


async def test_a_place_that_is_no_longer_allowed_is_not_asked(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with asking(tmp_path, clock) as scene:
        await scene.mention("here", thread="7", engages=True)
    lists = Lists(admins=frozenset({ANA}), places=frozenset({"other:1"}))
    async with asking(tmp_path, clock, lists=lists) as scene:
        marks = await scene.intake.marks(CHANNEL)
        assert (dict(marks.threads), marks.places) == ({}, frozenset())


async def test_marks_move_with_their_chat(scene: Scene) -> None:
    said = await scene.mention("here", thread="7", engages=True)
    await scene.intake.accept([Moved("m1", CHANNEL, LAB, "-1002")])
    marks = await scene.intake.marks(CHANNEL)
    assert marks.threads == {Address(CHANNEL, "-1002", "7"): Mark(said.message_id, said.at)}
    assert marks.places == {"telegram:-1002"}


async def test_how_far_a_channel_came_is_known_at_once_and_after_a_restart(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with asking(tmp_path, clock) as scene:
        said = await scene.say("hello")
        for at in (5_000, 4_000):
            scene.intake.reached(CHANNEL, at)
        assert (await scene.intake.marks(CHANNEL)).since == 5_000
    async with asking(tmp_path, clock) as scene:
        marks = await scene.intake.marks(CHANNEL)
        assert (marks.since, set(marks.threads)) == (5_000, {said.address})


async def test_how_far_a_channel_came_is_saved_every_ten_seconds_at_most(
    scene: Scene, clock: FakeClock
) -> None:
    scene.intake.reached(CHANNEL, 1_000)
    await clock.settle()
    assert await saved(scene) == 1_000
    for at in range(2_000, 9_000, 1_000):
        scene.intake.reached(CHANNEL, at)
        await clock.advance(1.0)
    assert await saved(scene) == 1_000
    await clock.advance(5.0)
    assert await saved(scene) == 8_000


async def test_that_a_channel_listened_at_all_is_saved_before_anything_it_hands_in(
    scene: Scene,
) -> None:
    scene.intake.reached("another", 500)
    await saved(scene)  # and now there is a pause
    scene.intake.reached(CHANNEL, 1000)
    await scene.say("one")
    assert (await reads.reached(scene.store))[CHANNEL].at == 1000


async def test_nothing_counts_as_accepted_before_it_is_stored(scene: Scene) -> None:
    waiting = await stuck(scene, at=3_000)
    scene.intake.reached(CHANNEL, 9_000)
    await asyncio.sleep(0)
    assert await saved(scene) == 2_999
    assert scene.rules.stuck is not None
    scene.rules.stuck.set()
    await waiting
    assert (await scene.intake.marks(CHANNEL)).since == 9_000


async def test_what_was_given_up_is_read_again_after_the_channel_asked(scene: Scene) -> None:
    waiting = await stuck(scene, at=3_000)
    waiting.cancel()
    await asyncio.wait([waiting])
    scene.rules.stuck = None
    scene.intake.reached(CHANNEL, 9_000)
    assert (await scene.intake.marks(CHANNEL)).since == 2_999
    await scene.say("cut off", at=3_000)
    scene.intake.reached(CHANNEL, 9_500)
    assert (await scene.intake.marks(CHANNEL)).since == 9_500


async def test_marks_come_back_with_a_backup(tmp_path: Path, clock: FakeClock) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    async with asking(first, clock) as scene:
        said = await scene.say("hello")
        scene.intake.reached(CHANNEL, 5_000)
        await clock.settle()
        assert await saved(scene) == 5_000
        await scene.store.backup(tmp_path / "copy.db")
    restore(tmp_path / "copy.db", second / "laneway.db", clock.now())
    async with asking(second, clock) as scene:
        marks = await scene.intake.marks(CHANNEL)
        assert (marks.since, set(marks.threads)) == (5_000, {said.address})
        assert marks.runs_from == clock.now()  # what was said before may have been answered
        scene.intake.reached(CHANNEL, 6_000)
        await clock.settle()
        assert await saved(scene) == 6_000
    async with asking(second, clock) as scene:
        assert (await scene.intake.marks(CHANNEL)).runs_from == clock.now()


async def test_what_was_missed_and_told_is_not_read_again(scene: Scene) -> None:
    said = await scene.say("hello", at=1_000)
    missed = Missed("missed:1", said.address, True, 1, 2_000, 3_000, message_id="99")
    await scene.intake.accept([missed])
    assert (await scene.intake.marks(CHANNEL)).threads == {said.address: Mark("99", 3_000)}


async def test_without_a_restore_everything_that_was_missed_runs(scene: Scene) -> None:
    assert (await scene.intake.marks(CHANNEL)).runs_from == 0


async def test_who_is_named_what_a_restored_backup_does_not_know_is_told_why(
    tmp_path: Path, clock: FakeClock
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    async with asking(first, clock) as scene:
        said = await scene.say("hello")
        scene.intake.reached(CHANNEL, 5_000)
        await clock.settle()
        assert await saved(scene) == 5_000
        await scene.store.backup(tmp_path / "copy.db")
    restore(tmp_path / "copy.db", second / "laneway.db", clock.now())
    async with asking(second, clock) as scene:
        earlier, later = clock.now() - 60_000, clock.now() + 1
        for identity, at in (("missed:1", earlier), ("missed:2", later)):
            missed = Missed(identity, said.address, True, 1, at, at, ("was it answered?",))
            await scene.intake.accept([missed])
        assert [text.partition(" here")[0] for text in scene.said] == [
            "A backup was restored, so I do not remember 1 message",
            "While I was away I missed 1 message",
        ]
