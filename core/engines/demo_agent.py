"""The demo agent: a small, honest stand-in for a real one, so that everything can be tried offline.

A program of its own, run by its file path (``python -I demo_agent.py STATE``), which speaks the
Agent Client Protocol on its pipes and plain language in its answers. It must not import anything
but the standard library, so that it answers at once; it calls no model, and makes up neither
knowledge nor prices. It is one file on purpose: run isolated, it finds no module beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]

PROTOCOL_VERSION = 1
LINE_LIMIT = 128 * 1024 * 1024  # a prompt carries its pictures
MODES = [
    {"id": "default", "name": "Asks before it changes anything"},
    {"id": "read-only", "name": "Changes nothing"},
]
HELP = """I am the demo agent: no model, just enough to show how this works. Try one of these:

- **tell me a story**: words that stream in one by one
- **run something**: a tool that asks for your permission first, and then really makes a file
- **take your time 20s**: a slow task that shows how far it is
- **make a file**: a small CSV file, sent to this thread
- **draw something**: a small picture, sent the same way
- **what did I say?**: I remember this conversation
- **fail** or **crash**: what an error looks like

While I work you can send more messages, ask something on the side, or say /stop."""
STORY = """Once there was a lane that carried messages between people and their agents. \
Every morning it opened its gate, let the first message through, and asked the others to wait \
in line. Nobody was ever lost, because the lane wrote each name into a book before it said hello.

