"""The data directory: its permissions, the lock that makes it ours for life, and the ballast.

Knows no SQL.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core.store.errors import Locked, StoreError

LOCK = "laneway.lock"
BALLAST = "ballast"
BALLAST_BYTES = 16 * 1024 * 1024


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Make the home if it is not there, and hold it; a second process is told who has it."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"cannot use the folder {home}: {error.strerror}. "
            "Check its permissions, or set LANEWAY_HOME to another folder."
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
            who = f" (process {holder})" if holder else ""
            raise Locked(
                f"{home} is in use by another Laneway{who}. "
                "Stop that one first, or set LANEWAY_HOME to another folder."
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)  # the lock goes with it, also when the process is killed


def make_private(path: Path) -> None:
    """Create the file for the owner alone; one that exists loses everybody else's rights."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)


def put_in_place(new: Path, path: Path) -> None:
    """Rename, and make the name itself durable."""
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Ballast:
    """Space kept back for a full disk, so that what runs can be settled and people told."""

    def __init__(self, home: Path, size: int = BALLAST_BYTES) -> None:
        self._path = home / BALLAST
        self._size = size

    @property
    def there(self) -> bool:
        return self._path.exists()

    def drop(self) -> bool:
        """Give the space back. False: there was none to give."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def make(self) -> bool:
        """Take the space, if that leaves at least as much again."""
        if self.there:
            return True
        try:
            if shutil.disk_usage(self._path.parent).free < 2 * self._size:
                return False
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(handle, 0, self._size)
            finally:
                os.close(handle)
        except OSError:
            with suppress(OSError):
                self._path.unlink()
            return False
        return True
