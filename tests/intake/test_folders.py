"""Folders of lanes: one each, and known without asking the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.folders import claim, folder_name, resolved, shown_name, workspace
from core.store import reads
from tests.intake.scene import ANA, Scene


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("telegram:-100:36", "telegram_-100_36"),
        ("telegram:-100:36", "telegram:-100_36"),
        ("main", "Main"),
        ("telegram:" + "9" * 200 + ":1", "telegram:" + "9" * 200 + ":2"),
    ],
)
def test_no_two_lanes_have_the_same_folder(tmp_path: Path, one: str, other: str) -> None:
    assert folder_name(one).lower() != folder_name(other).lower()
    assert workspace(tmp_path, one, "", "") != workspace(tmp_path, other, "", "")


@pytest.mark.parametrize(
    "lane", ["main", "telegram:-100:36", "..", "", "a/../b", "ü" * 300, "a\0b"]
)
def test_a_lanes_folder_is_one_harmless_and_readable_name(lane: str) -> None:
    name = folder_name(lane)
    assert len(name) < 60
    assert not name.startswith((".", "-"))
    assert not set("/\\\0 :").intersection(name)
    assert folder_name("telegram:-100:36").startswith("telegram_-100_36-")


def test_a_folder_is_resolved_when_it_is_set(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert resolved(tmp_path / "link") == tmp_path / "real"
    (tmp_path / "round").symlink_to("round")
    assert resolved(tmp_path / "round").name == "round"


async def test_messages_of_a_lane_with_a_workspace_do_not_ask_the_disk(
    scene: Scene, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    project = outside / "project"
    project.mkdir()
    (outside / "link").symlink_to("project")
    await scene.say("hello")
    await scene.say(f"/workspace {outside / 'link'}")
    lane = await reads.lane(scene.store, ANA)
    assert lane is not None
    assert lane.workspace == str(project)
    monkeypatch.setattr(Path, "resolve", None)
    assert scene.ground.facts(lane).folder == str(project)
    assert claim("", "/shared") == "/shared"
    await scene.say("and now?")


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ("Bericht für Ana (2).pdf", "Bericht für Ana (2).pdf"),
        ("../../evil\r\nX-Other: 1\n.txt", "evil X-Other: 1 .txt"),
        ("a\u202efdp.exe", "a fdp.exe"),
        ("made\udcff.csv", "made?.csv"),
        ("x" * 300 + ".csv", "x" * 116 + ".csv"),
        (" \n ", "file"),
        ("C:\\made\\a.txt", "a.txt"),
    ],
)
def test_a_files_name_is_one_line_that_can_be_seen(chosen: str, shown: str) -> None:
    assert shown_name(chosen) == shown
