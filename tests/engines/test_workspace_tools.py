"""What a model can see of a workspace through the gateway's read tools, and what it cannot."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from core.engines import workspace_tools
from core.engines.base import Request
from core.engines.workspace_tools import ANSWER_MOST, LINES, ToolFailed, reading_tools


class Model:
    """Calls the tools of a workspace as a model does."""

    def __init__(self, root: Path, *hidden: Path) -> None:
        self.root = root
        request = Request("lane", 1, root, "")
        self.tools = {tool.name: tool for tool in reading_tools(request, hidden)}

    async def read(self, path: str, **more: object) -> str:
        return await self.tools["read_file"].call({"path": path, **more})

    async def entries(self, path: str = "") -> list[str]:
        return (await self.tools["list_files"].call({"path": path})).splitlines()

    async def search(self, text: str, path: str = "") -> list[str]:
        return (await self.tools["search_files"].call({"text": text, "path": path})).splitlines()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "docs" / "b.md").write_text("Two apples\n")
    (root / "docs" / "deep" / "c.md").write_text("nothing\n")
    (tmp_path / "secret.txt").write_text("two secrets\n")
    return root


@pytest.fixture
def model(root: Path) -> Model:
    return Model(root)


async def test_a_file_is_read(model: Model, root: Path) -> None:
    assert await model.read("a.txt") == "one\ntwo\nthree"
    assert await model.read("./docs/b.md") == "Two apples"
    assert await model.read(str(root / "a.txt")) == "one\ntwo\nthree"


async def test_a_long_file_is_read_in_parts(model: Model, root: Path) -> None:
    (root / "long.txt").write_text("\n".join(map(str, range(1, LINES + 11))))
    first = (await model.read("long.txt")).splitlines()
    assert first[-1] == f"(lines 1 to {LINES} of {LINES + 10})"
    rest = await model.read("long.txt", first_line=LINES + 1)
    assert rest.splitlines()[0] == str(LINES + 1)
    assert "lines" not in rest


async def test_what_is_answered_has_an_end(model: Model, root: Path) -> None:
    (root / "wide.txt").write_text("x" * 3_000_000)
    assert len(await model.read("wide.txt")) < ANSWER_MOST + 200
    assert all(len(line) < 400 for line in await model.search("x"))


async def test_files_are_listed_and_found(model: Model) -> None:
    assert await model.entries() == ["a.txt", "docs/", "docs/b.md", "docs/deep/", "docs/deep/c.md"]
    assert await model.entries("docs/deep") == ["docs/deep/c.md"]
    assert await model.search("TWO") == ["a.txt:2: two", "docs/b.md:1: Two apples"]
    assert await model.search("two", "docs") == ["docs/b.md:1: Two apples"]
    assert await model.search("pears") == ["(nothing found)"]


async def test_long_lists_and_finds_say_that_there_is_more(
    model: Model, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_tools, "ENTRIES", 3)
    monkeypatch.setattr(workspace_tools, "MATCHES", 1)
    assert "more" in (await model.entries())[-1]
    assert "perhaps more" in (await model.search("two"))[-1]


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/passwd", "docs", "gone.txt", "a\0b", ""])
async def test_what_is_no_file_inside_is_not_read(model: Model, path: str) -> None:
    with pytest.raises(ToolFailed, match="no file"):
        await model.read(path)


@pytest.mark.parametrize("path", ["..", "/etc", "a.txt", "docs/../..", "gone"])
async def test_what_is_no_folder_inside_is_not_looked_into(model: Model, path: str) -> None:
    with pytest.raises(ToolFailed, match="no folder"):
        await model.entries(path)
    with pytest.raises(ToolFailed, match="no folder"):
        await model.search("two", path)


async def test_links_lead_nowhere_outside(model: Model, root: Path) -> None:
    (root / "file").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent)
    (root / "inner").symlink_to(root / "docs" / "b.md")
    for path in ("file", "folder/secret.txt"):
        with pytest.raises(ToolFailed):
            await model.read(path)
    assert await model.read("inner") == "Two apples"
    assert not any("secret" in line for line in await model.search("two"))
    with pytest.raises(ToolFailed):
        await model.entries("folder")


async def test_pipes_and_binaries_hold_nothing_up(model: Model, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "binary").write_bytes(b"two\0two")
    async with asyncio.timeout(30):
        with pytest.raises(ToolFailed):
            await model.read("pipe")
        with pytest.raises(ToolFailed, match="not a text file"):
            await model.read("binary")
        assert await model.search("two") == ["a.txt:2: two", "docs/b.md:1: Two apples"]


async def test_what_version_control_and_caches_hold_is_passed_over(
    model: Model, root: Path
) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("two")
    assert not any(".git" in line for line in [*await model.entries(), *await model.search("two")])


async def test_the_gateways_own_files_are_not_there(root: Path) -> None:
    """A workspace that an admin chose may hold the gateway's home."""
    home = root / "home"
    home.mkdir()
    (home / "key").write_text("two keys")
    (root / ".env").write_text("TOKEN=two")
    (root / "way").symlink_to(home)
    model = Model(root, home, root / ".env")
    for path in ("home/key", "way/key", ".env", "docs/../home/key"):
        with pytest.raises(ToolFailed):
            await model.read(path)
    with pytest.raises(ToolFailed):
        await model.entries("home")
    assert await model.search("two") == ["a.txt:2: two", "docs/b.md:1: Two apples"]


async def test_a_workspace_inside_the_home_is_seen(root: Path) -> None:
    model = Model(root, root.parent)
    assert await model.read("a.txt") == "one\ntwo\nthree"


async def test_nothing_to_find_is_said(model: Model) -> None:
    with pytest.raises(ToolFailed, match="what to find"):
        await model.search(" ")


async def test_odd_arguments_are_taken_for_nothing(model: Model) -> None:
    for arguments in ({"path": 7}, {"path": None}, {}):
        with pytest.raises(ToolFailed):
            await model.tools["read_file"].call(arguments)
