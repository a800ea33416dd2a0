"""What a restored backup held back goes on, when it is let go, in the messages it had begun."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from copy import deepcopy
from pathlib import Path

from core.channel import NotSent, React, Send, Typing
from core.engines.base import ApprovalAsked, Finished, Started, Text
from core.store import copies
from core.turns import Result
from tests.fakes.channel import Fault
from tests.runner.scene import ANA, Scene


async def put_back(home: Path) -> None:
    """The home as a backup of it has it, with everything that was open held back."""
    home.mkdir(exist_ok=True)
    backup = home.parent / "backup"
    copies.backup(home / "test.db", backup)
    copies.restore(backup, home / "test.db", 1, force=True)


async def test_an_answer_that_was_held_back_takes_the_place_of_what_its_turn_shows(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with Scene(home, channel="telegram") as scene:
        await scene.says("work", lane="7")
        run = await scene.engine.started()
        run.say(Started("s"), Text("half of it"))
        await scene.until(lambda: any("half of it" in text for text in scene.texts("7")))
        scene.channel.decide = lambda action: Fault(NotSent("no route"))
        run.say(Text(", all of it"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: scene.parts.runner.view("telegram:7") is None)
        await scene.crash()
    await put_back(home)
    again = Scene(home, channel="telegram")
    again.channel = scene.channel
    again.channel.decide = lambda action: None
    async with again:
        assert await again.parts.runner.release() == (0, 1)
        await again.until(lambda: again.texts("7") == ["half of it, all of it"])


async def test_a_turn_that_was_held_back_before_its_prompt_left_edits_what_it_showed(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with Scene(home, channel="telegram") as scene:
        await scene.says("work", lane="7")
        run = await scene.engine.started()
        run.say(Started("s"), Text("first try"))
        await scene.until(lambda: any("first try" in text for text in scene.texts("7")))
        (turn,) = await scene.turns()
        await scene.crash()
    with closing(sqlite3.connect(home / "test.db")) as database, database:
        # A try that did not reach the engine after all, and the next one is only starting.
        database.execute("UPDATE turns SET status = 'starting' WHERE id = ?", (turn.id,))
    await put_back(home)
    again = Scene(home, channel="telegram")
    again.channel = scene.channel
    async with again:
        assert await again.parts.runner.release() == (1, 0)
        (await again.engine.started()).answer_with("second try")
        await again.until(lambda: again.texts("7") == ["second try"])


async def test_cards_and_notices_are_left_as_they_are_when_a_backup_comes_back(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with Scene(home, channel="telegram") as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.say(Started("s"), ApprovalAsked("q", "shell", "make"))
        await scene.says("and this")
        await scene.until(lambda: any("Waiting" in text for text in scene.texts()))
        await scene.until(lambda: any("make" in text for text in scene.texts()))
        await scene.crash()
    await put_back(home)
    again = Scene(home, channel="telegram")
    again.channel = scene.channel
    before = len(again.channel.calls)
    shown, marked = deepcopy(again.channel.messages), {**again.channel.reactions}
    async with again:
        await again.says("after it")
        (await again.engine.started()).answer_with("answered")
        await again.until(lambda: "answered" in again.texts())
        made = {call.kind for call in again.channel.calls[before:]}
        assert made - {Typing, React} == {Send}  # the new message may be marked as it waits
        assert {name: again.channel.messages[name] for name in shown} == shown
        assert {what: again.channel.reactions[what] for what in marked} == marked
        decides = again.parts.intake.ground.decides
        told = await decides.decide(1, "allow", ANA, may=True, admin=True)
        assert told.startswith("Expired")


async def test_of_two_who_let_go_at_once_one_does(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with Scene(home) as scene:
        await scene.says("work")
        await scene.engine.started()
        await scene.crash()
    with closing(sqlite3.connect(home / "test.db")) as database, database:
        database.execute("UPDATE turns SET status = 'waiting'")
    await put_back(home)
    async with Scene(home) as scene:
        runner = scene.parts.runner
        released = await asyncio.gather(runner.release(), runner.release())
        assert sorted(released) == [(0, 0), (1, 0)]
        (await scene.engine.started()).answer_with("once")
        await scene.until(lambda: scene.texts() == ["once"])
        assert len(scene.engine.runs) == 1


async def test_pieces_that_were_held_back_become_a_turn_before_what_is_sent_later(
    tmp_path: Path,
) -> None:
    home, limits = tmp_path / "home", {"paste_units": 10, "paste_quiet": 1.0}
    async with Scene(home, channel="telegram") as scene:
        scene.channel.set_limits(**limits)
        await scene.says("a long text of which more may come")
        await scene.crash()
    await put_back(home)
    async with Scene(home, channel="telegram") as scene:
        scene.channel.set_limits(**limits)
        await scene.says("another long text, also with more to come")
        await scene.parts.runner.release()
        for _ in range(2):
            await scene.parts.intake.released()
        (await scene.engine.started()).answer_with("1")
        (await scene.engine.started(2)).answer_with("2")
        await scene.until(lambda: scene.texts() == ["1", "2"])
        first, second = scene.engine.runs
        assert "a long text" in first.request.prompt
        assert "another long text" in second.request.prompt
