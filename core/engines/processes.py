"""Engine processes: started by ourselves, spoken with over pipes, ended with all they started.

Knows nothing of any protocol, lane rule or store; what belongs to a process is found by trees.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import psutil

from core.engines.base import EngineError, EngineUnready, Finding
from core.engines.trees import MARK, SWEEP, Record, created, living, tree

log = logging.getLogger("laneway.engine")

INHERITED = ("HOME", "PATH", "LANG", "LC_ALL", "TZ", "TERM")
STDERR_TAIL = 16 * 1024
CHECKED = "; laneway doctor checks it."
LAST_WORDS = 0.25  # seconds of silence after the exit until the output counts as ended
READ_AHEAD = 1024 * 1024  # the stream stops reading the pipe at twice this
LINE_LIMIT = 64 * 1024 * 1024
UNREAD_LIMIT = 128 * 1024 * 1024  # bytes for a program that does not read its input


class LineTooLong(EngineError):
    """A line grew beyond the limit and was thrown away; ``head`` is how it began."""

    def __init__(self, head: bytes) -> None:
        limit = f"{LINE_LIMIT >> 20} MB"
        super().__init__(f"The agent sent a line of more than {limit}, so it was ended.")
        self.head = head


class Ledger(Protocol):
    """Where records are kept; they have to outlive the gateway."""

    async def add(self, record: Record) -> None:
        """Returns when it is kept: what is not on record must not run."""

    def remove(self, record: Record) -> None:
        """Forget it, some time: a record too many is found out at the next start."""


class NoLedger:
    """Remembers nothing: for a program that is gone again within the command that asks it."""

    async def add(self, record: Record) -> None: ...

    def remove(self, record: Record) -> None: ...


class NotThere(EngineUnready):
    """There is no such program; one that cannot be run is another matter."""


# Environment -----------------------------------------------------------------------------


def environment(
    names: Iterable[str], *, marker: str, tmp: Path, source: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of an engine: a short allow-list and the names the admin passed on.

    Everything else stays out, whatever the gateway inherited: its own secrets, and variables that
    make an agent believe that it runs inside another one.
    """
    source = os.environ if source is None else source
    wanted = dict.fromkeys((*INHERITED, *names))
    found = {name: source[name] for name in wanted if name in source}
    return {**found, "TMPDIR": str(tmp), MARK: marker}