One night the power failed. When the lights came back, the lane opened its book, found the \
place where it had stopped, and went on from there. The messages hardly noticed. \
"That," said the lane, "is all I ever wanted to be good at." """
COLUMNS = [("Monday", 4), ("Tuesday", 7), ("Wednesday", 5), ("Thursday", 9), ("Friday", 6)]


class Cancelled(Exception):
    """The person stopped the turn."""


class Crash(Exception):
    """The person asked to see one."""


class Problem(Exception):
    """What is answered to a request instead of a result."""

    def __init__(self, code: int, message: str, details: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.details = details

    def as_json(self) -> Json:
        told = {"code": self.code, "message": str(self)}
        return {**told, "data": {"details": self.details}} if self.details else told


def not_found(session: str) -> Problem:
    return Problem(-32002, "Resource not found", session)


def text_update(kind: str, text: str) -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


@dataclass
class Session:
    """A conversation, kept in one file."""

    id: str
    said: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    mode: str = "default"


class Shelf:
    """The sessions on disk; ids count up, so that a demonstration looks the same each time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, number: str) -> Session:
        if not re.fullmatch(r"demo-\d+", number):
            raise not_found(number)
        try:
            return Session(**json.loads((self._folder / f"{number}.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):  # not there, or not written to its end
            raise not_found(number) from None

    def save(self, session: Session) -> None:
        kept = self._folder / f"{session.id}.json"
        draft = kept.with_suffix(".new")
        draft.write_text(json.dumps(vars(session), ensure_ascii=False))
        draft.replace(kept)

    def create(self, said: list[str], answered: list[str]) -> Session:
        """A new session; the file is made exclusively, since several agents share the shelf."""
        number = len(list(self._folder.glob("demo-*.json")))
        while True:
            number += 1
            session = Session(f"demo-{number:04d}", list(said), list(answered))
            try:
                (self._folder / f"{session.id}.json").touch(exist_ok=False)
            except FileExistsError:
                continue
            self.save(session)
            return session


class Turn:
    """One prompt being answered; every wait in it ends at once when it is cancelled."""

    def __init__(self, wire: Wire, session: Session, folder: Path, pace: float) -> None:
        self._wire = wire
        self.session = session
        self.folder = folder
        self._pace = pace
        self.cancelled = asyncio.Event()
        self.words = 0
        self.answer = ""
        self._tools = 0

    async def say(self, text: str, pause: float = 0.03) -> None:
        """Stream a text word by word."""
        for word in re.findall(r"\S+\s*|\s+", text):
            await self.update(text_update("agent_message_chunk", word))
            self.answer += word
            self.words += 1
            await self.wait(pause * self._pace)

    async def update(self, update: Json) -> None:
        await self._wire.update(self.session.id, update)

    async def think(self, text: str) -> None:
        await self.update(text_update("agent_thought_chunk", text))

    async def wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.cancelled.wait(), seconds)
        except TimeoutError:
            return
        raise Cancelled

    async def tool(self, title: str, kind: str, work: Callable[[str], Awaitable[bool]]) -> bool:
        """Show a tool at work; False when it was not allowed or did not work."""
        self._tools += 1
        number = f"tool-{len(self.session.said)}-{self._tools}"
        call = {"toolCallId": number, "title": title, "kind": kind, "status": "pending"}
        await self.update({"sessionUpdate": "tool_call", **call})
        done = False
        try:
            done = await work(number)
        finally:
            status = "completed" if done else "failed"
            ended = {"sessionUpdate": "tool_call_update", "toolCallId": number, "status": status}
            await self.update(ended)
        return done

    async def allowed(self, number: str, title: str, command: str) -> bool:
        """Ask for permission, unless the mode forbids it anyway."""
        if self.session.mode == "read-only":
            return False
        asked = {
            "sessionId": self.session.id,
            "toolCall": {
                "toolCallId": number, "title": title, "kind": "edit",
                "rawInput": {"command": command},
            },
            "options": [
                {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                {"optionId": "no", "name": "Deny", "kind": "reject_once"},
            ],
        }  # fmt: skip
        asking = asyncio.ensure_future(self._wire.ask("session/request_permission", asked))
        stopped = asyncio.ensure_future(self.cancelled.wait())
        await asyncio.wait({asking, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not asking.done():
            asking.cancel()
            raise Cancelled
        outcome = asking.result().get("outcome") or {}
        if outcome.get("outcome") != "selected":
            raise Cancelled
        return bool(outcome.get("optionId") == "yes")

    async def hand_over(self, path: Path, mime: str) -> None:
        link = {"type": "resource_link", "uri": path.as_uri(), "name": path.name, "mimeType": mime}
        await self.update({"sessionUpdate": "agent_message_chunk", "content": link})

    def write(self, path: Path, content: str) -> None:
        """Really make the file, and never in the place of another."""
        with path.open("x", encoding="utf-8") as file:
            file.write(content)

    def room(self, stem: str, suffix: str) -> Path:
        """A path in the workspace that is still free."""
        for number in range(1, 10_000):
            path = self.folder / f"{stem}{'' if number == 1 else f'-{number}'}{suffix}"
            if not path.exists():
                return path
        raise Problem(-32000, "the workspace is full of demo files; delete some")


# What it can show -------------------------------------------------------------------------


async def show_help(turn: Turn, asked: str) -> None:
    await turn.say(HELP, 0.01)


async def show_story(turn: Turn, asked: str) -> None:
    await turn.think("A story, then.")
    await turn.say(STORY)


async def show_tool(turn: Turn, asked: str) -> None:
    path = turn.room("demo-note", ".txt")
    command = f"write {path.name}: made by the demo agent"

    async def work(number: str) -> bool:
        if not await turn.allowed(number, f"Make {path.name}", command):
            return False
        turn.write(path, "made by the demo agent\n")
        return True

    await turn.say("I would like to make a small file. ")
    if await turn.tool(f"Make {path.name}", "edit", work):
        await turn.say(f"Done: {path.name} is in the workspace now.")
    elif turn.session.mode == "read-only":
        await turn.say("I may only read here, so I changed nothing.")
    else:
        await turn.say("All right, I left everything as it was.")


async def show_slow_task(turn: Turn, asked: str) -> None:
    found = re.search(r"(\d+(?:\.\d+)?)\s*(ms|m|s)?", asked)
    number, unit = (float(found[1]), found[2]) if found else (10.0, "s")
    seconds = min(number * {"ms": 0.001, "m": 60.0}.get(unit or "s", 1.0), 3600.0)
    steps = 5

    async def work(number: str) -> bool:
        for step in range(1, steps + 1):
            await turn.wait(seconds / steps)
            await turn.say(f"Step {step} of {steps} is done. ", 0)
        return True

    await turn.say(f"This will take {seconds:g} seconds. ")
    await turn.tool("A slow task", "execute", work)
    await turn.say("Finished.")


async def show_file(turn: Turn, asked: str) -> None:
    rows = "".join(f"{day},{count}\n" for day, count in COLUMNS)
    await make(turn, turn.room("demo-week", ".csv"), "day,messages\n" + rows, "text/csv")


async def show_picture(turn: Turn, asked: str) -> None:
    bars = "".join(f"M{36 + 44 * at} 110v-{10 * count}" for at, (_, count) in enumerate(COLUMNS))
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="250" height="120">\n'
        f'<path d="{bars}" stroke="#3b6ea5" stroke-width="32"/>\n</svg>\n'
    )
    await make(turn, turn.room("demo-chart", ".svg"), text, "image/svg+xml")


async def make(turn: Turn, path: Path, content: str, mime: str) -> None:
    async def work(number: str) -> bool:
        if not await turn.allowed(number, f"Make {path.name}", f"write {path.name}:\n{content}"):
            return False
        turn.write(path, content)
        return True

    if await turn.tool(f"Make {path.name}", "edit", work):
        await turn.say(f"Here is {path.name}, with numbers I made up.")
        await turn.hand_over(path, mime)
    else:
        await turn.say("No file then: I was not allowed to make it.")


async def show_failure(turn: Turn, asked: str) -> None:
    await turn.say("Here comes an error. ")
    raise Problem(-32000, "this is what a failing agent looks like; nothing is broken")


async def show_crash(turn: Turn, asked: str) -> None:
    await turn.say("I am going to crash now. ")
    raise Crash


async def recall(turn: Turn, asked: str) -> None:
    said = turn.session.said
    if not said:
        await turn.say("Nothing yet: that was your first message in this conversation.")
        return
    lines = "\n".join(f"{place}. {text}" for place, text in enumerate(said[-10:], 1))
    await turn.say(f"You said:\n\n{lines}", 0.01)


async def echo(turn: Turn, asked: str) -> None:
    short = asked if len(asked) <= 400 else asked[:399] + "…"
    quoted = "\n".join(f"> {line}" for line in short.splitlines())
    many = len(turn.session.said)
    before = f" It is message {many + 1} of our conversation." if many else ""
    await turn.say(
        f"I understood:\n\n{quoted}\n\nThat is all I can do with it, since I have no model "
        f"behind me.{before} Say **help** to see what I can show you."
    )


async def tell_beside(turn: Turn, asked: str, beside: str) -> None:
    """A side answer: what the gateway told of the main turn, since there is no model to ask."""
    known = beside.rpartition("what you say.")[2].strip(" ()\n") or "Nothing was told of it."
    await turn.say(f"I answer beside the main turn, and only read. {known}")


BESIDE = "\n\n(You answer on the side"  # how the gateway's note to a side question begins
TOPICS: list[tuple[str, Callable[[Turn, str], Awaitable[None]]]] = [
    (r"(hello|hi|hey|help|start|hallo)\b", show_help),
    (r"what did i (say|tell|ask)|do you remember", recall),
    (r"(stream|tell me a story|.*\bstory\b)", show_story),
    (r"run( something)?$|run a tool|ask me", show_tool),
    (r"take your time|slow|wait \d", show_slow_task),
    (r"(make|send|write|create)( me)? (a |some )?(file|csv|table)", show_file),
    (r"(draw|paint|plot)\b|(make|send)( me)? (a )?(picture|image|chart|plot)", show_picture),
    (r"fail\b|(show )?(an )?error\b", show_failure),
    (r"crash\b", show_crash),
]


def topic(asked: str) -> Callable[[Turn, str], Awaitable[None]]:
    plain = asked.strip().lower().rstrip("!?. ")
    unnamed = re.sub(r"^[^:\n]{1,80}: ", "", plain)  # in a group the name of who speaks comes first
    for pattern, show in TOPICS:
        if re.match(pattern, plain) or re.match(pattern, unnamed):
            return show
    return echo


# The protocol -----------------------------------------------------------------------------


class Wire:
    """JSON-RPC on standard input and output, one message a line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Json]] = {}

    @classmethod
    async def open(cls) -> Wire:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LINE_LIMIT)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        # The write end needs a protocol that knows when the pipe is full; this one does.
        unread = asyncio.StreamReader()
        pipe, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(unread), sys.stdout
        )
        return cls(reader, asyncio.StreamWriter(pipe, protocol, None, loop))

    async def read(self) -> Json | None:
        """The next request or notification; None when the client hung up."""
        while line := await self._reader.readline():
            try:
                message: Any = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict):
                continue
            if "method" in message:
                return {"params": {}, **message}
            if waiting := self._asked.pop(message.get("id", 0), None):
                waiting.set_result(message.get("result") or {})
        return None

    async def send(self, **message: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n"
        self._writer.write(line.encode(errors="replace"))
        await self._writer.drain()

    async def update(self, session: str, update: Json) -> None:
        await self.send(method="session/update", params={"sessionId": session, "update": update})

    async def ask(self, method: str, params: Json) -> Json:
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self.send(id=number, method=method, params=params)
            result: Json = await answer
            return result
        finally:
            self._asked.pop(number, None)


class DemoAgent:
    """The agent's side of the protocol."""

    def __init__(self, wire: Wire, shelf: Shelf, pace: float) -> None:
        self._wire = wire
        self._shelf = shelf
        self._pace = pace
        self._sessions: dict[str, tuple[Session, Path]] = {}
        self._turns: dict[str, Turn] = {}
        self.crashed = False
        self._methods: dict[str, Callable[[Json], Awaitable[Json]]] = {
            "initialize": self.initialize,
            "session/new": self.new,
            "session/resume": self.resume,
            "session/load": self.load,
            "session/fork": self.fork,
            "session/set_mode": self.set_mode,
            "session/prompt": self.prompt,
        }

    async def serve(self) -> None:
        """Until the client hangs up; ends with Crash where one was asked for."""
        async with asyncio.TaskGroup() as group:
            answers: set[asyncio.Task[None]] = set()
            while (message := await self._wire.read()) is not None:
                if "id" in message:
                    task = group.create_task(self._answer(message), name=str(message["method"]))
                    answers.add(task)
                    task.add_done_callback(answers.discard)
                elif message["method"] == "session/cancel":
                    self.cancel(message["params"])
            for task in answers:
                task.cancel()  # nobody reads what they would say

    async def _answer(self, message: Json) -> None:
        method = self._methods.get(message["method"])
        try:
            if method is None:
                raise Problem(-32601, "Method not found")
            answer = {"result": await method(message["params"])}
        except Problem as problem:
            answer = {"error": problem.as_json()}
        except (KeyError, OSError) as fault:
            answer = {"error": Problem(-32603, "Internal error", repr(fault)).as_json()}
        await self._wire.send(id=message["id"], **answer)

    def cancel(self, params: Json) -> None:
        if turn := self._turns.get(params["sessionId"]):
            turn.cancelled.set()

    def _take(self, session: Session, params: Json) -> Json:
        session.mode = "default"
        self._sessions[session.id] = (session, Path(params["cwd"]))
        return {"modes": {"currentModeId": session.mode, "availableModes": MODES}}

    async def initialize(self, params: Json) -> Json:
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "laneway-demo", "version": "1"},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True},
                "sessionCapabilities": {"fork": {}, "resume": {}},
            },
            "authMethods": [],
        }

    async def new(self, params: Json) -> Json:
        session = self._shelf.create([], [])
        return {"sessionId": session.id, **self._take(session, params)}

    async def resume(self, params: Json) -> Json:
        return self._take(self._shelf.load(params["sessionId"]), params)

    async def load(self, params: Json) -> Json:
        session = self._shelf.load(params["sessionId"])
        for said, answered in zip(session.said, session.answered, strict=False):
            await self._wire.update(session.id, text_update("user_message_chunk", said))
            await self._wire.update(session.id, text_update("agent_message_chunk", answered))
        return self._take(session, params)

    async def fork(self, params: Json) -> Json:
        origin = self._shelf.load(params["sessionId"])
        fork = self._shelf.create(origin.said, origin.answered)
        return {"sessionId": fork.id, **self._take(fork, params)}

    async def set_mode(self, params: Json) -> Json:
        mode = params["modeId"]
        if mode not in {known["id"] for known in MODES}:
            raise Problem(-32602, "Invalid params", f"no such mode: {mode}")
        self._open(params)[0].mode = mode
        return {}

    async def prompt(self, params: Json) -> Json:
        session, folder = self._open(params)
        if session.id in self._turns:
            raise Problem(-32600, "Invalid request", "a prompt is running already")
        turn = self._turns[session.id] = Turn(self._wire, session, folder, self._pace)
        blocks = params["prompt"]
        asked = "\n".join(block["text"] for block in blocks if block["type"] == "text").strip()
        asked, _, beside = asked.partition(BESIDE)
        reason = "end_turn"
        try:
            show = topic(asked)
            if beside and show is echo:
                await tell_beside(turn, asked, beside)
            else:
                await show(turn, asked)
        except Cancelled:
            reason = "cancelled"
        except Crash:
            self.crashed = True
            raise
        finally:
            del self._turns[session.id]
            session.said.append(asked)
            session.answered.append(turn.answer)
            self._shelf.save(session)
        came, went = len(asked.split()), turn.words  # words for tokens: the nearest thing it has
        usage = {"inputTokens": came, "outputTokens": went, "totalTokens": came + went}
        return {"stopReason": reason, "usage": usage}

    def _open(self, params: Json) -> tuple[Session, Path]:
        session = params["sessionId"]
        if session not in self._sessions:
            raise not_found(session)
        return self._sessions[session]


async def serve(shelf: Shelf, pace: float) -> int:
    """Serve one client until it hangs up; the exit code."""
    agent = DemoAgent(await Wire.open(), shelf, pace)
    try:
        await agent.serve()
    except* (Crash, ConnectionError):  # wished for, or nobody listens any more
        pass
    return 70 if agent.crashed else 0


def main() -> int:
    options = argparse.ArgumentParser(description="Laneway's demo agent, over ACP on its pipes.")
    options.add_argument("state", type=Path, help="folder for its conversations")
    options.add_argument("--speed", type=float, default=1.0, help="2 is twice as fast; 0: no pause")
    chosen = options.parse_args()
    pace = 1 / chosen.speed if chosen.speed > 0 else 0.0
    return asyncio.run(serve(Shelf(chosen.state), pace))


if __name__ == "__main__":
    raise SystemExit(main())
