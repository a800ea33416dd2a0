"""Opening a session of an ACP agent: hand-shake, resume, mode and model, all before any prompt.

Everything here ends in an open session that asks before it acts, or in an EngineUnready that says
in plain words what to do. It knows no turn and no event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.engines.acp_hearing import Ear
from core.engines.acp_words import (
    Choice,
    Choices,
    Declared,
    asks_nobody,
    choices,
    declared,
    mode_for,
)
from core.engines.agents import ToolServer
from core.engines.base import Approvals, EngineUnready, Failure, FailureKind, Request
from core.engines.plain import Json, mapping, name, session_id
from core.engines.processes import Child
from core.engines.rpc import METHOD_NOT_FOUND, Ask, Note, Peer, Refused
from core.engines.speech import Meter
from core.engines.tools_bridge import TOKEN, URL

log = logging.getLogger("laneway.engine")

PROTOCOL_VERSION = 1
REQUEST = Failure(FailureKind.REQUEST)  # a setting is wrong; the agent is well
BRIDGE = Path(__file__).with_name("tools_bridge.py")
NAMED_MOST = 200  # characters of values that are named to a person


@dataclass(slots=True)
class Opened:
    """A process with an open session; between turns it is kept warm like this."""

    peer: Peer
    declared: Declared
    folder: Path
    session: str
    resumed: bool
    choices: Choices
    spent: float | None  # the session's cost so far, where known
    chosen: dict[str, str] = field(default_factory=dict)  # option id → value we have set
    idle_since: float = 0.0

    @property
    def child(self) -> Child:
        return self.peer.child

    @property
    def model(self) -> str:
        model = self.choices.model
        return name(self.chosen.get(model.option, model.current)) if model else ""


async def greet(peer: Peer) -> Declared:
    """The hand-shake."""
    able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    try:
        answer = await peer.call(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": able,
                "clientInfo": {"name": "laneway", "version": "0"},
            },
            Between(peer).hear,
        )
    except Refused as refused:
        raise EngineUnready(
            f"The agent refused the hand-shake: {refused}. Check that the command starts an agent "
            "in its ACP mode."
        ) from refused
    found = declared(answer)
    if found.version != PROTOCOL_VERSION:
        raise EngineUnready(
            f"The agent speaks version {found.version} of the Agent Client Protocol, this gateway "
            f"version {PROTOCOL_VERSION}. Install a version of the agent that fits."
        )
    return found


class Between:
    """Hears what comes outside of a turn: it belongs to nobody, and is allowed nothing."""

    def __init__(self, peer: Peer, spent: float | None = None) -> None:
        self._peer = peer
        self._ear = Ear(Meter(total=spent))

    @property
    def spent(self) -> float | None:
        return self._ear.meter.total

    def hear(self, message: Note | Ask) -> None:
        if isinstance(message, Ask):
            decline(self._peer, message)
        elif message.method == "session/update":
            update = mapping(message.params.get("update"))
            if update.get("sessionUpdate") == "usage_update":
                self._ear.count(update)


def decline(peer: Peer, ask: Ask) -> None:
    """Refuse what an agent asks of us: a permission is cancelled, the rest is not offered."""
    if ask.method == "session/request_permission":
        peer.reply(ask.id, {"outcome": {"outcome": "cancelled"}})
    else:
        peer.refuse(ask.id, METHOD_NOT_FOUND, "Method not found")


async def open_session(
    peer: Peer, found: Declared, request: Request, servers: Sequence[ToolServer]
) -> Opened:
    """The session asked for, or a fresh one; of a read-only request, a fork of it."""
    between = Between(peer)
    place: dict[str, object] = {"cwd": str(request.folder), "mcpServers": []}
    http = found.http_servers
    place["mcpServers"] = [_server(one) if http else _bridge(one) for one in servers]
    known = {**place, "sessionId": request.session}
    ways = []
    if request.session and request.read_only:
        if not found.fork:
            raise EngineUnready("This agent cannot fork its session, so it gives no side answers.")
        ways = [("session/fork", known)]
    elif request.session:
        ways += [("session/resume", known)] if found.resume else []
        ways += [("session/load", known)] if found.load else []
    for method, params in ways:
        try:
            result = await peer.call(method, params, between.hear)
        except Refused as refused:
            log.info("%s was refused: %s", method, refused)
            continue
        session = session_id(result) or request.session
        if request.read_only and session == request.session:
            raise EngineUnready("The agent gave back the main session instead of a fork of it.")
        resumed = not request.read_only
        return Opened(peer, found, request.folder, session, resumed, choices(result), between.spent)
    if ways and request.read_only:
        raise EngineUnready("The agent could not fork the session for a side answer.")
    result = await _new_session(peer, found, place, between)
    session = session_id(result)
    if not session:
        raise EngineUnready(
            "The agent opened a session without a usable id. Try another version of it."
        )
    return Opened(peer, found, request.folder, session, False, choices(result), between.spent)


async def _new_session(peer: Peer, found: Declared, place: Json, between: Between) -> Json:
    try:
        return await peer.call("session/new", place, between.hear)
    except Refused as refused:
        if refused.sign_in:
            ways = ", ".join(filter(None, found.sign_in))
            raise EngineUnready(
                "The agent wants you to sign in first"
                + (f" (it offers: {ways})" if ways else "")
                + ". Start it once in a terminal on the gateway's machine and sign in there."
            ) from refused
        raise EngineUnready(f"The agent could not open a session: {refused}") from refused


def _server(server: ToolServer) -> Json:
    headers = [{"name": name, "value": value} for name, value in server.headers.items()]
    return {"type": "http", "name": server.name, "url": server.url, "headers": headers}


def _bridge(server: ToolServer) -> Json:
    """The same as a program: every agent can start those. The token is no argument of it."""
    told = ((URL, server.url), (TOKEN, server.token))
    env = [{"name": name, "value": value} for name, value in told]
    args = ["-I", "-S", str(BRIDGE)]
    return {"name": server.name, "command": sys.executable, "args": args, "env": env}


async def set_up(opened: Opened, request: Request, read_only_mode: str) -> None:
    """Mode, model and effort, before every turn. Its answers also show that the agent lives.

    Whatever the agent had to say until then was said between two turns.
    """
    between = Between(opened.peer, opened.spent)
    mode = _mode(opened.choices.mode, request, read_only_mode)
    if opened.choices.mode is not None and mode:
        await _choose(opened, opened.choices.mode, mode, between)
    for what, choice, wanted in (
        ("model", opened.choices.model, request.model),
        ("effort", opened.choices.effort, request.effort),
    ):
        if choice is None:
            if wanted and not request.read_only:  # a fork goes on as its session was set
                raise EngineUnready(_not_offered(what, wanted, ()), REQUEST)
            continue
        value = _value(what, choice, wanted)
        if value != opened.chosen.get(choice.option, choice.current):
            await _choose(opened, choice, value, between)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0):  # only what is there already
            while True:
                message = await opened.peer.read()
                if isinstance(message, Note | Ask):
                    between.hear(message)
    opened.spent = between.spent


def _mode(choice: Choice | None, request: Request, read_only_mode: str) -> str:
    if request.read_only:
        if not read_only_mode:
            raise EngineUnready(
                "This agent has no read-only mode set, so it gives no side answers. An admin can "
                "name one with LANEWAY_ACP_READONLY_MODE."
            )
        if choice is None or read_only_mode not in choice.values:
            raise EngineUnready(
                f"The agent does not offer the mode “{read_only_mode}” that was named read-only. "
                + (f"It offers: {', '.join(choice.values)}." if choice else "It offers no modes.")
            )
        return read_only_mode
    mode = mode_for(choice, request.approvals)
    if request.approvals is not Approvals.FULL and asks_nobody(choice, mode):
        raise EngineUnready(
            f"The agent would work in its mode “{choice.current if choice else ''}”, in which it "
            "approves everything by itself, and offers none that asks. An admin can accept that "
            "with /approvals full."
        )
    return mode


def _value(what: str, choice: Choice, wanted: str) -> str:
    """The value that a person's word means; the one from the beginning when there is no such."""
    for value in choice.values:
        if wanted and value.lower() == wanted.lower():
            return value
    if wanted:
        raise EngineUnready(_not_offered(what, wanted, choice.values), REQUEST)
    return choice.current


