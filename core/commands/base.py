"""What a command is given and what it answers. Values only; no command stands here.

A command is a plain function from ``Ask`` to ``Answer``: everything it may look at was read
before, everything it changes is a row or an event of its answer, so it waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import Enum, StrEnum
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from core.budget_words import BudgetsSeen
from core.budgets import Change
from core.engines.base import Abilities, Choices
from core.job_asking import JobLimits
from core.job_rules import Job
from core.lane_events import Event
from core.people import Person
from core.showing import Choice
from core.store.jobs import FiringRow
from core.store.records import LaneRow, RuleRow
from core.store.rows import Row
from core.turns import EnginePause, Kind, LaneFacts, Turn
from core.usage import Report, Used


class Who(StrEnum):
    """Who may give a command. In a chat, what is said is always said in the lane."""

    ANYONE = "anyone"
    ALL = "all"
    LANE = "all in the lane"
    ADMINS = "admins"


class Needs(Enum):
    """What of a lane's past a command looks at; nothing else is read for it."""

    SESSION = "its session with the engine"
    SPENT = "what it has used so far"
    ANSWER = "its last answer"
    PAUSES = "whether everything is paused"
    RULES = "what is allowed in it without asking"
    CHOICES = "what its engine can be set to"


@dataclass(frozen=True, slots=True)
class Shown:
    """A turn as people see it."""

    id: int
    label: str
    person: str
    name: str
    since: int  # ms: of a running turn its start, of a waiting one its arrival
    kind: Kind = Kind.MAIN


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


@dataclass(frozen=True, slots=True)
class Values:
    """The settings that hold in a lane: its own, else the gateway's."""

    engine: str
    model: str = ""
    effort: str = ""
    approvals: str = "ask"
    busy: str = "queue"
    workspace: str = ""  # "" is a folder of the lane's own
    shared: str = ""  # the folder for lanes that name none
    zone: str = "UTC"

    @property
    def clock_zone(self) -> tzinfo:
        """The gateway's own zone."""
        return _zone(self.zone)


@dataclass(frozen=True, slots=True)
class Looked:
    """A folder somebody named, looked at before the command runs."""

    path: Path | None = None
    problem: str = ""


def _no_number() -> int:
    raise AssertionError("only commands that make jobs have numbers for them")


@dataclass(frozen=True, slots=True)
class JobsSeen:
    """Of jobs, what a command about them looks at: the lane's, the one it names, the settings."""

    limits: JobLimits = field(default_factory=JobLimits)
    listed: tuple[Job, ...] = ()
    one: Job | None = None
    firings: tuple[FiringRow, ...] = ()  # of that one, newest first
    mine: int = 0  # jobs of this person, anywhere
    number: Callable[[], int] = _no_number  # of the next job
    name: Callable[[str], str] = str  # of a person


@dataclass(frozen=True, slots=True)
class LinkSeen:
    """What a code is that somebody typed. ``account``: whose; ``held``: whose this chat is now."""

    account: str = ""
    problem: str = ""
    held: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """The lane as it is when a command comes; of its past, what the command's row names."""

    now: int
    lane: LaneRow
    values: Values
    facts: LaneFacts
    abilities: Abilities = field(default_factory=Abilities)
    engines: tuple[str, ...] = ()
    main: Shown | None = None
    state: str = "idle"  # idle | starting | running | asking | settling
    waiting: tuple[Shown, ...] = ()
    sides: tuple[Shown, ...] = ()
    paused_all: bool = False
    paused_engines: Mapping[str, EnginePause] = field(default_factory=dict)
    acting: str = ""  # the engine that has the turns now, where another stands in
    session: str = ""
    answer: str = ""  # the lane's last
    spent: Used = field(default_factory=Used)
    rules: tuple[RuleRow, ...] = ()  # "always here", also of folders it worked in before
    works_in: str = ""  # the folder itself, where rules are looked at
    choices: Choices = field(default_factory=Choices)  # of its engine
    engages: bool = False
    listed: bool = True  # members may talk here
    folder: Looked = Looked()
    first: Turn | None = None  # what a stop ended before it was stored
    used: Report | None = None  # None: what was typed is no time span
    jobs: JobsSeen = field(default_factory=JobsSeen)
    budgets: BudgetsSeen = field(default_factory=BudgetsSeen)
    link: LinkSeen = LinkSeen()


@dataclass(frozen=True, slots=True)
class Ask:
    name: str
    args: str
    person: Person
    here: Situation

    @property
    def clock_zone(self) -> tzinfo:
        """The zone in which times are told: the person's own, else the gateway's."""
        return _zone(self.person.zone or self.here.values.zone)


@dataclass(frozen=True, slots=True)
class Act:
    """What an admin did by a command, for the audit page and the log; never a secret in it."""

    act: str  # a word like engine.paused
    about: str = ""  # a lane, an engine, a job, ...
    detail: str = ""  # plain words

    def told(self, person: str) -> str:
        """A line of the log."""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.act}: {self.about}{detail} by {person}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command does and says. Without text the runner's notice is the answer."""

    text: str = ""  # Markdown
    rows: tuple[Row, ...] = ()
    event: Event | None = None
    choices: tuple[Choice, ...] = ()
    side: str = ""  # a question for a side answer
    compact: str | None = None  # a compaction begins; the text is what matters most in it
    shared: bool = False  # for everybody in the thread, however it was asked for
    title: str = ""  # the thread's new name on its platform
    reload: bool = False  # people or places changed
    jobs: bool = False  # jobs changed
    budget: Change | None = None  # of the caps on money
    act: Act | None = None  # of an admin; stored in the same commit, then logged

    @property
    def private(self) -> bool:
        """Whether it concerns nobody but who asked: it tells something, and changes no thread."""
        changes = self.event or self.budget or self.title or (self.rows and not self.reload)
        begins = self.side or self.compact is not None
        return bool(self.text) and not (changes or begins or self.choices or self.shared)


@dataclass(frozen=True, slots=True)
class Command:
    """One line of the table. ``line`` stands in the help and in the platforms' menus."""

    name: str
    line: str
    who: Who
    run: Callable[[Ask], Answer]
    args: str = ""
    needs: frozenset[Needs] = frozenset()

    def open_to(self, person: Person) -> bool:
        if self.who is Who.ADMINS:
            return person.admin
        return self.who is Who.ANYONE or bool(person.role)
