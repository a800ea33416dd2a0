"""Threads that share a folder work in it one after the other, and say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.engine import PuppetEngine
from tests.runner.scene import Scene


@pytest.mark.parametrize("inner", ["", "inner"])
async def test_the_second_thread_waits_says_so_and_goes_on_by_itself(
    tmp_path: Path, inner: str
) -> None:
    shared = tmp_path / "shared"
    (shared / "inner").mkdir(parents=True)
    async with Scene(tmp_path / "home", PuppetEngine(), LANEWAY_WORKSPACE=str(shared)) as scene:
        if inner:
            await scene.says(f"/workspace {shared / inner}", lane="other")
        await scene.says("one")
        first = await scene.engine.started()
        await scene.says("two", lane="other")
        await scene.until(
            lambda: any("working in the same folder" in text for text in scene.texts("other"))
        )
        assert len(scene.engine.runs) == 1
        first.answer_with("1")
        (await scene.engine.started(2)).answer_with("2")
        await scene.until(lambda: "2" in scene.texts("other"))
        await scene.until(lambda: not any(t.startswith("Waiting") for t in scene.texts("other")))