# A running child --------------------------------------------------------------------------


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """The usual streams, but error output goes to a bounded tail as it comes.

    It is drained in the callback: an engine that floods it can neither block nor fill the memory.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=READ_AHEAD, loop=loop)
        self.tail = bytearray()
        self.exited = asyncio.Event()
        self.hushed = asyncio.Event()  # nothing more comes of its error output
        self.awaited = False  # somebody waits for output, so the pipe is being read
        self.closed = False
        self._timer = loop.call_later
        self._pieces = 0
        self._ended = False

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd == 2 and isinstance(data, bytes):
            self.tail += data[-STDERR_TAIL:]
            del self.tail[:-STDERR_TAIL]
        elif not self._ended:
            self._pieces += 1
            super().pipe_data_received(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 2:
            self.hushed.set()
        super().pipe_connection_lost(fd, exc)

    def process_exited(self) -> None:
        self.exited.set()
        self._timer(LAST_WORDS, self._end_output, self._pieces)
        super().process_exited()

    def _end_output(self, pieces: int) -> None:
        """End the output of a program that is gone, although a child of it may hold the pipe."""
        if self.closed or self.stdout is None:
            return
        if self.awaited and pieces == self._pieces:
            self._ended = True
            self.stdout.feed_eof()
        else:
            self._timer(LAST_WORDS, self._end_output, self._pieces)


class Child:
    """One engine process and everything it started."""

    def __init__(
        self,
        transport: asyncio.SubprocessTransport,
        streams: _Streams,
        record: Record,
        ledger: Ledger,
    ) -> None:
        self._transport = transport
        self._streams = streams
        self._ledger = ledger
        self._known: dict[int, psutil.Process] = {}
        self._ending = asyncio.Lock()
        self._deaf = False  # it does not read its input
        self._pieces: list[bytes] = []  # of a long line that is still coming
        self.record = record
        self.over = False  # the tree was ended; ``survivors`` holds what would not die
        self.survivors: tuple[int, ...] = ()

    @property
    def stdin(self) -> asyncio.StreamWriter:
        assert self._streams.stdin is not None  # asked for as a pipe
        return self._streams.stdin

    @property
    def stdout(self) -> asyncio.StreamReader:
        assert self._streams.stdout is not None  # asked for as a pipe
        return self._streams.stdout

    @property
    def pid(self) -> int:
        return self.record.pid

    @property
    def exit_code(self) -> int | None:
        """As the system tells it, negative for a signal; None while it runs."""
        return self._transport.get_returncode()

    @property
    def stderr_tail(self) -> str:
        return self._streams.tail.decode(errors="replace")

    async def exited(self, within: float) -> bool:
        """Wait for the direct child to exit; its pipes may still be held by what it started."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._streams.exited.wait()
        return self._streams.exited.is_set()

    async def last_words(self, within: float) -> str:
        """The end of its error output, whole once it has exited and nothing holds the pipe.

        Its exit can be known before the last of its output is.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._streams.exited.wait()
                await self._streams.hushed.wait()
        return self.stderr_tail

    async def read_line(self) -> bytes:
        """The next line of its output without the line end; ``b""`` is also an empty line.

        Raises EOFError when the output ended; a half line at the end is not a line.
        """
        while True:
            try:
                self._streams.awaited = True
                piece = await self.stdout.readuntil(b"\n")
            except asyncio.LimitOverrunError as overrun:
                piece = await self.stdout.readexactly(overrun.consumed)
                if sum(map(len, self._pieces)) <= LINE_LIMIT:
                    self._pieces.append(piece)
                continue
            except (asyncio.IncompleteReadError, OSError) as end:
                raise EOFError from end
            finally:
                self._streams.awaited = False
            # kept outside of this call, so that giving up waiting loses nothing of a line
            pieces, self._pieces = [*self._pieces, piece], []
            if sum(map(len, pieces)) > LINE_LIMIT:
                raise LineTooLong(pieces[0][:4096])
            return b"".join(pieces).rstrip(b"\r\n")

    async def read(self, most: int) -> bytes:
        """The next bytes of its output, whatever lines they are; empty when it ended."""
        self._streams.awaited = True
        try:
            return await self.stdout.read(most)
        finally:
            self._streams.awaited = False

    def write(self, data: bytes) -> bool:
        """Hand bytes over without waiting; False when certainly none of them left.

        A program that asks and asks and never reads an answer is ended before they fill the memory.
        """
        if self._deaf or self.stdin.is_closing() or self.over or self._streams.exited.is_set():
            return False
        if self.stdin.transport.get_write_buffer_size() > UNREAD_LIMIT:
            self._deaf = True
            log.error("%s: its agent does not read its input, so it was ended", self.record.lane)
            self.kill()
            return False
        self.stdin.write(data)
        return True

    def close_stdin(self) -> None:
        self.stdin.close()

    async def end(self, grace: float, *, answered: asyncio.Event | None = None) -> tuple[int, ...]:
        """End the whole tree within ``grace`` seconds and a sweep; the pids that survived even it.

        The interruption was sent by the caller, who knows the protocol: until ½ the tree may go by
        itself, or ``answered`` tells that it has obeyed. Then its stdin is closed, at ¾ comes
        TERM, at the end KILL. Whatever comes earlier makes the rest come earlier.
        """
        async with self._ending:
            if not self.over:
                try:
                    await self._ladder(grace, answered)
                except asyncio.CancelledError:
                    self.kill()
                    raise
                if not self.survivors:
                    await self.exited(SWEEP)  # closing before the loop has seen it loses its code
                self.over = self._streams.closed = True
                self._transport.close()
                if not self.survivors:
                    self._ledger.remove(self.record)
            return self.survivors

    def kill(self) -> None:
        """KILL everything now, without waiting: for when there is no time left to wait."""
        for process in [*self._known.values(), *tree(self.record)]:
            with contextlib.suppress(psutil.Error):
                process.kill()

    async def _ladder(self, grace: float, answered: asyncio.Event | None) -> None:
        await self._look()
        if answered is not None and not answered.is_set():
            await self._gone(grace / 2, answered)
        self.close_stdin()
        if await self._gone(grace / 4):
            return
        await self._signal(signal.SIGTERM)
        if await self._gone(grace / 4):
            return
        deadline = asyncio.get_running_loop().time() + SWEEP
        while True:  # what was started between two looks is found by the next one
            await self._signal(signal.SIGKILL)
            if await self._gone(0.05):
                return
            if asyncio.get_running_loop().time() > deadline:
                self.survivors = tuple(sorted(process.pid for process in self._alive()))
                return

    async def _gone(self, within: float, sooner: asyncio.Event | None = None) -> bool:
        """Wait until nothing of the tree is alive, at most so long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        pause = 0.005
        while True:
            if not self._alive():
                await self._look()
                if not self._alive():
                    return True
            if loop.time() >= deadline or (sooner is not None and sooner.is_set()):
                return False
            # only the root of a tree can be waited for: so look again, ever more slowly
            wait = min(pause, max(0.001, deadline - loop.time()))
            await (asyncio.sleep(wait) if self._streams.exited.is_set() else self.exited(wait))
            pause = min(pause * 2, 0.05)

    async def _signal(self, number: signal.Signals) -> None:
        await self._look()
        for process in self._alive():
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)  # psutil compares the start time before it sends

    def _alive(self) -> list[psutil.Process]:
        return [process for process in self._known.values() if living(process)]

    async def _look(self) -> None:
        for process in await asyncio.to_thread(tree, self.record):
            if self._known.get(process.pid) != process:
                self._known[process.pid] = process


