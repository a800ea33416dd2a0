"""Opening a session of Claude Code, and what is looked at before a warm one goes on.

Everything here ends in an open session, or in an EngineUnready that says in plain words what to
do. It knows no turn and no event.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.engines import claude_ends as ends
from core.engines.base import EngineUnready, Request
from core.engines.claude_peer import ClaudePeer, answers
from core.engines.claude_words import NEWEST_NEEDED, Declared, Setup, declared
from core.engines.lines import Gone
from core.engines.plain import Json, mapping, words
from core.engines.processes import Child

if TYPE_CHECKING:
    from core.engines.claude import ClaudeEngine

# What a process that works by itself says; one at rest says nothing but notices.
AT_WORK = frozenset({"stream_event", "assistant", "control_request", "result", "user"})
ANSWERS_WITHIN = 1.0  # seconds; a live one takes a few hundredths
NEEDED = ".".join(map(str, NEWEST_NEEDED))
TOO_OLD = (
    f"This version of Claude Code is too old for that: {NEEDED} or newer is needed. Ask an admin "
    "to update it."
)
LOST = ("no conversation found", "valid session id")


class SessionLost(EngineUnready):
    """The session that was asked for is not there any more."""


@dataclass(slots=True)
class Talk:
    """A process with an open session; between turns it is kept warm like this."""

    peer: ClaudePeer
    declared: Declared
    folder: Path
    session: str
    resumed: bool
    setup: Setup
    spent: float | None  # the session's cost so far, where known
    mark: float | None  # the same as this process counts it; None: it has to be asked
    idle_since: float = 0.0

    @property
    def child(self) -> Child:
        return self.peer.child

    @property
    def model(self) -> str:
        return self.declared.model(self.setup.model)


async def open_talk(peer: ClaudePeer, request: Request, fresh: str, engine: ClaudeEngine) -> Talk:
    """The hand-shake with a new process. Nothing of the prompt is needed for it."""
    number = peer.request("initialize", hooks=None)
    try:
        response = await _answer(peer, number, request)
    except Gone as gone:
        said = await peer.child.last_words(1.0)
        _look_for_loss(request, said)
        if "unknown option" in said:
            raise EngineUnready(TOO_OLD, ends.REQUEST) from gone
        raise
    found, setup = declared(response), Setup.of(request)
    engine.told = found
    if request.read_only and found.version and not found.current:
        raise EngineUnready(TOO_OLD, ends.REQUEST)
    _check_effort(found, setup)
    going_on = bool(request.session) and not request.read_only
    spent = None
    if request.session:
        spent = await asyncio.to_thread(engine.totals.read, request.session)
    session = request.session if going_on else fresh
    mark = None if request.session else 0.0
    return Talk(peer, found, request.folder, session, going_on, setup, spent, mark)


async def _answer(peer: ClaudePeer, number: str, request: Request) -> Json:
    while True:
        message = await peer.read()
        if answers(message, number):
            response = mapping(message.get("response"))
            if response.get("subtype") == "error":
                raise EngineUnready(
                    f"Claude Code refused the hand-shake: {words(response.get('error'))}. Check "
                    "its version with laneway doctor."
                )
            return mapping(response.get("response"))
        if message.get("type") == "result" and ends.failed(message):
            _look_for_loss(request, ends.said(message))
            raise EngineUnready(f"Claude Code could not begin: {ends.said(message)}")


def _look_for_loss(request: Request, said: str) -> None:
    if request.session and any(word in said.lower() for word in LOST):
        raise SessionLost(f"the session {request.session} is not known")


def _check_effort(found: Declared, setup: Setup) -> None:
    offered = found.efforts(setup.model)
    if setup.effort and setup.effort not in offered:
        named = f"offers: {', '.join(offered)}" if offered else "offers no choice of it"
        raise EngineUnready(
            f"The model has no effort “{setup.effort}”; it {named}. "
            "Set another with /effort, or /effort default.",
            ends.REQUEST,
        )


async def settle_between(peer: ClaudePeer) -> None:
    """See that a warm process lives, and pass over what it said between two turns.

    Raises Gone when it is of no use any more. One that does not answer is taken as it is.
    """
    number = peer.request("set_permission_mode", mode="default")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ANSWERS_WITHIN):
            while True:
                message = await peer.read()
                if message.get("type") in AT_WORK:
                    raise Gone("it works by itself")
                if answers(message, number):
                    return
