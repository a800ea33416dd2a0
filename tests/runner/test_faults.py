"""Engines that lie and disks that fail: one turn's trouble stays that turn's, and is settled."""

import asyncio
from pathlib import Path

import pytest

from core.answer import SHOWN_MOST
from core.engines.base import FileMade, Finished, Started, Text, Usage
from core.turns import Result
from tests.runner.scene import Scene

BIG = "x" * 20_000


async def test_a_number_no_store_can_hold_costs_the_turn_and_nothing_else(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("lie", lane="bad")
        await scene.says("work", lane="good")
        liar, good = await scene.engine.started(1), await scene.engine.started(2)
        liar.say(Started("s"), Usage(tokens_in=10**30), Text("told"), Finished(Result.DONE))
        liar.end()
        await scene.until(lambda: scene.texts("bad") and not scene.parts.runner.view("bad"))
        good.answer_with("fine")
        await scene.until(lambda: scene.texts("good") == ["fine"])
        assert sorted(await scene.statuses()) == ["done", "failed"]


async def test_a_character_cut_in_two_by_the_engine_is_whole_in_the_answer(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("smile")
        run = await scene.engine.started()
        run.say(Started("s"), Text("\ud83d"), Text("\ude00 ok"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: scene.texts() == ["😀 ok"])
        (turn,) = await scene.turns()
        assert turn.answer == "😀 ok"


@pytest.mark.parametrize("text", ["\ud83d", "\ude00\ud83d", "a\0b", "\udcff" * 10])
async def test_half_characters_never_keep_a_broken_engine_from_being_settled(
    tmp_path: Path, text: str
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("break")
        run = await scene.engine.started()
        run.say(Started("s"), Text(text))
        run.fail(RuntimeError("a bug of the adapter"))
        await scene.until(lambda: scene.texts() and not scene.parts.runner.view("main"))
        assert await scene.statuses() == ["failed"]
        await scene.says("ping")
        (await scene.engine.started(2)).answer_with("pong")
        await scene.until(lambda: scene.texts()[-1:] == ["pong"])


async def test_files_that_are_none_do_not_fail_a_good_turn(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("files")
        run = await scene.engine.started()
        circle = run.request.folder / "circle"
        circle.symlink_to(circle)
        run.say(Started("s"), FileMade(Path("/etc/passwd"), "passwd"), FileMade(circle, "circle"))
        run.say(FileMade(Path("a\0b"), "nul"), Text("done"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: "done" in scene.texts())
        assert sum("not sent" in text for text in scene.texts()) == 3
        assert await scene.statuses() == ["done"]


async def test_an_answer_too_long_for_a_chat_is_shown_in_part_and_sent_as_a_file(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("write a book")
        run = await scene.engine.started()
        pieces = [f"chapter {number} {BIG}\n\n" for number in range(10)]
        run.say(Started("s"), *map(Text, pieces), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: any(m.path for m in scene.channel.messages.values()))
        shown = [m for m in scene.channel.messages.values() if not m.path]
        assert sum(len(m.text) for m in shown) < SHOWN_MOST + 500
        (file,) = [m.path for m in scene.channel.messages.values() if m.path]
        assert file.read_text() == "".join(pieces)


async def test_a_stop_while_the_disk_is_full_loses_neither_answer_nor_session(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("work")
        run = await scene.engine.started()
        run.say(Started("s1"), Text("half of it"))
        await scene.until(lambda: run.handed_over)
        async with scene.full_disk():
            stopping = asyncio.create_task(scene.says("/stop " + BIG), name="stop")
            await scene.until(lambda: run.stops == 1)
            await asyncio.wait((stopping,), timeout=0.5)
        await stopping
        await scene.until(lambda: not scene.parts.runner.view("main"))
        (turn,) = await scene.turns()
        assert (turn.status.value, turn.answer) == ("stopped", "half of it")
        await scene.says("again")
        second = await scene.engine.started(2)
        assert second.request.session == "s1"
        second.answer_with("on")


async def test_turns_of_a_channel_that_is_not_set_up_wait_in_the_store(tmp_path: Path) -> None:
    async with Scene(tmp_path, channel="telegram") as scene:
        await scene.says("one", lane="7")
        await scene.says("two", lane="7")
        (await scene.engine.started()).say(Started("s"))
        await scene.crash()
    async with Scene(tmp_path) as without:
        await without.says("hello")
        (await without.engine.started()).answer_with("here")
        await without.until(lambda: without.texts() == ["here"])
        assert sorted(await without.statuses()) == ["done", "running", "waiting"]
    async with Scene(tmp_path, channel="telegram") as back:
        (await back.engine.started()).answer_with("2")
        await back.until(lambda: "2" in back.texts("7"))
        assert sorted(await back.statuses()) == ["done", "done", "interrupted"]
