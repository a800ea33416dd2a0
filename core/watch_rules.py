"""Watches: what was seen, whether that is what somebody waits for, and when to look again.

Pure: the condition, what is known from before and what a look brought in; what to remember and
whether to speak up out. A condition counts when it comes true, not as long as it stays true. It
must not know how a look is made, the store, or words for people.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from core.messages import clean
from core.when import Plan, following

PATIENCE = 5  # looks that fail in a row until it is told
LONGEST_PAUSE = 3_600_000  # ms between two looks that fail; longer where it looks more seldom
KEPT = 64 * 1024  # characters of what was seen that are kept for telling what changed
FOR_EVER = 7 * 24 * 3_600_000  # ms that a watch lasts when nothing is said
SHELL_REFUSES = (126, 127)  # exit codes: no such program, or none that may be run
QUIET_EXITS = (0, 1)  # 1 is how grep and diff say "no"


class Look(StrEnum):
    URL = "url"
    RUN = "run"
    FILE = "file"


class Condition(StrEnum):
    CHANGED = "changed"
    CONTAINS = "contains"
    STATUS = "status"
    EXIT = "exit"
    EXISTS = "exists"
    JSON = "json"


Step = str | int  # of a way into JSON: a name, or a place in a list
Value = str | float | bool | None


@dataclass(frozen=True, slots=True)
class What:
    """What is looked at, and what is waited for. ``op`` and ``value``: of status, exit and json."""

    look: Look
    target: str  # address, command line or path
    condition: Condition
    text: str = ""  # of contains
    path: tuple[Step, ...] = ()  # of json
    op: str = ""
    value: Value = None
    exact: bool = False  # the value is text, whatever it looks like

    @property
    def follows(self) -> bool:
        """Whether a redirect is gone after: not where its own status is what is asked about."""
        told = self.value if self.condition is Condition.STATUS else None
        return not (isinstance(told, int | float) and 300 <= told < 400)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look brought. ``code``: HTTP status or exit status."""

    text: str = ""
    code: int | None = None
    there: bool = True  # the file is
    cut: bool = False  # there is more than was read
    size: int = 0  # bytes, of all there is
    noise: str = ""  # the end of what a command wrote as errors


