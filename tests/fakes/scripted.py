"""What scripted agents have in common: pipes, kept conversations, and directives of any protocol.

Uses little of the standard library, so that an agent starts quickly.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

CHILD = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(float(sys.argv[1]))
"""


def name() -> str:
    return os.urandom(8).hex()


class Pipes:
    """Objects out, one a line; objects in by a thread of its own."""

    def __init__(self, log: str) -> None:
        self._lock = threading.Lock()
        self._log = log
        self._held: bytearray | None = None

    def hold(self) -> None:
        """From here on what is sent comes out as one, by ``release``."""
        self._held = bytearray()

    def release(self) -> None:
        held, self._held = bytes(self._held or b""), None
        self.raw(held)

    def put(self, message: dict[str, Any]) -> None:
        self.raw(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        with self._lock:
            if self._held is not None:
                self._held += data
                return
            while data:
                data = data[os.write(1, data) :]

    def listen(self, hear: Callable[[dict[str, Any]], None], over: Callable[[], None]) -> None:
        for line in sys.stdin.buffer:
            if self._log:
                with open(self._log, "ab") as file:
                    file.write(line)
            try:
                message = json.loads(line)
            except ValueError:
                continue
            hear(message)
        over()


class Kept:
    """What is kept of a conversation, in a file: it survives the process."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def load(self, number: str) -> dict[str, Any] | None:
        path = os.path.join(self._folder, f"{number}.json")
        if not os.path.exists(path):
            return None
        with open(path) as file:
            return dict(json.load(file))

    def save(self, number: str, content: dict[str, Any]) -> None:
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, f"{number}.json")
        with open(f"{path}.part", "w") as file:
            json.dump(content, file)
        os.replace(f"{path}.part", path)


class Directives:
    """Those that mean the same in every protocol. An agent adds ``streamed`` and ``pause``."""

    untouchable = False
    exit_after: int | None = None
    late = ""  # said by itself after the turn
    deaf = False

    def streamed(self, text: str) -> None:
        raise NotImplementedError

    def pause(self, seconds: float) -> None:
        """Wait, or raise what an interruption raises."""
        raise NotImplementedError

    def earlier(self) -> int:
        """How many turns the conversation had before."""
        raise NotImplementedError

    def obey(self, text: str) -> None:
        """Do what the lines of a prompt say; echo what is no directive."""
        for line in text.splitlines() or [""]:
            word, _, rest = line.partition(" ")
            do = getattr(self, f"do_{word[1:].replace('-', '_')}", None)
            if word.startswith("/") and do is not None:
                do(rest)
            else:
                for piece in f"echo[{self.earlier()}]: {line}".split(" "):
                    self.streamed(f"{piece} ")

    def do_say(self, rest: str) -> None:
        self.streamed(rest)

    def do_stream(self, rest: str) -> None:
        count, _, pause = rest.partition(" ")
        for number in range(int(count)):
            self.streamed(f"w{number} ")
            self.pause(float(pause or 0))

    def do_flood(self, rest: str) -> None:
        for number in range(int(rest)):
            self.streamed(f"w{number} ")

    def do_hang(self, rest: str) -> None:
        self.pause(3600.0)

    def do_args(self, rest: str) -> None:
        self.streamed(json.dumps(sys.argv[1:]))

    def do_pid(self, rest: str) -> None:
        self.streamed(str(os.getpid()))

    def do_turns(self, rest: str) -> None:
        self.streamed(str(self.earlier()))

    def do_cwd(self, rest: str) -> None:
        self.streamed(os.getcwd())

    def do_env(self, rest: str) -> None:
        self.streamed(os.environ.get(rest, "") if rest else json.dumps(sorted(os.environ)))

    def do_crash(self, rest: str) -> None:
        os._exit(int(rest or 1))

    def do_kill(self, rest: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def do_exit_after(self, rest: str) -> None:
        self.exit_after = int(rest or 0)

    def do_late(self, rest: str) -> None:
        self.late = rest

    def do_stderr(self, rest: str) -> None:
        sys.stderr.write("e" * int(rest) + "\n")
        sys.stderr.flush()

    def do_deaf(self, rest: str) -> None:
        self.deaf = True

    def do_ignore_term(self, rest: str) -> None:
        self.untouchable = True

    def do_spawn(self, rest: str) -> None:
        import subprocess  # it takes a while, and most scripts need none

        subprocess.Popen([sys.executable, "-I", "-S", "-c", CHILD, rest], start_new_session=True)


def begin(log: str, options: dict[str, str]) -> None:
    """What an agent does before it says anything, as its options want it."""
    import time

    if log:
        with open(log, "a") as file:
            file.write(json.dumps({"arguments": sys.argv[1:], "pid": os.getpid()}) + "\n")
    time.sleep(float(options.get("--slow-start", 0)))
    if size := int(options.get("--stderr-start", 0)):
        sys.stderr.write("e" * size + "\n")
        sys.stderr.flush()
    if code := options.get("--crash-start"):
        sys.stderr.write("it cannot start\n")
        raise SystemExit(int(code))


def live(agent: Any, options: dict[str, str]) -> None:
    """Serve until the input ends; TERM ends it as well, unless it was told to ignore that."""
    import time

    def terminate(number: int, frame: object) -> None:
        if not agent.untouchable:
            os._exit(143)

    signal.signal(signal.SIGTERM, terminate)
    agent.serve()
    while "--stay" in options or agent.untouchable:
        time.sleep(0.05)
