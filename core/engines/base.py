"""The Engine port: how a turn is run, steered, answered and stopped, whatever the agent is.

An engine never sees a channel, the store or the lane rules. Its events are the only thing it
tells; an engine may not invent event types.

The contract of ``Run.events()``, checked by one test class over every engine:

1. ``Started`` comes first, after the hand-shake and before any byte of the prompt left. The prompt
   is handed over only when the next event is asked for: in between the gateway commits *prompted*.
2. Then any number of the others.
3. Exactly one ``Finished`` or ``Unsent``, the last event.
4. The iteration ends when the agent's processes are gone or handed back warm.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from core.turns import Result


@dataclass(frozen=True, slots=True)
class Abilities:
    """What an engine can do, declared; the gateway does without what is missing and says so."""

    resume: bool = False
    side: bool = False  # a fork that is read-only by force
    steer: bool = False
    compact: bool = False
    cost: bool | None = False  # of its turns; None: not known before its first one
    images: bool = False


class Approvals(StrEnum):
    """When a person is asked: always, unless the engine itself calls it safe, never."""

    ASK = "ask"
    AUTO = "auto"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of the prompt, already in the workspace."""

    path: Path
    mime: str


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool of the gateway as agents are told of it. ``schema`` is JSON Schema of an object."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolReply:
    text: str
    failed: bool = False


class Toolbox(Protocol):
    """What a running agent may ask of the gateway. It works only while its turn runs.

    An engine whose agent speaks MCP hands it ``url`` (streamable HTTP on loopback) and ``token``
    (a bearer token that stays the same for all turns of a session; never in an argument list); one
    that calls tools itself uses ``call``.
    """

    @property
    def url(self) -> str: ...

    @property
    def token(self) -> str: ...

    def offered(self) -> Sequence[ToolSpec]: ...

    async def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        """Never raises: what cannot be done is a reply that failed, in words for the agent."""


@dataclass(frozen=True, slots=True)
class Request:
    """Everything a turn needs, frozen when it starts."""

    lane: str
    turn: int
    folder: Path  # the workspace; exists
    prompt: str
    session: str = ""  # the engine's own id of the conversation to go on with; "" a fresh one
    attachments: Sequence[Attachment] = ()
    approvals: Approvals = Approvals.ASK
    model: str = ""
    effort: str = ""
    read_only: bool = False  # a side answer: fork of the session, hard read-only
    compact: bool = False  # shorten the session instead; the prompt may say what matters
    budget: float | None = None  # US dollars this turn may cost; the gateway stops it in any case
    toolbox: Toolbox | None = None


# Failures ---------------------------------------------------------------------------------


class FailureKind(StrEnum):
    """What a failure means for what comes next."""

    LIMIT = "limit"  # the account's limit of use is reached
    BUSY = "busy"  # overloaded or out of reach: the same may work in a moment
    SESSION = "session"  # the conversation that was gone on with is refused, whatever is asked
    BROKEN = "broken"  # not installed, not signed in, ended by itself: nobody's turn will do
    SPENT = "spent"  # the cap that the turn was given is reached
    REQUEST = "request"  # what was asked or set cannot be; the engine itself is well


@dataclass(frozen=True, slots=True)
class Failure:
    """What kind of failure it was, where an engine can tell.

    ``until``: of a limit, when it ends (ms since 1970). ``wait``: seconds the service asks to
    wait. ``tried``: the engine has tried several times already, so it is not tried again.
    """

    kind: FailureKind
    until: int | None = None
    wait: float | None = None
    tried: bool = False


# Events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """The session is open. ``resumed``: it is the one that was asked for."""

    session: str
    model: str = ""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer; pieces are joined as they are."""

    delta: str


@dataclass(frozen=True, slots=True)
class Thought:
    """The engine thinks; its words are not part of the answer."""

    delta: str = ""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    id: str
    title: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    id: str
    title: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class FileMade:
    """A file for the thread; the gateway checks that it lies in the workspace."""

    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """The engine waits for a decision. ``command`` is exactly what will run, in full."""

    id: str
    tool: str
    command: str
    safe: bool = False  # the engine itself calls it safe


@dataclass(frozen=True, slots=True)
class ApprovalWithdrawn:
    id: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What this run has used so far (not since the session began). Cost in US dollars."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum; its cost is what is known of the two."""
        known = [one for one in (self.cost, other.cost) if one is not None]
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            sum(known) if known else None,
        )


@dataclass(frozen=True, slots=True)
class SteerSettled:
    """The fate of an offered message: taken into the turn, or not."""

    turn: int
    taken: bool
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Unsent:
    """Certainly no byte of the prompt left the gateway."""

    error: str
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The end. ``error`` is in plain words for the thread; empty unless it failed."""

    result: Result
    error: str = ""
    failure: Failure | None = None


Event = (
    Started | Text | Thought | ToolStarted | ToolEnded | FileMade | ApprovalAsked
    | ApprovalWithdrawn | Usage | SteerSettled | Unsent | Finished
)  # fmt: skip


class Decision(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    CANCEL = "cancel"  # the turn is being stopped


class EngineError(Exception):
    """The engine cannot run; the message says in plain words what to do."""

    def __init__(self, message: str, failure: Failure | None = None) -> None:
        super().__init__(message)
        self.failure = failure


class EngineUnready(EngineError):
    """The engine could not be opened; no prompt left."""


class Run(Protocol):
    """One turn. Made by ``Engine.run``; nothing happens before ``events`` is iterated."""

    def events(self) -> AsyncGenerator[Event, None]: ...

    @property
    def quarantine(self) -> str:
        """Why its session may never be used again; empty in general. Known once it ended."""

    def answer(self, approval: str, decision: Decision) -> None:
        """Settle an open approval; unknown and settled ids are ignored."""

    async def steer(self, turn: int, text: str) -> None:
        """Offer a message to the running turn; ``SteerSettled`` comes before ``Finished``."""

    async def stop(self, grace: float) -> None:
        """Interrupt at 0, close stdin at ½, TERM at ¾, KILL of the whole tree at ``grace`` seconds.

        ``events`` then yields ``Finished`` and ends. Returns when no process of the turn is alive.
        """


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of ``laneway doctor``; ``fix`` says what to do when it is not ok."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Choices:
    """Models and efforts an engine knows of.

    ``open``: it may take models that are not among these; else it takes, beside them, those that
    hold one of the words in ``like``. Without any, and not open, there is no choice.
    """

    models: Sequence[str] = ()
    efforts: Sequence[str] = ()
    open: bool = True
    like: Sequence[str] = ()


@runtime_checkable
class Offering(Protocol):
    """An engine that can say what it can be set to."""

    async def choices(self, model: str = "") -> Choices:
        """What is known now; ``efforts`` are those of this model. Never raises, takes at most a
        second or so, and starts nothing."""


class Engine(Protocol):
    """One kind of agent, shared by all lanes."""

    @property
    def name(self) -> str: ...

    @property
    def abilities(self) -> Abilities: ...

    def run(self, request: Request) -> Run:
        """A turn that has not begun. Never blocks, never fails."""

    async def check(self) -> Sequence[Finding]:
        """Whether program and version fit; starts no turn."""

    async def tend(self) -> None:
        """Look after warm processes until cancelled; one task of the process runs it."""

    async def close(self) -> None:
        """End every warm process; returns when none is alive."""