@dataclass(frozen=True, slots=True)
class Unseen:
    """The look failed; ``why`` in half a sentence. ``barred``: it may never be made."""

    why: str
    barred: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a watch between two looks."""

    digest: str = ""  # of what was seen last; "" nothing yet
    text: str = ""  # the same, as far as it is kept
    held: bool = False  # the condition was true
    failures: int = 0  # looks that failed, in a row
    told: bool = False  # that they fail was told


class News(StrEnum):
    """What a thread is told beside what was found."""

    TROUBLE = "looks fail"
    WELL = "looks work again"
    BARRED = "it may not be looked at"


@dataclass(frozen=True, slots=True)
class Judged:
    known: Known
    found: bool = False
    perhaps: bool = False  # it is true, and nobody knows whether that was found before
    news: News | None = None
    failed: int = 0  # looks in a row before this one worked again
    seen: Seen = Seen()  # what the evidence is about: of json, the value


def judge(what: What, known: Known, saw: Seen | Unseen, *, anew: bool = False) -> Judged:
    """What a look means. ``anew``: what was found before is unknown, so this is only remembered."""
    if isinstance(saw, Seen):
        saw = _fit(what, saw)
    if isinstance(saw, Unseen):
        return _failed(known, saw)
    digest, kept = (
        (_digest(saw), _kept(what, saw)) if what.condition is Condition.CHANGED else ("", "")
    )
    news = News.WELL if known.told else None
    held = _changed(known, digest) if what.condition is Condition.CHANGED else holds(what, saw)
    new = held and not known.held
    after = Known(digest, kept, held and what.condition is not Condition.CHANGED)
    return Judged(after, new and not anew, new and anew, news, known.failures, saw)


def _failed(known: Known, saw: Unseen) -> Judged:
    after = replace(known, failures=known.failures + 1)
    if saw.barred:
        return Judged(known, news=News.BARRED)
    if after.failures >= PATIENCE and not known.told:
        return Judged(replace(after, told=True), news=News.TROUBLE)
    return Judged(after)


def next_look(plan: Plan, now: int, failures: int) -> int | None:
    """When to look again. After some failures in a row the pauses grow."""
    at = following(plan, now)
    if at is None or failures < PATIENCE:
        return at
    usual: int = (following(plan, at) or at) - at
    pause: int = min(usual << min(failures - PATIENCE + 1, 30), max(usual, LONGEST_PAUSE))
    return max(at, now + pause)


# Whether it is true -----------------------------------------------------------------------


def holds(what: What, saw: Seen) -> bool:
    """Whether the condition is true of what was seen; of one that compares with nothing before."""
    match what.condition:
        case Condition.CONTAINS:
            return what.text in saw.text
        case Condition.EXISTS:
            return saw.there
        case Condition.STATUS | Condition.EXIT:
            assert isinstance(what.value, int | float), "the grammar reads numbers there"
            return saw.code is not None and _ordered(what.op, saw.code, what.value)
        case Condition.JSON:
            return _compared(what, json.loads(saw.text))
        case Condition.CHANGED:
            raise AssertionError("a change is judged by what was seen before")


_ORDER: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {
        "==": lambda one, other: one == other,
        "!=": lambda one, other: one != other,
        "<": lambda one, other: one < other,
        "<=": lambda one, other: one <= other,
        ">": lambda one, other: one > other,
        ">=": lambda one, other: one >= other,
    }
)


def _ordered(op: str, one: float, other: float) -> bool:
    return _ORDER[op](one, other)


def _compared(what: What, value: object) -> bool:
    """A value of JSON beside the one that was named, which is text where it is nothing else."""
    named = what.value
    if what.op == "contains":
        wanted = str(named)
        if isinstance(value, list):
            return wanted in map(str, value)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return wanted in text
    same = _same(value, named, what.exact)
    if what.op in ("==", "!="):
        return same is (what.op == "==")
    numbers = _number(value), _number(named)
    if numbers[0] is None or numbers[1] is None:
        return False
    return _ordered(what.op, numbers[0], numbers[1])


def _same(value: object, named: Value, exact: bool) -> bool:
    if exact or isinstance(named, str):
        return value == named if isinstance(value, str) else False
    if isinstance(named, bool) or named is None or isinstance(value, bool):
        return value is named
    return _number(value) == named


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


# What a look is good for ------------------------------------------------------------------


def _fit(what: What, saw: Seen) -> Seen | Unseen:
    """What was seen as the condition needs it, or why it says nothing about it."""
    match what.look:
        case Look.URL if what.condition is not Condition.STATUS:
            if saw.code is None or not 200 <= saw.code < 300:
                return Unseen(f"the server answered with status {saw.code}")
        case Look.RUN:
            if (why := _exit_fault(what, saw)) is not None:
                return why
        case _:
            pass
    return value_at(what, saw) if what.path or what.condition is Condition.JSON else saw


def _exit_fault(what: What, saw: Seen) -> Unseen | None:
    """Whether the command itself went wrong, rather than saying yes or no."""
    last = clean(" ".join(saw.noise.split()[-30:])[-200:])
    said = f": {last}" if last else ""
    if saw.code in SHELL_REFUSES:
        return Unseen(f"the command cannot be run (exit status {saw.code}){said}")
    if what.condition is Condition.EXIT or saw.code in QUIET_EXITS:
        return None
    if what.condition is Condition.CONTAINS and what.text in saw.text:
        return None
    return Unseen(f"the command ended with exit status {saw.code}{said}")


def value_at(what: What, saw: Seen) -> Seen | Unseen:
    """The value that the way leads to, as JSON text."""
    if saw.cut:
        return Unseen("the answer is too long to be read as JSON")
    try:
        value = json.loads(saw.text)
    except (ValueError, RecursionError):
        return Unseen("the answer is not JSON")
    for step in what.path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return Unseen(f"there is no {shown_path(what.path)} in the answer")
    try:
        return replace(saw, text=clean(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return Unseen("the answer is not JSON")


def shown_path(path: tuple[Step, ...]) -> str:
    """The way as it is written: ``.jobs[0].state``."""
    said = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return said if said.startswith(".") else f".{said}"


# What is remembered -----------------------------------------------------------------------


def _changed(known: Known, digest: str) -> bool:
    return bool(known.digest) and known.digest != digest


def _digest(saw: Seen) -> str:
    """Of everything that a change may be in. How much there is counts where not all was read."""
    size = saw.size if saw.cut else 0
    mark = f"{saw.there}\0{size}\0".encode()
    return hashlib.sha256(mark + saw.text.encode(errors="replace")).hexdigest()


def _kept(what: What, saw: Seen) -> str:
    """Enough to tell the next change by; of a file its end, where new things mostly are."""
    return clean(saw.text[-KEPT:] if what.look is Look.FILE else saw.text[:KEPT])


# Evidence ---------------------------------------------------------------------------------

LINES_MOST = 40  # of evidence
LINE_MOST = 300  # characters of each
COMPARED = 200  # lines of either side that are compared one by one
JOINT = 200  # characters by which a grown text is recognised
_BREAKS = re.compile(r"\r\n|[\r\n]")


def evidence(what: What, before: Known, saw: Seen) -> list[str]:
    """What was found, as lines that are bounded in number and length. Data, never instructions."""
    match what.condition:
        case Condition.CHANGED:
            lines = _change(before.text, _kept(what, saw))
        case Condition.CONTAINS:
            lines = _around(saw.text, what.text)
        case Condition.JSON:
            lines = [f"{shown_path(what.path)} is {saw.text}"]
        case Condition.EXISTS:
            lines = [f"the file is there, {saw.size} bytes"]
        case Condition.STATUS:
            lines = _BREAKS.split(saw.text[:2000].strip())[:10]
        case _:  # exit
            lines = _BREAKS.split(f"{saw.text[-6000:]}\n{saw.noise[-2000:]}".strip())[-LINES_MOST:]
    return _bounded([line for line in lines if line.strip()])


def _bounded(lines: list[str]) -> list[str]:
    short = [_printable(line) for line in lines[:LINES_MOST]]
    if len(lines) > LINES_MOST:
        short.append(f"… and {len(lines) - LINES_MOST} more lines")
    return short


def _printable(line: str) -> str:
    clean = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line[: LINE_MOST + 1])
    return clean if len(line) <= LINE_MOST else f"{clean[:LINE_MOST]}…"


def _around(text: str, wanted: str) -> list[str]:
    """The line in which it stands, and the one before and after it."""
    at = text.find(wanted)
    start, end = max(0, at - 2000), at + len(wanted) + 2000
    lines = _BREAKS.split(text[start:end])
    place = len(_BREAKS.split(text[start:at])) - 1
    found = lines[max(0, place - 1) : place + 2 + len(_BREAKS.findall(wanted))]
    return [_centred(line, wanted) for line in found]


def _centred(line: str, wanted: str) -> str:
    """Of a line that is too long, the part with what was looked for."""
    at = line.find(wanted)
    if len(line) <= LINE_MOST or at < LINE_MOST // 2:
        return line
    return f"…{line[at - LINE_MOST // 3 :]}"


def _change(before: str, now: str) -> list[str]:
    """Lines that went, with a minus, and lines that came, with a plus."""
    joint = before[-JOINT:]
    if joint.strip() and (at := now.rfind(joint)) >= 0:  # something was only added
        added = _BREAKS.split(now[at + len(joint) :])
        if before.endswith(now[: at + len(joint)]):
            return [f"+ {line}" for line in added if line]
    old, new = _BREAKS.split(before), _BREAKS.split(now)
    head = _common(old, new)
    old, new = old[head:], new[head:]
    tail = _common(old[::-1], new[::-1])
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    if len(old) == len(new) == 1:
        return _in_line(old[0], new[0])
    return _differences(old, new) or ["what changed lies behind what is kept for comparing"]


def _common(one: list[str], other: list[str]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _in_line(old: str, new: str) -> list[str]:
    """Of one long line that changed, the part that did."""
    head = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    start = max(0, head - LINE_MOST // 3)
    lead = "…" if start else ""
    return [f"- {lead}{old[start:]}", f"+ {lead}{new[start:]}"]


def _differences(old: list[str], new: list[str]) -> list[str]:
    from difflib import SequenceMatcher  # only where something changed

    found: list[str] = []
    matcher = SequenceMatcher(None, old[:COMPARED], new[:COMPARED], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            found += [f"- {line}" for line in old[a:b]]
            found += [f"+ {line}" for line in new[c:d]]
    found += [f"- {line}" for line in old[COMPARED:]]
    found += [f"+ {line}" for line in new[COMPARED:]]
    return found
