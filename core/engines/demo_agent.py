"""The demo agent: a small, honest stand-in for a real one, so that everything can be tried offline.

A program of its own, run by its file path (``python -I demo_agent.py STATE``), which speaks the
Agent Client Protocol on its pipes and plain language in its answers. It must not import anything
of the gateway, calls no model, and makes up neither knowledge nor prices.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from acp import (
    PROTOCOL_VERSION,
    RequestError,
    run_agent,
    start_tool_call,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
    update_user_message_text,
)
from acp.interfaces import Agent, Client
from acp.schema import (
    AgentCapabilities,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptCapabilities,
    PromptResponse,
    ResourceContentBlock,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionForkCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionModeResponse,
    ToolCallUpdate,
    Usage,
)

MODES = [
    SessionMode(id="default", name="Asks before it changes anything"),
    SessionMode(id="read-only", name="Changes nothing"),
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
            raise RequestError.resource_not_found(number)
        try:
            return Session(**json.loads((self._folder / f"{number}.json").read_text()))
        except FileNotFoundError:
            raise RequestError.resource_not_found(number) from None

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

    def __init__(self, client: Client, session: Session, folder: Path, pace: float) -> None:
        self._client = client
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
            await self.update(update_agent_message_text(word))
            self.answer += word
            self.words += 1
            await self.wait(pause * self._pace)

    async def update(self, update: Any) -> None:
        await self._client.session_update(session_id=self.session.id, update=update)

    async def think(self, text: str) -> None:
        await self.update(update_agent_thought_text(text))

    async def wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.cancelled.wait(), seconds)
        except TimeoutError:
            return
        raise Cancelled

    async def tool(self, title: str, kind: Any, work: Callable[[str], Awaitable[bool]]) -> bool:
        """Show a tool at work; False when it was not allowed or did not work."""
        self._tools += 1
        number = f"tool-{len(self.session.said)}-{self._tools}"
        await self.update(start_tool_call(number, title, kind=kind, status="pending"))
        done = False
        try:
            done = await work(number)
        finally:
            ended = update_tool_call(number, status="completed" if done else "failed")
            await self.update(ended)
        return done

    async def allowed(self, number: str, title: str, command: str) -> bool:
        """Ask for permission, unless the mode forbids it anyway."""
        if self.session.mode == "read-only":
            return False
        call = ToolCallUpdate(
            tool_call_id=number, title=title, kind="edit", raw_input={"command": command}
        )
        options = [
            PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
            PermissionOption(option_id="no", name="Deny", kind="reject_once"),
        ]
        asking = asyncio.ensure_future(
            self._client.request_permission(
                session_id=self.session.id, tool_call=call, options=options
            )
        )
        stopped = asyncio.ensure_future(self.cancelled.wait())
        await asyncio.wait({asking, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not asking.done():
            asking.cancel()
            raise Cancelled
        outcome = asking.result().outcome
        if outcome.outcome == "cancelled":
            raise Cancelled
        return outcome.option_id == "yes"

    async def hand_over(self, path: Path, mime: str) -> None:
        block = ResourceContentBlock(
            type="resource_link", uri=path.as_uri(), name=path.name, mime_type=mime
        )
        await self.update(update_agent_message(block))

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
        raise RequestError(-32000, "the workspace is full of demo files; delete some")


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
    raise RequestError(-32000, "this is what a failing agent looks like; nothing is broken")


async def show_crash(turn: Turn, asked: str) -> None:
    await turn.say("I am going to crash now. ")
    raise SystemExit(70)


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


class DemoAgent:
    """The agent's side of the protocol."""

    def __init__(self, shelf: Shelf, pace: float) -> None:
        self._shelf = shelf
        self._pace = pace
        self._sessions: dict[str, tuple[Session, Path]] = {}
        self._turns: dict[str, Turn] = {}
        self.crashed = asyncio.Event()

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    def _modes(self, session: Session) -> SessionModeState:
        return SessionModeState(current_mode_id=session.mode, available_modes=MODES)

    def _take(self, session: Session, cwd: str) -> SessionModeState:
        session.mode = "default"
        self._sessions[session.id] = (session, Path(cwd))
        return self._modes(session)

    async def initialize(self, protocol_version: int, **rest: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="laneway-demo", version="1"),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True),
                session_capabilities=SessionCapabilities(
                    fork=SessionForkCapabilities(), resume=SessionResumeCapabilities()
                ),
            ),
            auth_methods=[],
        )

    async def new_session(self, cwd: str, **rest: Any) -> NewSessionResponse:
        session = self._shelf.create([], [])
        return NewSessionResponse(session_id=session.id, modes=self._take(session, cwd))

    async def resume_session(self, cwd: str, session_id: str, **rest: Any) -> ResumeSessionResponse:
        return ResumeSessionResponse(modes=self._take(self._shelf.load(session_id), cwd))

    async def load_session(self, cwd: str, session_id: str, **rest: Any) -> LoadSessionResponse:
        session = self._shelf.load(session_id)
        modes = self._take(session, cwd)
        for said, answered in zip(session.said, session.answered, strict=False):
            for update in (update_user_message_text(said), update_agent_message_text(answered)):
                await self._client.session_update(session_id=session_id, update=update)
        return LoadSessionResponse(modes=modes)

    async def fork_session(self, cwd: str, session_id: str, **rest: Any) -> ForkSessionResponse:
        origin = self._shelf.load(session_id)
        fork = self._shelf.create(origin.said, origin.answered)
        return ForkSessionResponse(session_id=fork.id, modes=self._take(fork, cwd))

    async def set_session_mode(
        self, mode_id: str, session_id: str, **rest: Any
    ) -> SetSessionModeResponse:
        if mode_id not in {mode.id for mode in MODES}:
            raise RequestError.invalid_params({"details": f"no such mode: {mode_id}"})
        self._open(session_id)[0].mode = mode_id
        return SetSessionModeResponse()

    async def cancel(self, session_id: str, **rest: Any) -> None:
        if turn := self._turns.get(session_id):
            turn.cancelled.set()

    async def prompt(self, prompt: list[Any], session_id: str, **rest: Any) -> PromptResponse:
        session, folder = self._open(session_id)
        if session_id in self._turns:
            raise RequestError.invalid_request({"details": "a prompt is running already"})
        turn = self._turns[session_id] = Turn(self._client, session, folder, self._pace)
        asked = "\n".join(block.text for block in prompt if block.type == "text").strip()
        reason: Any = "end_turn"
        try:
            await topic(asked)(turn, asked)
        except Cancelled:
            reason = "cancelled"
        except SystemExit:
            self.crashed.set()
            await asyncio.Event().wait()  # the process ends any moment
        finally:
            del self._turns[session_id]
            session.said.append(asked)
            session.answered.append(turn.answer)
            self._shelf.save(session)
        read = len(asked.split())  # words for tokens: the nearest thing it has, and no price
        usage = Usage(input_tokens=read, output_tokens=turn.words, total_tokens=read + turn.words)
        return PromptResponse(stop_reason=reason, usage=usage)

    def _open(self, session_id: str) -> tuple[Session, Path]:
        try:
            return self._sessions[session_id]
        except KeyError:
            raise RequestError.resource_not_found(session_id) from None


async def serve(shelf: Shelf, pace: float) -> int:
    """Serve one client until it hangs up; the exit code."""
    agent = DemoAgent(shelf, pace)
    serving = asyncio.ensure_future(run_agent(cast(Agent, agent), use_unstable_protocol=True))
    crashing = asyncio.ensure_future(agent.crashed.wait())
    await asyncio.wait({serving, crashing}, return_when=asyncio.FIRST_COMPLETED)
    return 70 if agent.crashed.is_set() else 0


def main() -> int:
    options = argparse.ArgumentParser(description="Laneway's demo agent, over ACP on its pipes.")
    options.add_argument("state", type=Path, help="folder for its conversations")
    options.add_argument("--speed", type=float, default=1.0, help="2 is twice as fast; 0: no pause")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    pace = 1 / chosen.speed if chosen.speed > 0 else 0.0
    return asyncio.run(serve(Shelf(chosen.state), pace))


if __name__ == "__main__":
    raise SystemExit(main())
