"""A look at a file: its end where it is long. A pipe or a device is never waited for.

Disks may hang for ever (another machine's, mostly), so each look has a thread of its own that
nobody waits for longer than the limit; while one hangs, no other is started for that file.
"""

from __future__ import annotations

import asyncio
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from core.watch_rules import Seen, Unseen
from core.watching.beside import beside

MOST = 1024 * 1024  # bytes that are read of a file: its end
HUNG = "the disk does not answer"


@dataclass(slots=True)
class FileLook:
    """``kept_out``: folders of the gateway's own, of which nothing is shown but what is in ``let``.

    ``limit``: seconds of the machine's own time.
    """

    kept_out: tuple[Path, ...] = ()
    let: tuple[Path, ...] = ()
    limit: float = 10.0
    _hung: set[tuple[Path, str]] = field(default_factory=set)

    async def look(self, folder: Path, path: str) -> Seen | Unseen:
        """``path``: from the folder on, or a whole one."""
        key = folder, path
        if key in self._hung:
            return Unseen(HUNG)
        self._hung.add(key)

        def read() -> Seen | Unseen:
            try:
                return self._read(folder, path)
            finally:
                self._hung.discard(key)

        try:
            async with asyncio.timeout(self.limit):
                return await beside(read, "watched file")
        except TimeoutError:
            return Unseen(HUNG)
        except OSError as fault:
            return Unseen(f"it cannot be read ({fault.strerror})")

    def _read(self, folder: Path, path: str) -> Seen | Unseen:
        try:
            whole = (folder / os.path.expanduser(path)).resolve()
            if self._hidden(whole):
                return Unseen("it is a file of the gateway's own", barred=True)
            number = os.open(whole, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except (FileNotFoundError, NotADirectoryError):
            return Seen(there=False)
        except (OSError, RuntimeError, ValueError) as fault:
            return Unseen(f"it cannot be read ({getattr(fault, 'strerror', '') or 'no such path'})")
        try:
            return _seen(number)
        finally:
            os.close(number)

    def _hidden(self, path: Path) -> bool:
        if any(path.is_relative_to(folder) for folder in self.let):
            return False
        # What the system tells of this very process are its secrets as well.
        own = Path(f"/proc/{os.getpid()}")
        return any(path.is_relative_to(folder) for folder in (*self.kept_out, own))


def _seen(number: int) -> Seen | Unseen:
    found = os.fstat(number)
    if stat.S_ISDIR(found.st_mode):
        return Seen("\n".join(sorted(os.listdir(number))[:10_000]), size=found.st_size)
    if not stat.S_ISREG(found.st_mode):
        return Unseen("it is no regular file")
    start = max(0, found.st_size - MOST)
    text = _all(number, start).decode("utf-8", "replace")
    return Seen(text, cut=start > 0, size=found.st_size)


def _all(number: int, start: int) -> bytes:
    pieces: list[bytes] = []
    at = start
    while at - start < MOST and (piece := os.pread(number, MOST - (at - start), at)):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)
