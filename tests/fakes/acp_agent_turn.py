"""What the scripted agent does at a prompt: its wire, and a function for each directive.

Beside acp_agent, which opens with the list, so that Python keeps this compiled: an agent starts for
nearly every test of a whole gateway. For the same reason what few turns need is imported by them.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.fakes.acp_agent_sessions import Agent

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


def write(path: str, content: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


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
                if self.reason == "refusal":
                    break
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
        path = os.path.join(self.state["cwd"], name)
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
            write(os.path.join(self.state["cwd"], name), content)
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
        self.agent.save(self.session)  # what was paid for is kept, also if the turn is not
        cost = {"amount": self.state["cost"], "currency": "USD"}
        self.update("usage_update", used=used, size=200_000, cost=cost)

    def file(self, argument: str) -> None:
        name, _, content = argument.partition(" ")
        from pathlib import Path

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

    def refuse_old(self, _: str) -> None:
        if self.state["turns"]:
            self.reason = "refusal"

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
        import subprocess

        stamps = os.path.join(self.state["cwd"], "stamps.txt")
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
    "/refuse-old": Turn.refuse_old,
    "/crash": lambda turn, code: os._exit(int(code or 70)),
    "/kill": lambda turn, _: os.kill(os.getpid(), signal.SIGKILL),
    "/exit-after": Turn.exit_after,
    "/error": Turn.fail,
    "/big": lambda turn, kilobytes: turn.say("x" * 1024 * int(kilobytes)),
    "/line": Turn.line,
    "/complain": lambda turn, said: turn.agent.wire.raw(said.encode() + b"\n", 2),
    "/stderr": lambda turn, size: turn.agent.wire.raw(b"e" * int(size) + b"\n", 2),
    "/badline": Turn.bad_lines,
    "/halfline": Turn.half_line,
    "/unknown": Turn.unknown,
    "/late": Turn.keep_late,
    "/ignore-cancel": Turn.ignore_cancel,
    "/ignore-term": Turn.ignore_term,
    "/spawn": Turn.spawn,
}
