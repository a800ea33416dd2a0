"""A scripted agent that speaks the Agent Client Protocol: the prompt is its script.

Run it by its path, as any agent: ``LANEWAY_ACP_COMMAND="python tests/fakes/acp_agent.py"``. It uses
the standard library only, so it starts in some 50 ms, and it can misbehave in every way below.

Each line of the prompt is a directive; any other line is answered by ``echo[N]: LINE`` in word
pieces, N being the number of earlier turns of the session:

    /say TEXT            a piece of the answer          /think TEXT        a thought
    /stream N [SECONDS]  N pieces "w0 w1 …"             /flood N           N pieces at full speed
    /repeat N TEXT       the text N times, one piece    /lines N           N numbered lines
    /letters SECONDS "TEXT"  a JSON string, a piece a character
    /sleep SECONDS       obeys a cancel                 /hang              for ever; obeys a cancel
    /tool TITLE          a tool that starts and ends    /write NAME TEXT   a file, unless read-only
    /approve COMMAND     asks, then "ran: …" or "denied: …"; the lines after it are still done
    /ask-always COMMAND  asks, offering only "always"   /withdraw COMMAND  asks, then takes it back
    /edit NAME           asks with a diff               /hang-if-denied    after a denied /approve
    /approve-big SIZE    the same with a command of so many characters
    /usage IN OUT COST   tokens of the turn, cost added to the session's total (USD)
    /total COST          sets the session's total cost  /file NAME TEXT    makes a file, links it
    /image               a small PNG in the answer      /blocks            the prompt's blocks, JSON
    /env                 its environment's names, JSON  /env NAME          one value
    /mode  /cwd  /turns  /pid                           what it is asked for
    /stop-reason WORD    ends the turn with this reason
    /crash [CODE]        exits at once                  /exit-after [CODE] exits after the answer
    /kill                SIGKILL to itself              /error MESSAGE     a JSON-RPC error
    /big KB              a piece of that size           /line BYTES        a tool update, one line
                                                                           of exactly that size
    /stderr BYTES        to the error output            /badline           lines that are no JSON
    /halfline            half a message, then exit      /unknown           notifications, unknown
    /late TEXT           a piece after the answer       /ignore-cancel     from here on
    /ignore-term         SIGTERM and the end of stdin are ignored from here on
    /spawn SECONDS [clean]   a child in a session of its own that ignores SIGTERM and appends time
                         stamps to stamps.txt each 0.1 s; "clean": with an empty environment

Sessions are files in --state, so they survive the process. See ``--help`` for the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
CHILD = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    with open(sys.argv[2], "a") as file:
        file.write(f"{time.time()}\\n")
    time.sleep(0.1)
"""
MODES = ("default", "read-only", "auto")


class CancelledTurn(Exception):
    """The client cancelled the turn."""


