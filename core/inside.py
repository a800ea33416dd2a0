"""Files inside a folder in which somebody else is at work: no link ever leads out of it.

An agent may exchange a folder for a link at any moment. So every way goes down from an open
folder, one name at a time, and what was looked at is what is used. It knows no turn and no thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from core.folders import safe_name

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_EXISTING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe opens at once
_PIECE = 1024 * 1024


class NotInside(Exception):
    """There is no such regular file or folder inside, or a link stands in the way to it."""


class Empty(Exception):
    """A file has nothing in it: platforms take none such."""


class TooLarge(Exception):
    """The file has more bytes than may be taken."""


def holds(root: Path, inner: PurePosixPath) -> bool:
    """Whether a regular file is there, reached without a link."""
    try:
        with _down(root, inner.parts[:-1]) as folder:
            found = os.stat(_plain(inner.name), dir_fd=folder, follow_symlinks=False)
    except (NotInside, OSError):
        return False
    return stat.S_ISREG(found.st_mode)


def put(root: Path, inner: PurePosixPath, content: bytes | Path) -> Path:
    """Write a file, whole or not at all, and the folders to it; its path.

    What has this name already is replaced, never followed or written into. Raises NotInside when
    a link or a file stands where a folder is needed, and OSError when the disk refuses.
    """
    name, draft = _plain(inner.name), f".{secrets.token_hex(8)}.part"
    with _down(root, inner.parts[:-1], make=True) as folder:
        try:
            with os.fdopen(os.open(draft, _NEW, 0o666, dir_fd=folder), "wb") as new:
                if isinstance(content, bytes):
                    new.write(content)
                else:
                    with content.open("rb") as source:
                        shutil.copyfileobj(source, new, _PIECE)
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise
    return root / inner


def take_out(root: Path, path: Path, into: Path, most: int, hidden: Sequence[Path] = ()) -> Path:
    """Copy a regular file from inside ``root`` into a private folder; the path of the copy.

    ``hidden`` as for ``read``.

    What is sent is this copy, so nobody can exchange it after it was looked at. Raises NotInside,
    TooLarge or Empty, and OSError when the copy cannot be written.
    """
    with _opened(root, path, hidden) as source:
        if os.fstat(source.fileno()).st_size > most:
            raise TooLarge
        private(into)
        copy = into / f"{secrets.token_hex(8)}-{safe_name(path.name)}"
        try:
            with os.fdopen(os.open(copy, _NEW, 0o600), "wb") as new:
                _copy(source, new, most)
                if not new.tell():
                    raise Empty
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
    return copy


def read(root: Path, path: Path, most: int, hidden: Sequence[Path] = ()) -> bytes:
    """A regular file's bytes from inside ``root``, at most so many. Raises NotInside, OSError.

    ``hidden``: files and folders, links resolved, that are not there for whoever asks. One that
    holds the whole of ``root`` hides nothing in it.
    """
    with _opened(root, path, hidden) as source:
        return source.read(most)


def walk(root: Path, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, list[str], list[str]]]:
    """Each folder below ``path`` with the names of its folders and regular files, both in order.

    No link is followed. Folders that are taken out of the list are not looked into. Raises
    NotInside for a path that is no folder inside; what cannot be read below it is passed over.
    """
    parts = [part for part in path.parts if part != "."]
    with _down(root, parts) as top:
        for inner, folders, names, held in os.fwalk(".", dir_fd=top):
            folders.sort()
            where = PurePosixPath(*parts, inner)
            yield where, folders, [name for name in sorted(names) if _regular(name, held)]


def _regular(name: str, folder: int) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def private(folder: Path) -> Path:
    """Make a folder that only we can look into."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder


def tidy(folder: Path, keep: Collection[Path], before: float) -> int:
    """Delete the files of a private folder that are older (Unix time) and not kept; how many."""
    removed = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # gone already, or tried again the next time
                old = entry.stat(follow_symlinks=False).st_mtime < before
                if old and Path(entry.path) not in keep and not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    removed += 1
    return removed


@contextmanager
def _down(root: Path, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """An open folder below ``root``, whose own path may well lead through links."""
    held = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for name in map(_plain, names):
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=held)
            deeper = _without_links(name, _FOLDER, held)
            os.close(held)
            held = deeper
        yield held
    finally:
        os.close(held)


@contextmanager
def _opened(root: Path, path: Path, hidden: Sequence[Path]) -> Iterator[BinaryIO]:
    """A regular file inside, open. A link that stays inside is fine; it is resolved first."""
    try:
        base = root.resolve()
        inner = (base / path).resolve().relative_to(base)
        closed = [one for one in hidden if not base.is_relative_to(one)]
        if any((base / inner).is_relative_to(one) for one in closed):
            raise NotInside(str(path))
        with _down(base, inner.parts[:-1]) as folder:
            number = _without_links(_plain(inner.name), _EXISTING, folder)
    except (
        OSError,
        ValueError,
        RuntimeError,
    ) as fault:  # no such path can exist, or it is not ours
        raise NotInside(str(path)) from fault
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode) or any(_same(found, one) for one in closed):
        os.close(number)
        raise NotInside(str(path))
    with os.fdopen(number, "rb") as file:
        yield file


def _same(found: os.stat_result, other: Path) -> bool:
    """Whether it is that very file, whatever it is called here."""
    try:
        return os.path.samestat(found, os.stat(other))
    except OSError:
        return False


def _without_links(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as fault:
        if fault.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NotInside(name) from fault
        raise


def _plain(name: str) -> str:
    """A single name; what would lead elsewhere is none."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise NotInside(name)
    return name


def _copy(source: BinaryIO, target: BinaryIO, most: int) -> None:
    """All of it; it may be growing while it is read."""
    left = most
    while piece := source.read(min(_PIECE, left + 1)):
        if len(piece) > left:
            raise TooLarge
        target.write(piece)
        left -= len(piece)
