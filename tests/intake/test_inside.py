"""Files in a folder in which an agent is at work: never through a link, never exchanged."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from core import inside
from core.inside import Empty, NotInside, TooLarge

INNER = PurePosixPath("inbox/lane/1-a.txt")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    return elsewhere


# In -------------------------------------------------------------------------------------------


def test_a_file_is_put_with_the_folders_to_it(root: Path, tmp_path: Path) -> None:
    assert inside.put(root, INNER, b"hello") == root / INNER
    assert (root / INNER).read_bytes() == b"hello"
    source = tmp_path / "big"
    source.write_bytes(b"x" * 3_000_000)
    inside.put(root, INNER, source)
    assert (root / INNER).stat().st_size == 3_000_000
    assert os.listdir(root / "inbox/lane") == ["1-a.txt"]
    assert inside.holds(root, INNER)


@pytest.mark.parametrize("link", ["inbox", "inbox/lane"])
def test_a_folder_that_is_a_link_is_not_gone_through(
    root: Path, elsewhere: Path, link: str
) -> None:
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(elsewhere)
    (elsewhere / "lane").mkdir()
    (elsewhere / "lane/1-a.txt").touch()
    (elsewhere / "1-a.txt").touch()
    assert not inside.holds(root, INNER)
    with pytest.raises(NotInside, match=Path(link).name):
        inside.put(root, INNER, b"x")
    assert sorted(os.listdir(elsewhere)) == ["1-a.txt", "lane"]
    assert (elsewhere / "1-a.txt").read_bytes() == b""


def test_nothing_is_made_beyond_a_link(root: Path, elsewhere: Path) -> None:
    (root / "inbox").symlink_to(elsewhere)
    with pytest.raises(NotInside):
        inside.put(root, INNER, b"x")
    assert os.listdir(elsewhere) == []


def test_a_link_in_the_files_place_is_replaced_not_followed(root: Path, elsewhere: Path) -> None:
    (elsewhere / "precious").write_text("precious")
    (root / "inbox/lane").mkdir(parents=True)
    (root / INNER).symlink_to(elsewhere / "precious")
    assert not inside.holds(root, INNER)
    inside.put(root, INNER, b"x")
    assert (elsewhere / "precious").read_text() == "precious"
    assert not (root / INNER).is_symlink()


@pytest.mark.parametrize("inner", ["../a", "a/../../b", "..", ".", "a\0b"])
def test_a_path_that_leads_elsewhere_is_refused(root: Path, inner: str) -> None:
    with pytest.raises(NotInside):
        inside.put(root, PurePosixPath(inner), b"x")
    assert not inside.holds(root, PurePosixPath(inner))


def test_a_write_that_fails_leaves_nothing(root: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        inside.put(root, PurePosixPath("a"), tmp_path / "not there")
    (root / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        inside.put(root, PurePosixPath("taken"), b"x")
    assert os.listdir(root) == ["taken"]


def test_the_folder_itself_may_be_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    inside.put(tmp_path / "link", PurePosixPath("a"), b"x")
    assert (root / "a").read_bytes() == b"x"


# Out ------------------------------------------------------------------------------------------


def test_a_copy_is_taken_that_nobody_can_exchange(root: Path, tmp_path: Path) -> None:
    made = root / "report.md"
    made.write_text("first")
    into = tmp_path / "home/outgoing"
    copy = inside.take_out(root, made, into, 100)
    made.unlink()
    made.symlink_to("/etc/hostname")
    assert copy.read_text() == "first"
    assert copy.parent == into
    assert copy.name.endswith("-report.md")
    assert into.stat().st_mode & 0o777 == 0o700
    assert copy.stat().st_mode & 0o777 == 0o600


def test_a_link_that_stays_inside_is_taken(root: Path, tmp_path: Path) -> None:
    (root / "real").write_text("x")
    (root / "link").symlink_to("real")
    (tmp_path / "way").symlink_to(root)
    for path in (root / "link", tmp_path / "way/link", Path("link")):
        assert inside.take_out(root, path, tmp_path / "out", 100).read_text() == "x"


def test_what_is_not_a_regular_file_inside_is_not_taken(
    root: Path, elsewhere: Path, tmp_path: Path
) -> None:
    (elsewhere / "secret").write_text("secret")
    (root / "link").symlink_to(elsewhere / "secret")
    (root / "circle").symlink_to(root / "circle")
    (root / "folder").mkdir()
    (root / "folder/way").symlink_to(elsewhere)
    os.mkfifo(root / "pipe")
    names = [
        "link", "circle", "folder", "folder/way/secret", "pipe", "missing", ".", "",
        "../elsewhere/secret", "a\0b", "\ud83d", "n" * 300, "/etc/hostname",
    ]  # fmt: skip
    for name in names:
        with pytest.raises(NotInside):
            inside.take_out(root, root / name, tmp_path / "out", 100)
    with pytest.raises(NotInside):
        inside.take_out(tmp_path / "no such folder", root / "a", tmp_path / "out", 100)
    assert not (tmp_path / "out").exists()


def test_a_folder_exchanged_after_the_look_leads_nowhere(
    root: Path, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "made").mkdir()
    (root / "made/a").write_text("mine")
    (elsewhere / "a").write_text("secret")
    looked = Path.resolve

    def exchanged(path: Path, strict: bool = False) -> Path:
        real = looked(path, strict)
        if path.name == "a":
            (root / "made").rename(root / "gone")
            (root / "made").symlink_to(elsewhere)
        return real

    monkeypatch.setattr(Path, "resolve", exchanged)
    with pytest.raises(NotInside):
        inside.take_out(root, root / "made/a", tmp_path / "out", 100)


def test_a_file_that_is_too_large_leaves_no_copy(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_bytes(b"x" * 101)
    with pytest.raises(TooLarge):
        inside.take_out(root, root / "a", tmp_path / "out", 100)
    assert inside.take_out(root, root / "a", tmp_path / "out", 101).stat().st_size == 101
    zero = os.stat_result((0o100600, 1, 1, 1, 0, 0, 0, 0, 0, 0))
    with monkeypatch.context() as growing:  # it is small when it is looked at
        growing.setattr("core.inside.os.fstat", lambda number: zero)
        with pytest.raises(TooLarge):
            inside.take_out(root, root / "a", tmp_path / "out", 100)
    assert len(os.listdir(tmp_path / "out")) == 1


def test_a_file_with_nothing_in_it_leaves_no_copy(root: Path, tmp_path: Path) -> None:
    (root / "a").touch()
    with pytest.raises(Empty):
        inside.take_out(root, root / "a", tmp_path / "out", 100)
    assert os.listdir(tmp_path / "out") == []


def test_old_copies_go_unless_they_are_kept(root: Path) -> None:
    for name in ("old", "old but waiting", "new"):
        (root / name).touch()
        os.utime(root / name, (1000, 1000) if "old" in name else (3000, 3000))
    assert inside.tidy(root, {root / "old but waiting"}, 2000) == 1
    assert sorted(os.listdir(root)) == ["new", "old but waiting"]
    assert inside.tidy(root / "not there", (), 2000) == 0
