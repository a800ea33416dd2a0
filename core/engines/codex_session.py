"""Opening a thread of Codex: the hand-shake, what the program declares, and the thread itself.

Everything here ends in an open thread, or in an EngineUnready that says in plain words what to
do. It knows no turn and no event.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.engines import codex_ends as ends
from core.engines.base import Approvals, EngineUnready, Finding, Request
from core.engines.codex_words import (
    GREETING,
    PROFILE,
    SHELL,
    Declared,
    models,
    obeyed,
    offered,
    thread,
    version,
)
from core.engines.lines import Gone
from core.engines.plain import Json, as_sent, items, mapping, name, words
from core.engines.processes import Child
from core.engines.rpc import METHOD_NOT_FOUND, Ask, Note, Peer, Refused

if TYPE_CHECKING:
    from core.engines.codex import CodexEngine

log = logging.getLogger("laneway.engine")

# What tools printed, and what was changed so far: nothing waits for it.
PASSED_OVER = (
    *(b'"method":"item/completed"', b'"method":"item/started"', b'outputDelta"'),
    *(b'"method":"turn/diff/', b'"method":"rawResponse', b'"method":"thread/'),
)
ANSWERS_WITHIN = 2.0  # seconds; a live one takes a few hundredths
LOST = ("no rollout found", "thread not found", "invalid session id", "invalid thread id")
TOO_OLD = (
    "This version of Codex ({}) cannot be told what it may do without asking, so nothing was "
    "handed to it. Install a newer one."
)
NO_SIDE = (
    "This version of Codex ({}) cannot be held to reading only, so it gives no answers on the side."
)

NO_SANDBOX = (
    "Without it every command has to leave the sandbox. On Linux Codex wants bubblewrap (`apt "
    "install bubblewrap`) and user namespaces; a container mostly has to be allowed those."
)


@dataclass(slots=True)
class Thread:
    """A process with an open thread; between turns it is kept warm like this."""

    peer: Peer
    declared: Declared
    folder: Path
    session: str
    resumed: bool
    approvals: Approvals  # it was started for
    model: str
    limits: Json
    idle_since: float = 0.0

    @property
    def child(self) -> Child:
        return self.peer.child


def new_peer(child: Child) -> Peer:
    return Peer(child, PASSED_OVER, version={})


async def open_thread(peer: Peer, request: Request, engine: CodexEngine) -> Thread:
    """The hand-shake with a new process. Nothing of the prompt is needed for it."""
    found = await greet(peer)
    engine.told = found
    check_effort(found, request)
    told = thread(request, engine.served(request), found.servers if request.read_only else ())
    opened, resumed = await _opened(peer, request, told, engine)
    if not obeyed(opened, request):
        raise EngineUnready(TOO_OLD.format(found.version), ends.REQUEST)
    session = _session(opened)
    if request.read_only:
        await _see_that_it_only_reads(peer, session, found, engine)
    model = found.model(request.model) or name(opened.get("model"))
    return Thread(peer, found, request.folder, session, resumed, request.approvals, model, {})


async def greet(peer: Peer) -> Declared:
    greeted = await call(peer, "initialize", GREETING)
    peer.notify("initialized", {})
    listed = await _told(peer, "model/list")
    config = mapping((await _told(peer, "config/read")).get("config"))
    account = await _told(peer, "account/read")
    servers = config.get("mcp_servers")
    return Declared(
        version=version(greeted),
        models=models(listed),
        own_model=name(config.get("model")),
        own_effort=name(config.get("model_reasoning_effort")),
        servers=tuple(servers) if isinstance(servers, dict) else (),
        signed_in=bool(account.get("account")) or account.get("requiresOpenaiAuth") is not True,
    )


async def _told(peer: Peer, method: str) -> Json:
    """What it tells of itself; nothing where it does not know the question."""
    try:
        return await call(peer, method, {})
    except Refused as refused:
        log.info("Codex does not tell %s: %s", method, refused)
        return {}


async def call(peer: Peer, method: str, params: Json) -> Json:
    """A request between turns, and its result; questions that come meanwhile are refused."""

    def meanwhile(message: Note | Ask) -> None:
        if isinstance(message, Ask):
            peer.refuse(message.id, METHOD_NOT_FOUND, "nothing is asked between turns")
        elif message.method == "turn/started":
            raise Gone("it works by itself")

    return await peer.call(method, params, meanwhile)


async def sandbox(opened: Thread) -> Finding:
    """Whether commands can be run in its sandbox; for the doctor."""
    told: dict[str, object] = {"command": ["true"], "cwd": str(opened.folder)}
    told |= {"permissionProfile": PROFILE, "timeoutMs": 10_000}
    try:
        ran = await call(opened.peer, "command/exec", told)
    except Refused as refused:
        why = str(refused)
    else:
        if ran.get("exitCode") == 0:
            return Finding("codex: sandbox", True, "it works")
        why = as_sent(ran.get("stderr")) or f"exit code {ran.get('exitCode')}"
    return Finding("codex: sandbox", False, name(why), NO_SANDBOX)


async def settle_between(kept: Thread) -> None:
    """See that a warm process lives, and pass over what it said between two turns.

    Raises Gone when it is of no use any more.
    """
    try:
        async with asyncio.timeout(ANSWERS_WITHIN):
            told = {"threadId": kept.session, "includeTurns": False}
            await call(kept.peer, "thread/read", told)
    except (TimeoutError, Refused) as fault:
        raise Gone("it does not answer") from fault


async def _opened(
    peer: Peer, request: Request, told: Json, engine: CodexEngine
) -> tuple[Json, bool]:
    """The thread as it was opened, and whether it is the one that was asked for."""
    if request.session:
        method = "thread/fork" if request.read_only else "thread/resume"
        kept = {"ephemeral": True} if request.read_only else {}
        gone_on = {"threadId": request.session, "excludeTurns": True, **kept, **told}
        try:
            return await call(peer, method, gone_on), not request.read_only
        except Refused as refused:
            if not any(word in str(refused).lower() for word in LOST):
                raise _unready(refused) from refused
            log.info("%s: %s; a fresh thread begins", request.lane, refused)
    tools = offered(engine.tools(request))
    begun = {**told, "dynamicTools": tools, "ephemeral": request.read_only}
    try:
        return await call(peer, "thread/start", begun), False
    except Refused as refused:
        raise _unready(refused) from refused


def _unready(refused: Refused) -> EngineUnready:
    return EngineUnready(
        f"Codex refused to open the conversation: {words(str(refused))}. Check its version and "
        "settings with laneway doctor."
    )


def _session(opened: Json) -> str:
    found = mapping(opened.get("thread")).get("id")
    if not isinstance(found, str) or not found or words(found) != found:
        raise EngineUnready("Codex opened no conversation that can be gone on with.")
    return found


async def _see_that_it_only_reads(
    peer: Peer, session: str, found: Declared, engine: CodexEngine
) -> None:
    """Take the program's own word for it that commands are off."""
    listed = await call(peer, "experimentalFeature/list", {"threadId": session, "limit": 1000})
    shell = [one for one in items(listed.get("data")) if one.get("name") == SHELL]
    if not shell or shell[0].get("enabled") is not False:
        engine.never_on_the_side()
        raise EngineUnready(NO_SIDE.format(found.version), ends.REQUEST)


def check_effort(found: Declared, request: Request) -> None:
    """EngineUnready, before anything is sent, for an effort that the model lacks."""
    model = found.about(found.model(request.model))
    if request.effort and model is not None and request.effort not in model.efforts:
        raise EngineUnready(
            f"The model has no effort “{request.effort}”; it offers: {', '.join(model.efforts)}. "
            "Set another with /effort, or /effort default.",
            ends.REQUEST,
        )