async def spawn(
    command: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    lane: str,
    ledger: Ledger,
) -> Child:
    """Start a program in its own process session; EngineUnready says why it could not."""
    program = resolve(command, env)
    if not await asyncio.to_thread(folder.is_dir):
        raise EngineUnready(
            f"The workspace folder {folder} does not exist. Ask an admin to make it, or to "
            "choose another with /workspace."
        )
    loop = asyncio.get_running_loop()
    try:
        transport, streams = await loop.subprocess_exec(
            lambda: _Streams(loop),
            program,
            *command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(env),
            cwd=folder,
            start_new_session=True,
        )
    except OSError as error:
        raise EngineUnready(
            f"The program {command[0]} could not be started ({error.strerror}). "
            "Check with laneway doctor."
        ) from error
    record = Record(transport.get_pid(), created(transport.get_pid()), lane, env[MARK])
    child = Child(transport, streams, record, ledger)
    try:
        await ledger.add(record)
    except BaseException:
        await child.end(0.0)  # what is not on record must not run
        raise
    return child


def missing(engine: str, why: EngineUnready, install: str = "") -> Finding:
    """What the doctor says of it. ``install``: how to get this very program, where we know."""
    what, _, fix = str(why).partition(". ")
    if not install or not isinstance(why, NotThere):
        install = f"{fix.removesuffix(CHECKED).rstrip('.')}."
    return Finding(f"{engine}: program", False, what, install)


def resolve(command: Sequence[str], env: Mapping[str, str]) -> str:
    """The program's file; EngineUnready tells what to do when there is none to run."""
    if not command:
        raise EngineUnready("No agent program is set. Set LANEWAY_ACP_COMMAND.")
    if found := shutil.which(command[0], path=env.get("PATH", os.defpath)):
        return found
    if os.sep in command[0] and Path(command[0]).exists():
        raise EngineUnready(
            f"{command[0]} is not an executable program. Make it executable (chmod +x), "
            "or set another command."
        )
    where = "" if os.sep in command[0] else " on PATH"
    raise NotThere(
        f"The program {command[0]} was not found{where}. Install it, or set the command to its "
        f"full path{CHECKED}"
    )
