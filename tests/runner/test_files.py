"""Files an agent makes: what was looked at is what leaves."""

from __future__ import annotations

from pathlib import Path

from core.channel import SendFile
from core.engines.base import FileMade, Finished, Started
from core.turns import Result
from tests.runner.scene import Scene


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
        assert await scene.statuses() == ["done"]
