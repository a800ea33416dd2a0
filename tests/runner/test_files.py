"""Files an agent makes: what was looked at is what leaves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.channel import Refused, SendFile, Typing
from core.engines.base import FileMade, Finished, Started, Text, ToolStarted
from core.messages import Address, FileKind, FileRef, Message
from core.turns import Result
from core.wording import EMPTY_ANSWER
from tests.runner.scene import ANA, Scene


async def test_a_file_exchanged_after_it_was_offered_leaves_as_it_was(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    async with Scene(tmp_path) as scene:
        await scene.says("make a report")
        run = await scene.engine.started()
        made = run.request.folder / "report.md"
        made.write_text("the report")
        run.say(Started("s"), FileMade(made, "report.md"))
        await scene.until(lambda: scene.channel.of(SendFile))
        made.unlink()
        made.symlink_to(secret)
        run.say(Finished(Result.DONE))
        run.end()
        (sent,) = [call.action for call in scene.channel.of(SendFile)]
        assert isinstance(sent, SendFile)
        assert sent.name == "report.md"
        assert sent.path.parent == scene.settings.home / "outgoing"
        assert sent.path.read_text() == "the report"


@pytest.mark.parametrize("name", [".env", "link", "other name", "home/laneway.db"])
async def test_what_is_the_gateway_s_own_never_leaves_though_it_lies_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / ".env"
    secret.write_text("LANEWAY_TELEGRAM_TOKEN=1:x")
    (tmp_path / "link").symlink_to(secret)
    (tmp_path / "other name").hardlink_to(secret)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "laneway.db").write_text("all that was ever said")
    settings = {"LANEWAY_WORKSPACE": str(tmp_path)}
    async with Scene(tmp_path / "home", **settings) as scene:
        await scene.says("make a report")
        run = await scene.engine.started()
        run.say(Started("s"))
        await scene.until(lambda: run.handed_over)
        assert run.request.toolbox is not None
        reply = await run.request.toolbox.call("send_file", {"path": name})
        assert reply.failed
        run.say(FileMade(tmp_path / name, name), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: any("not sent" in text for text in scene.texts()))
        assert not scene.channel.of(SendFile)


async def test_a_file_that_cannot_be_copied_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        (scene.settings.home / "outgoing").write_text("in the way")
        await scene.says("make a report")
        run = await scene.engine.started()
        made = run.request.folder / "report.md"
        made.write_text("the report")
        run.say(Started("s"), FileMade(made, "report.md"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: any("could not be sent" in text for text in scene.texts()))
        await scene.until(lambda: not scene.parts.runner.view("main"))
        assert await scene.statuses() == ["done"]


async def test_a_turn_that_only_sent_a_file_did_not_end_without_a_word(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("make a report")
        run = await scene.engine.started()
        made = run.request.folder / "report.md"
        made.write_text("the report")
        run.say(Started("s"), ToolStarted("1", "write"), FileMade(made, "report.md"))
        await scene.until(lambda: scene.channel.of(SendFile))
        await scene.until(lambda: any("write" in text for text in scene.texts()))
        run.say(Text("\n"), Finished(Result.DONE))
        run.end()
        await scene.says("next")
        (await scene.engine.started(2)).answer_with("here")
        # The file, which has no text, and the next answer: no remark, and no preview is left.
        await scene.until(lambda: scene.texts() == ["", "here"])
        assert await scene.statuses() == ["done", "done"]


async def test_a_turn_that_sent_nothing_says_so(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("hello")
        run = await scene.engine.started()
        run.say(Started("s"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: scene.texts() == [EMPTY_ANSWER])


async def test_a_file_that_the_platform_refuses_is_named_and_its_answer_is_another_thing(
    tmp_path: Path,
) -> None:
    async with Scene(tmp_path) as scene:
        telling = asyncio.create_task(scene.parts.undelivered.run(scene.parts.runner.take))
        scene.channel.fail(SendFile, Refused("it does not take such files"))
        await scene.says("make a report")
        run = await scene.engine.started()
        made = run.request.folder / "report.md"
        made.write_text("the report")
        run.say(Started("s"), FileMade(made, "report.md"), Text("done"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: any('"report.md" could not be sent' in t for t in scene.texts()))
        assert not any("The answer to" in text for text in scene.texts())
        telling.cancel()


async def test_an_empty_file_is_told_of_and_not_sent(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await scene.says("make a report")
        run = await scene.engine.started()
        made = run.request.folder / "report.md"
        made.touch()
        run.say(Started("s"), FileMade(made, "report.md"), Text("done"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: any("is empty" in text for text in scene.texts()))
        assert not scene.channel.of(SendFile)


@pytest.mark.parametrize("comes", [True, False])
async def test_the_typing_sign_stands_while_a_file_is_slow_to_come_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes: bool
) -> None:
    here = asyncio.Event()

    async def slow(file: FileRef, target: Path) -> None:
        await here.wait()
        if not comes:
            raise Refused("gone")
        target.write_text("at last")

    async with Scene(tmp_path, times=40) as scene:
        monkeypatch.setattr(scene.channel, "fetch", slow)
        await scene.parts.intake.accept(
            [
                Message(
                    identity="local:slow", message_id="slow",
                    address=Address(scene.channel.name, "main"), sender=ANA, sender_name="Ana",
                    text="look", at=scene.clock.now(), direct=True,
                    files=(FileRef("F1", FileKind.DOCUMENT, "a.txt", "text/plain"),),
                )
            ]
        )  # fmt: skip
        await scene.until(lambda: len(scene.channel.of(Typing)) >= 3)
        here.set()
        if comes:
            run = await scene.engine.started()
            run.answer_with("seen")
        await scene.until(scene.texts)
        signs = len(scene.channel.of(Typing))
        await scene.clock.sleep(10)
        assert len(scene.channel.of(Typing)) == signs