class Failed(Exception):
    """A request is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Wire:
    """JSON lines on the pipes; the reader is the main thread, anyone may write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._answered = threading.Condition()

    def raw(self, data: bytes, fd: int = 1) -> None:
        with self._lock:
            while data:
                select.select([], [fd], [])
                data = data[os.write(fd, data[:65536]) :]

    def send(self, message: dict[str, Any]) -> None:
        self.raw((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())

    def ask(self, method: str, params: dict[str, Any]) -> int:
        with self._lock:
            self._last += 1
            number = self._last
        self.send({"id": number, "method": method, "params": params})
        return number

    def settle(self, message: dict[str, Any]) -> None:
        with self._answered:
            self._answers[message["id"]] = message
            self._answered.notify_all()

    def answer(self, number: int, gone: Callable[[], bool]) -> dict[str, Any]:
        with self._answered:
            while number not in self._answers:
                if gone():
                    raise CancelledTurn
                self._answered.wait(0.02)
            return self._answers.pop(number)


class Turn:
    """One prompt: runs its directives in a thread of its own."""

    def __init__(
        self, agent: Agent, number: Any, session: str, blocks: list[dict[str, Any]]
    ) -> None:
        self.agent, self.number, self.session, self.blocks = agent, number, session, blocks
        self.state = agent.sessions[session]
        self.cancelled = threading.Event()
        self.deaf = False
        self.said: list[str] = []
        self.usage: dict[str, int] | None = None
        self.reason = "end_turn"
        self.late = ""
        self.exit_code: int | None = None
        self.denied = False
        self.calls = 0

    # Sending ----------------------------------------------------------------------------

    def update(self, kind: str, /, **fields: Any) -> None:
        update = {"sessionUpdate": kind, **fields}
        params = {"sessionId": self.session, "update": update}
        self.agent.wire.send({"method": "session/update", "params": params})

    def say(self, text: str) -> None:
        self.said.append(text)
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def nap(self, seconds: float) -> None:
        if self.deaf:
            time.sleep(seconds)
        elif self.cancelled.wait(seconds):
            raise CancelledTurn

    # Running ----------------------------------------------------------------------------

    def run(self) -> None:
        text = "\n".join(block["text"] for block in self.blocks if block["type"] == "text")
        result: dict[str, Any] = {}
        error: dict[str, Any] | None = None
        try:
            for line in text.splitlines() or [""]:
                if self.cancelled.is_set() and not self.deaf:
                    raise CancelledTurn
                self.do(line)
            result["stopReason"] = self.reason
        except CancelledTurn:
            result["stopReason"] = "cancelled"
        except Failed as failed:
            error = {"code": failed.code, "message": str(failed), "data": {"details": "scripted"}}
        except (ArithmeticError, LookupError, OSError, TypeError, ValueError) as mistake:
            error = {"code": -32602, "message": f"in the script: {mistake!r}"}
        if self.usage is not None:
            result["usage"] = self.usage
        self.state["turns"].append([text, "".join(self.said)])
        self.agent.save(self.session)
        self.agent.running.pop(self.session, None)
        answer = {"error": error} if error else {"result": result}
        self.agent.wire.send({"id": self.number, **answer})
        if self.late:
            self.say(self.late)
        if self.exit_code is not None:
            os._exit(self.exit_code)

    def do(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        directive = DIRECTIVES.get(name)
        if directive is not None:
            directive(self, argument)
        else:
            for word in f"echo[{len(self.state['turns'])}]: {line}".split(" "):
                self.say(word + " ")
                self.nap(0.002)

    # Directives -------------------------------------------------------------------------

    def stream(self, argument: str) -> None:
        count, _, pause = argument.partition(" ")
        for number in range(int(count)):
            self.say(f"w{number} ")
            self.nap(float(pause or 0.02))

    def repeat(self, argument: str) -> None:
        count, _, text = argument.partition(" ")
        self.say(text * int(count))

    def lines(self, argument: str) -> None:
        for number in range(int(argument)):
            self.say(f"line {number:04d} of a long answer\n")
            self.nap(0.003)

    def letters(self, argument: str) -> None:
        pause, _, text = argument.partition(" ")
        for letter in json.loads(text):
            self.say(letter)
            self.nap(float(pause))

    def flood(self, argument: str) -> None:
        for number in range(int(argument)):
            self.update("agent_message_chunk", content={"type": "text", "text": f"{number} "})

    def hang(self, argument: str = "") -> None:
        while True:
            self.nap(60)

    def call(self, title: str, **fields: Any) -> str:
        self.calls += 1
        number = f"call_{len(self.state['turns'])}_{self.calls}"
        told = {"kind": "execute", "status": "pending", **fields}
        self.update("tool_call", toolCallId=number, title=title, **told)
        return number

    def end_call(self, number: str, status: str = "completed") -> None:
        self.update("tool_call_update", toolCallId=number, status=status)

    def tool(self, title: str) -> None:
        number = self.call(title)
        self.nap(0.01)
        self.end_call(number)

    def ask(self, number: str, kinds: tuple[str, ...], **fields: Any) -> int:
        return self.agent.wire.ask(
            "session/request_permission",
            {
                "sessionId": self.session,
                "toolCall": {"toolCallId": number, **fields},
                "options": [
                    {"optionId": f"o-{kind}", "name": kind.replace("_", " "), "kind": kind}
                    for kind in kinds
                ],
            },
        )

    def called_off(self) -> bool:
        return self.cancelled.is_set() and not self.deaf and not self.agent.options.stubborn

    def wait_for(self, question: int) -> str:
        answer = self.agent.wire.answer(question, self.called_off)
        outcome = answer.get("result", {}).get("outcome", {})
        if outcome.get("outcome") != "selected":
            raise CancelledTurn
        return str(outcome["optionId"]).removeprefix("o-")

    def approve(
        self,
        command: str,
        kinds: tuple[str, ...] = ("allow_once", "allow_always", "reject_once"),
        **fields: Any,
    ) -> None:
        number = self.call(command, rawInput={"command": command}, **fields)
        allowed = self.state["mode"] == "auto"
        if self.state["mode"] == "default":
            allowed = self.wait_for(self.ask(number, kinds)).startswith("allow")
        if allowed:
            self.end_call(number)
            self.say(f"ran: {command[:200]}. ")
        else:
            self.denied = True
            self.end_call(number, "failed")
            self.say(f"denied: {command[:200]}. ")

    def ask_always(self, command: str) -> None:
        self.approve(command, ("allow_always", "reject_once"))

    def edit(self, name: str) -> None:
        path = str(Path(self.state["cwd"]) / name)
        diff = {"type": "diff", "path": path, "oldText": "old line\n", "newText": "new line\n"}
        number = self.call(f"Edit {name}", kind="edit", content=[diff])
        self.say(self.wait_for(self.ask(number, ("allow_once", "reject_once"))) + " ")

    def withdraw(self, command: str) -> None:
        number = self.call(command, rawInput={"command": command})
        question = self.ask(number, ("allow_once", "reject_once"))
        self.nap(0.05)
        self.agent.wire.send({"method": "$/cancel_request", "params": {"id": question}})
        try:
            self.wait_for(question)
        except CancelledTurn:
            self.say("withdrawn ")
        self.end_call(number, "failed")

    def hang_if_denied(self, argument: str) -> None:
        if self.denied:
            self.deaf = True
            self.hang()

    def write(self, argument: str) -> None:
        name, _, content = argument.partition(" ")
        if self.state["mode"] == "read-only":
            self.say(f"not written: {name} ")
        else:
            (Path(self.state["cwd"]) / name).write_text(content)
            self.say(f"written: {name} ")

    def count(self, argument: str) -> None:
        tokens_in, tokens_out, cost = argument.split()
        self.usage = {
            "inputTokens": int(tokens_in),
            "outputTokens": int(tokens_out),
            "totalTokens": int(tokens_in) + int(tokens_out),
        }
        self.total(str(self.state["cost"] + float(cost)), used=int(tokens_in))

    def total(self, argument: str, used: int = 0) -> None:
        self.state["cost"] = float(argument)
        cost = {"amount": self.state["cost"], "currency": "USD"}
        self.update("usage_update", used=used, size=200_000, cost=cost)

    def file(self, argument: str) -> None:
        name, _, content = argument.partition(" ")
        path = Path(self.state["cwd"]) / name
        path.write_text(content)
        link = {"type": "resource_link", "uri": path.as_uri(), "name": name}
        self.update("agent_message_chunk", content=link)

    def image(self, argument: str) -> None:
        block = {"type": "image", "data": PNG, "mimeType": "image/png"}
        self.update("agent_message_chunk", content=block)

    def env(self, name: str) -> None:
        self.say(os.environ.get(name, "(not set)") if name else json.dumps(sorted(os.environ)))

    def stop_reason(self, word: str) -> None:
        self.reason = word

    def fail(self, message: str) -> None:
        raise Failed(-32000, message or "scripted error")

    def exit_after(self, code: str) -> None:
        self.exit_code = int(code or 0)

    def line(self, size: str) -> None:
        content = {"type": "text", "text": ""}
        update = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "big",
            "content": [{"type": "content", "content": content}],
        }
        params = {"sessionId": self.session, "update": update}
        message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
        content["text"] = "x" * (int(size) - len(json.dumps(message)) - 1)
        self.agent.wire.raw((json.dumps(message) + "\n").encode())

    def bad_lines(self, argument: str) -> None:
        for line in (b"this is a log line\n", b'{"half": \n', b"[1, 2]\n", b"\xff\xfe\n", b"\n"):
            self.agent.wire.raw(line)

    def half_line(self, argument: str) -> None:
        self.agent.wire.raw(b'{"jsonrpc":"2.0","method":"session/upd')
        os._exit(0)

    def unknown(self, argument: str) -> None:
        self.agent.wire.send({"method": "$/something", "params": {"a": 1}})
        self.agent.wire.send({"method": "_vendor/thing"})
        self.update("a_kind_of_update_from_the_future", value=1)
        self.agent.wire.ask("fs/read_text_file", {"sessionId": self.session, "path": "/etc/hosts"})

    def ignore_cancel(self, argument: str) -> None:
        self.deaf = True

    def ignore_term(self, argument: str) -> None:
        self.agent.options.stay = True
        self.agent.untouchable.set()

    def keep_late(self, text: str) -> None:
        self.late = text

    def spawn(self, argument: str) -> None:
        seconds, _, how = argument.partition(" ")
        stamps = str(Path(self.state["cwd"]) / "stamps.txt")
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", CHILD, seconds, stamps],
            start_new_session=True,
            env={} if how == "clean" else None,
        )
        while not os.path.exists(stamps):
            self.nap(0.01)
        self.say("spawned ")