def _not_offered(what: str, wanted: str, values: Sequence[str]) -> str:
    """For a model or an effort that somebody chose and this agent does not have."""
    if not values:
        return (
            f"The agent offers no choice of {what}, so it cannot use “{wanted}”. "
            f"Set it back with /{what} default."
        )
    named = ", ".join(values)
    if len(named) > NAMED_MOST:
        named = named[:NAMED_MOST].rpartition(", ")[0] or values[0][:NAMED_MOST]
        named = f"{named}, …"
    return (
        f"The agent offers no {what} “{wanted}”; it offers: {named}. "
        f"Set another with /{what}, or /{what} default."
    )


async def _choose(opened: Opened, choice: Choice, value: str, between: Between) -> None:
    session = {"sessionId": opened.session}
    if choice.option:
        method, params = (
            "session/set_config_option",
            {**session, "configId": choice.option, "value": value},
        )
    else:
        method, params = "session/set_mode", {**session, "modeId": value}
    try:
        answer = await opened.peer.call(method, params, between.hear)
    except Refused as refused:
        raise EngineUnready(f"The agent refused to use “{value}”: {refused}", REQUEST) from refused
    opened.chosen[choice.option] = value
    now = choices(answer)
    for told in (now.mode, now.model, now.effort):
        if told and choice.option and told.option == choice.option and told.current != value:
            raise EngineUnready(f"The agent did not take “{value}”; it stays at “{told.current}”.")
