"""Starts ``laneway`` as a process of its own, without importing everything anew each time.

    child = await start(("say", "hello"), environ, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    out, err = await child.communicate()

A process of this file (one for each process of tests) has everything imported and forks: what runs
is a process with its own environment, pipes, signals and exit status, as by ``python -m gateway``,
some tenths of a second sooner. What depends on the start itself (imports, the encoding of the
terminal) has tests that start Python: tests/gateway/test_command_line.py, the drills.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PIPE, STDOUT = subprocess.PIPE, subprocess.STDOUT
LARGEST = 2**20  # bytes of a request
# What a gateway imports while it starts and a command while it works.
IMPORTED = (
    "gateway.__main__", "gateway.app", "gateway.reports", "gateway.web.app",
    "gateway.cli.run", "gateway.cli.say", "gateway.cli.doctor", "gateway.cli.listing",
    "gateway.cli.copies", "gateway.cli.render", "channels.telegram.adapter",
)  # fmt: skip


# In the tests -----------------------------------------------------------------------------


class Child:
    """The part of asyncio's own ``Process`` that tests use."""

    def __init__(self, pid: int, report: asyncio.StreamReader, closing: Any) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._closing = closing
        self._ended = asyncio.create_task(self._end(report), name=f"end of {pid}")

    async def _end(self, report: asyncio.StreamReader) -> None:
        try:
            line = await report.readline()
            self.returncode = int(line) if line else -signal.SIGKILL
        finally:
            self._closing.close()

    async def wait(self) -> int:
        await asyncio.shield(self._ended)
        assert self.returncode is not None
        return self.returncode

    async def communicate(self, text: bytes = b"") -> tuple[bytes, bytes]:
        async def read(stream: asyncio.StreamReader | None) -> bytes:
            return await stream.read() if stream is not None else b""

        async def write() -> None:
            if self.stdin is not None:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.stdin.write(text)
                    await self.stdin.drain()
                self.stdin.close()

        out, err, _ = await asyncio.gather(read(self.stdout), read(self.stderr), write())
        await self.wait()
        return out, err

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


_forking: tuple[socket.socket, subprocess.Popen[bytes]] | None = None


def _forker() -> socket.socket:
    """The connection to the process that forks; it ends with this one."""
    global _forking
    if _forking is None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = subprocess.Popen(
            [sys.executable, "-m", "tests.end_to_end.starting", str(theirs.fileno())],
            cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        _forking = ours, program
        atexit.register(_leave, *_forking)
    return _forking[0]


def _leave(ours: socket.socket, program: subprocess.Popen[bytes]) -> None:
    ours.close()
    program.wait()


async def start(
    words: Sequence[str],
    environ: Mapping[str, str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = PIPE,
    stderr: int = PIPE,
    limit: int = 2**16,
    session: bool = False,
) -> Child:
    """Run ``laneway WORDS``; each stream is PIPE, STDOUT or an open file."""
    loop = asyncio.get_running_loop()
    ours: dict[int, int] = {}  # which of the child's files we hold the other end of
    theirs: list[int] = []
    opened: list[int] = []
    for number, wanted in enumerate((stdin, stdout, stderr)):
        if wanted == PIPE:
            reading, writing = os.pipe()
            end, kept = (reading, writing) if number == 0 else (writing, reading)
            ours[number] = kept
            opened.append(end)
        elif wanted == STDOUT:
            end = theirs[1]
        elif wanted == subprocess.DEVNULL:
            end = os.open(os.devnull, os.O_RDWR)
            opened.append(end)
        else:
            end = wanted
        theirs.append(end)
    report, told = socket.socketpair()
    request = {"words": list(words), "environ": dict(environ), "session": session}
    fds = array.array("i", [*theirs, told.fileno()])
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
    _forker().sendmsg([json.dumps(request).encode()], ancillary)
    told.close()
    for end in opened:
        os.close(end)
    reader, closing = await asyncio.open_connection(sock=report)
    line = await reader.readline()
    assert line, "the process that forks is gone"
    child = Child(int(line), reader, closing)
    for number, kept in ours.items():
        if number == 0:
            child.stdin = await _writer(loop, kept)
        else:
            stream = asyncio.StreamReader(limit)
            protocol = asyncio.StreamReaderProtocol(stream)
            await loop.connect_read_pipe(lambda p=protocol: p, os.fdopen(kept, "rb", 0))
            if number == 1:
                child.stdout = stream
            else:
                child.stderr = stream
    return child


async def _writer(loop: asyncio.AbstractEventLoop, kept: int) -> asyncio.StreamWriter:
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(kept, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


# In the process that forks ----------------------------------------------------------------


def serve(requests: socket.socket) -> None:
    """Fork for every request, tell how each child ended, and end with who asks."""
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # or every child goes through, and copies, all that is imported when it ends
    woken, waking = os.pipe()
    for end in (woken, waking):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell_ends(reports)
        if requests in ready:
            text, fds, _, _ = socket.recv_fds(requests, LARGEST, 4)
            if not text:
                return
            child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                requests.close()
                for unused in (woken, waking, *reports.values()):
                    os.close(unused)
                _become(json.loads(text), fds)
            reports[child] = fds[3]
            os.write(fds[3], f"{child}\n".encode())
            for end in fds[:3]:
                os.close(end)


def _tell_ends(reports: dict[int, int]) -> None:
    while reports:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        report = reports.pop(pid)
        with contextlib.suppress(OSError):  # nobody waits for it any more
            os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os.close(report)


def _become(request: dict[str, Any], fds: list[int]) -> None:
    """The command itself, to the end of the interpreter; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored, where a shell put us behind
    if request["session"]:
        os.setsid()
    for number, end in enumerate(fds[:3]):
        os.dup2(end, number)
    for end in fds:
        os.close(end)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        old = getattr(sys, name)  # anew, because how it is buffered depends on what it is
        again = open(old.fileno(), mode, errors=old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, again)
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = ["laneway", *request["words"]]
    sys.exit(sys.modules["gateway.__main__"].main())


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