DIRECTIVES: dict[str, Callable[[Turn, str], None]] = {
    "/say": Turn.say,
    "/think": lambda turn, text: turn.update(
        "agent_thought_chunk", content={"type": "text", "text": text}
    ),
    "/stream": Turn.stream,
    "/repeat": Turn.repeat,
    "/lines": Turn.lines,
    "/letters": Turn.letters,
    "/flood": Turn.flood,
    "/sleep": lambda turn, seconds: turn.nap(float(seconds)),
    "/hang": Turn.hang,
    "/tool": Turn.tool,
    "/approve": Turn.approve,
    "/approve-big": lambda turn, size: turn.approve("x" * int(size)),
    "/ask-always": Turn.ask_always,
    "/edit": Turn.edit,
    "/withdraw": Turn.withdraw,
    "/hang-if-denied": Turn.hang_if_denied,
    "/write": Turn.write,
    "/usage": Turn.count,
    "/total": Turn.total,
    "/file": Turn.file,
    "/image": Turn.image,
    "/blocks": lambda turn, _: turn.say(json.dumps(turn.blocks)),
    "/env": Turn.env,
    "/mode": lambda turn, _: turn.say(turn.state["mode"]),
    "/cwd": lambda turn, _: turn.say(turn.state["cwd"]),
    "/turns": lambda turn, _: turn.say(str(len(turn.state["turns"]))),
    "/pid": lambda turn, _: turn.say(str(os.getpid())),
    "/stop-reason": Turn.stop_reason,
    "/crash": lambda turn, code: os._exit(int(code or 70)),
    "/kill": lambda turn, _: os.kill(os.getpid(), signal.SIGKILL),
    "/exit-after": Turn.exit_after,
    "/error": Turn.fail,
    "/big": lambda turn, kilobytes: turn.say("x" * 1024 * int(kilobytes)),
    "/line": Turn.line,
    "/stderr": lambda turn, size: turn.agent.wire.raw(b"e" * int(size) + b"\n", 2),
    "/badline": Turn.bad_lines,
    "/halfline": Turn.half_line,
    "/unknown": Turn.unknown,
    "/late": Turn.keep_late,
    "/ignore-cancel": Turn.ignore_cancel,
    "/ignore-term": Turn.ignore_term,
    "/spawn": Turn.spawn,
}


