"""The standard output of a gateway: whoever does not read it holds nothing up.

A pipe or a terminal takes some thousand signs that nobody has read; who writes more waits, and with
it everybody who talks to the gateway. Here only a thread waits that does nothing else, and what is
beyond all measure is counted instead of kept. It must not know what is written.
"""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import threading
from typing import TextIO

KEPT_MOST = 4_194_304  # bytes that nobody has read
PIECE = 4096  # bytes; a pipe that has room at all takes so many at once
LEAVE_WITHIN = 1.0  # seconds a reader has at the end for what is left


class Outlet(io.TextIOBase):
    """Writes to a file descriptor, in order. BrokenPipeError once its reader is gone."""

    def __init__(self, fd: int, encoding: str = "utf-8", most: int = KEPT_MOST) -> None:
        self._fd = fd
        self._coding = encoding
        self._most = most
        self._left = bytearray()
        self._lost = 0  # pieces of text since the last that was kept
        self._lock = threading.Lock()
        self._waiting: threading.Thread | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute there
        return self._coding

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        """Never waits."""
        data = text.encode(self._coding, "replace")
        with self._lock:
            if not self._left:
                data = data[self._taken(data) :]
            if data:
                self._keep(data)
        return len(text)

    def leave(self, within: float = LEAVE_WITHIN) -> None:
        """Give the reader a moment for what is left."""
        if (waiting := self._waiting) is not None:
            waiting.join(within)

    def _taken(self, data: bytes) -> int:
        """How much of it could be written at once."""
        done = 0
        while done < len(data) and select.select([], [self._fd], [], 0)[1]:
            done += os.write(self._fd, data[done : done + PIECE])
        return done

    def _keep(self, data: bytes) -> None:
        if len(self._left) + len(data) > self._most and self._left:
            self._lost += 1
            return
        self._left += data
        if self._waiting is None:
            # A daemon: a reader that never comes back does not keep the process from ending.
            self._waiting = threading.Thread(target=self._wait, name="standard output", daemon=True)
            self._waiting.start()

    def _wait(self) -> None:
        """Write what is left as fast as it is read."""
        while piece := self._next():
            try:
                done = os.write(self._fd, piece)
            except OSError:
                done = len(self._left)  # nobody is there to read any of it
            with self._lock:
                del self._left[:done]

    def _next(self) -> bytes:
        with self._lock:
            if not self._left and self._lost:
                self._left += f"({self._lost} lines are missing: nobody read them)\n".encode()
                self._lost = 0
            if not self._left:
                self._waiting = None
            return bytes(self._left[:PIECE])


def outlet(stream: TextIO | None) -> Outlet | None:
    """One for a stream whose reader can make us wait; None for files and what is no real one."""
    try:
        fd = stream.fileno() if stream is not None else -1
        mode = os.fstat(fd).st_mode
    except (OSError, ValueError):
        return None
    if stream is None or not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)):
        return None
    stream.flush()
    return Outlet(fd, stream.encoding)


def install() -> None:
    """Let all of this process write like that from now on."""
    for name in ("stdout", "stderr"):
        if (made := outlet(getattr(sys, name))) is not None:
            setattr(sys, name, made)


def leave() -> None:
    """At the end of the process: what is left gets a moment."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Outlet):
            stream.leave()