class Agent:
    """The agent's side of the protocol."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.wire: Wire = Wire()
        self.sessions: dict[str, dict[str, Any]] = {}
        self.running: dict[str, Turn] = {}
        self.untouchable = threading.Event()
        self.folder = options.state or Path(os.environ.get("TMPDIR", "/tmp")) / "sessions"
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self, session: str) -> None:
        draft = self.folder / f"{session}.{os.getpid()}.new"
        draft.write_text(json.dumps(self.sessions[session]))
        draft.replace(self.folder / f"{session}.json")

    def create(self, cwd: str, turns: list[Any]) -> str:
        number = len(list(self.folder.glob("*.json"))) + 1
        while (self.folder / f"fake-{number:04d}.json").exists():
            number += 1
        session = f"fake-{number:04d}"
        mode = "auto" if self.options.auto or self.options.only_auto else "default"
        self.sessions[session] = {"cwd": cwd, "turns": turns, "mode": mode, "cost": 0.0}
        self.save(session)
        return session

    def load(self, session: str, cwd: str) -> dict[str, Any]:
        try:
            state = json.loads((self.folder / f"{session}.json").read_text())
        except FileNotFoundError:
            raise Failed(-32002, f"no session {session}") from None
        mode = "auto" if self.options.auto or self.options.only_auto else "default"
        self.sessions[session] = {**state, "cwd": cwd, "mode": mode}
        return self.sessions[session]

    def choices(self, session: str) -> dict[str, Any]:
        """Modes, model and effort as the options want them declared."""
        state = self.sessions[session]
        told: dict[str, Any] = {}
        modes = ("auto",) if self.options.only_auto else MODES
        options = []
        if self.options.config_modes:
            options.append(select_option("mode", "mode", modes, state["mode"]))
        elif not self.options.no_modes:
            listed = [{"id": mode, "name": mode} for mode in modes]
            told["modes"] = {"currentModeId": state["mode"], "availableModes": listed}
        for name, category in (("models", "model"), ("efforts", "thought_level")):
            if values := [value for value in getattr(self.options, name).split(",") if value]:
                current = state.get(category, values[0])
                options.append(select_option(category, category, values, current))
        if options:
            told["configOptions"] = options
        return told

    def request(self, number: Any, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """The result of a request; None when a thread answers it later."""
        session = params.get("sessionId", "")
        match method:
            case "initialize":
                return self.initialize()
            case "session/new":
                if self.options.refuse_new:
                    raise Failed(-32000, self.options.refuse_new)
                session = self.create(params["cwd"], [])
                return {"sessionId": session, **self.choices(session)}
            case "session/resume" if not self.options.no_resume:
                self.load(session, params["cwd"])
                return self.choices(session)
            case "session/load" if not self.options.no_load:
                self.replay(session, self.load(session, params["cwd"]))
                return self.choices(session)
            case "session/fork" if not self.options.no_fork:
                turns = self.load(session, params["cwd"])["turns"]
                fork = self.create(params["cwd"], list(turns))
                return {"sessionId": fork, **self.choices(fork)}
            case "session/set_mode":
                self.sessions[session]["mode"] = params["modeId"]
                return {}
            case "session/set_config_option":
                self.sessions[session][params["configId"]] = params["value"]
                return self.choices(session)
            case "session/prompt":
                self.prompt(number, session, params["prompt"])
                return None
        raise Failed(-32601, f"Method not found: {method}")

    def initialize(self) -> dict[str, Any]:
        time.sleep(self.options.slow_start)
        if self.options.crash_start is not None:
            os._exit(self.options.crash_start)
        if self.options.hang_start:
            threading.Event().wait()
        able: dict[str, Any] = {}
        if not self.options.no_resume:
            able["resume"] = {}
        if not self.options.no_fork:
            able["fork"] = {}
        return {
            "protocolVersion": self.options.version,
            "agentInfo": {"name": "scripted", "version": "1"},
            "authMethods": [],
            "agentCapabilities": {
                "loadSession": not self.options.no_load,
                "promptCapabilities": {"image": not self.options.no_images},
                "sessionCapabilities": able,
            },
        }

    def replay(self, session: str, state: dict[str, Any]) -> None:
        for said, answered in state["turns"]:
            for kind, text in (("user_message_chunk", said), ("agent_message_chunk", answered)):
                update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
                params = {"sessionId": session, "update": update}
                self.wire.send({"method": "session/update", "params": params})

    def prompt(self, number: Any, session: str, blocks: list[dict[str, Any]]) -> None:
        if session not in self.sessions:
            raise Failed(-32002, f"no session {session}")
        if session in self.running:
            raise Failed(-32600, "a prompt is running in this session already")
        turn = self.running[session] = Turn(self, number, session, blocks)
        threading.Thread(target=turn.run, daemon=True, name=f"turn {session}").start()

    def notice(self, method: str, params: dict[str, Any]) -> None:
        turn = self.running.get(params.get("sessionId", ""))
        if method == "session/cancel" and turn is not None:
            turn.cancelled.set()

    def serve(self) -> None:
        for line in sys.stdin.buffer:
            if self.options.log:
                with self.options.log.open("ab") as file:
                    file.write(line)
            message = json.loads(line)
            method, number = message.get("method"), message.get("id")
            if method is None:
                self.wire.settle(message)
            elif number is None:
                self.notice(method, message.get("params") or {})
            else:
                self.reply(number, method, message.get("params") or {})

    def reply(self, number: Any, method: str, params: dict[str, Any]) -> None:
        try:
            result = self.request(number, method, params)
        except Failed as failed:
            error = {"code": failed.code, "message": str(failed)}
            self.wire.send({"id": number, "error": error})
        else:
            if result is not None:
                self.wire.send({"id": number, "result": result})


def select_option(number: str, category: str, values: Any, current: str) -> dict[str, Any]:
    return {
        "id": number,
        "name": number,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": [{"value": value, "name": value} for value in values],
    }


def parse() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument("--state", type=Path, help="folder of the sessions; else in TMPDIR")
    options.add_argument("--log", type=Path, help="append every line received to this file")
    options.add_argument("--slow-start", type=float, default=0.0, metavar="SECONDS")
    options.add_argument("--hang-start", action="store_true", help="never answer initialize")
    options.add_argument("--crash-start", type=int, metavar="CODE", help="exit at initialize")
    options.add_argument("--stderr-start", type=int, default=0, metavar="BYTES")
    options.add_argument("--version", type=int, default=1, help="protocol version it claims")
    options.add_argument("--refuse-new", default="", metavar="MESSAGE", help="error of session/new")
    options.add_argument("--no-resume", action="store_true")
    options.add_argument("--no-load", action="store_true")
    options.add_argument("--no-fork", action="store_true")
    options.add_argument("--no-images", action="store_true")
    options.add_argument("--no-modes", action="store_true")
    options.add_argument("--auto", action="store_true", help="start in a mode that asks nobody")
    options.add_argument("--only-auto", action="store_true", help="offer no other mode either")
    options.add_argument("--config-modes", action="store_true", help="modes as a config option")
    options.add_argument("--models", default="", help="comma-separated, the first is the default")
    options.add_argument("--efforts", default="", help="comma-separated, likewise")
    options.add_argument("--stay", action="store_true", help="do not exit when stdin closes")
    options.add_argument(
        "--stubborn", action="store_true", help="a cancel waits for open questions to be answered"
    )
    return options.parse_args()


def main() -> None:
    options = parse()
    agent = Agent(options)

    def terminate(number: int, frame: object) -> None:
        if not agent.untouchable.is_set():
            os._exit(143)

    signal.signal(signal.SIGTERM, terminate)
    if options.stderr_start:
        agent.wire.raw(b"e" * options.stderr_start + b"\n", 2)
    agent.serve()
    while options.stay:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
