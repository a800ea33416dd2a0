"""What a person writes to make a watch: WHAT, how often, until when, a colon, and what to do then.

Pure. Every refusal says what would work; nothing is stored then. It must not know the store, nor
how a watch looks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from core.addresses import is_public
from core.job_asking import (
    BadJob,
    JobLimits,
    Options,
    is_span,
    planned,
    quotations,
    read_options,
    shortest,
    split,
)
from core.job_rules import Job, JobKind
from core.messages import clean
from core.watch_rules import FOR_EVER, Condition, Look, Step, Value, What
from core.when import BadWhen, Plan, following, span
from core.wording import duration

COMMAND_MOST, TEXT_MOST, PATH_MOST = 2000, 500, 1024  # characters
EXAMPLES = {
    Look.URL: 'url https://example.org/ contains "sold out"',
    Look.RUN: 'run "make test" exit 0',
    Look.FILE: "file report.csv changed",
}
EXAMPLE = "/watch url https://example.org/ changed every 5m : tell me what is new"
_CONDITIONS = {
    Look.URL: 'changed, status != 200, contains "TEXT", or json .path == VALUE',
    Look.RUN: 'exit 0, exit != 0, changed, or contains "TEXT"',
    Look.FILE: 'changed, exists, or contains "TEXT"',
}
_TESTS = {
    Look.URL: frozenset({Condition.CHANGED, Condition.STATUS, Condition.CONTAINS, Condition.JSON}),
    Look.RUN: frozenset({Condition.CHANGED, Condition.EXIT, Condition.CONTAINS}),
    Look.FILE: frozenset({Condition.CHANGED, Condition.EXISTS, Condition.CONTAINS}),
}
_HELD = re.compile(r'"(\d+)"')  # where something quoted stood
_OP = r"(==|!=|<=|>=|=|<|>)"
_CODE = re.compile(rf"(status|exit)\s*{_OP}?\s*(-?\d{{1,5}})", re.I)
_JSON = re.compile(rf"json\s+(\S+?)\s*(?:{_OP}|\s(contains)\s)\s*(\S.*)", re.I)
_JSON_CHANGED = re.compile(r"json\s+(\S+)\s+changed", re.I)
_STEP = re.compile(r"\.([^.\[\]\s\"]+)|\[(-?\d{1,9})\]|\.?\"(\d+)\"")
_BEGINS = {
    "every": "when",
    "daily": "when",
    "monthly": "when",
    "until": "until",
    "for": "for",
}  # words that begin another part

# what begins a condition; it may stand behind another part as well
_WAITED_FOR = frozenset({"changed", "status", "contains", "json", "exit", "exists"})


@dataclass(frozen=True, slots=True)
class AskedWatch:
    """A watch as it was asked for. ``said``: how often it looks; ``until``: ms."""

    words: str  # the WHAT as it was written
    what: What
    said: str
    plan: Plan
    zone: str
    now: int
    until: int
    prompt: str
    each_time: bool = False
    options: Options = field(default_factory=Options)

    def job(self, ident: int, lane: str, person: str) -> Job:
        """It looks at once: what it finds then is what later looks are compared with."""
        return Job(
            id=ident,
            lane=lane,
            person=person,
            kind=JobKind.WATCH,
            said=self.said,
            zone=self.zone,
            anchor=self.now,
            prompt=self.prompt,
            made_at=self.now,
            catch_up=self.options.catch_up,
            if_busy=self.options.if_busy,
            budget=self.options.budget,
            next_at=self.now,
            settled_at=self.now,
            what=self.words,
            each_time=self.each_time,
            until=self.until,
        )


def typed(text: str, zone: str, now: int, limits: JobLimits) -> AskedWatch:
    """What ``/watch TEXT`` asks for; raises BadWhen."""
    head, prompt = split(text, EXAMPLE)
    return asked(head, prompt, zone, now, limits)


def asked(head: str, prompt: str, zone: str, now: int, limits: JobLimits) -> AskedWatch:
    """The same with the prompt apart. Raises BadWhen."""
    prompt = clean(prompt).strip()
    if not prompt:
        raise BadJob(f"What shall I do then? Write it behind the colon: {EXAMPLE}")
    head, quoted = quotations(clean(head))
    head, options = read_options(head)
    each_time, parts = _parts(head)
    words = _whole(parts.get("what", ""), quoted)
    what = read_what(words)
    if what.look is Look.URL and not limits.watch_private:
        _refuse_private(what.target)
    said, plan = _often(_whole(parts.get("when", ""), quoted), zone, now, limits)
    until = _until(parts, zone, now)
    return AskedWatch(words, what, said, plan, zone, now, until, prompt, each_time, options)


# Parts ------------------------------------------------------------------------------------


def _parts(head: str) -> tuple[bool, dict[str, str]]:
    """Whether ``each time`` is said, and the parts by name, in whatever order they stand."""
    words = head.split()
    parts: dict[str, list[str]] = {}
    current, each_time, skip = "", False, False
    for place, word in enumerate(words):
        low = word.lower().strip(",")
        follower = words[place + 1].lower().strip(",") if place + 1 < len(words) else ""
        if skip:
            skip = False
        elif low == "each" and follower == "time":
            each_time, skip, current = True, True, "each time"
        elif (name := _beginning(low, follower, parts)) is not None:
            if name in parts:
                raise BadJob(f"“{word}” stands there twice. Say it once, like this: {EXAMPLE}")
            current = name
            parts[name] = [word]
        elif low in _WAITED_FOR and len(parts.get("what", ())) == 2:
            current = "what"
            parts[current].append(word)
        elif current in ("", "each time"):
            raise BadJob(
                f"A watch begins with what it looks at (url, run or file), not with “{word}”. Say "
                f"for example: {EXAMPLE}"
            )
        else:
            parts[current].append(word)
    if "what" not in parts:
        raise BadJob(f"What shall I look at? Say url, run or file, like this: {EXAMPLE}")
    return each_time, {name: " ".join(found).strip(" ,") for name, found in parts.items()}


def _beginning(word: str, follower: str, parts: dict[str, list[str]]) -> str | None:
    """Which part a word begins, if it does."""
    if word in set(Look):
        return None if "what" in parts else "what"
    if word == "each":
        return "when"
    return _BEGINS.get(word)


def _whole(text: str, quoted: Sequence[str]) -> str:
    """The text with what is quoted back in its place."""
    return _HELD.sub(lambda found: quoted[int(found[1])], text)


def _often(words: str, zone: str, now: int, limits: JobLimits) -> tuple[str, Plan]:
    if not words:
        raise BadJob(f"How often shall I look? Say it behind what: {EXAMPLE}")
    when = words.partition(" ")[2] if words.lower().startswith("every ") else words
    said, plan = planned("every", when, zone, now)
    least = shortest(plan, now)
    if least is None:
        raise BadJob("A watch looks again and again. Say for example: every 5m.")
    if least < limits.least:
        raise BadJob(
            f"That is every {duration(least)}, and at least {duration(limits.least)} must lie "
            f"between two looks here. Say for example: every {limits.least // 1000}s."
        )
    return said, plan


def _until(parts: dict[str, str], zone: str, now: int) -> int:
    """When it ends, ms."""
    if "until" in parts and "for" in parts:
        raise BadJob("Say until fri 18:00, or for 2d; not both.")
    if "for" in parts:
        said = parts["for"].partition(" ")[2].lower()
        if not re.fullmatch(r"\d+\s*[a-z]+(?:\s*\d+\s*[a-z]+)*", said) or span(said) <= 0:
            raise BadJob("How long shall I look? Say for example: for 2d.")
        return now + span(said)
    if "until" not in parts:
        return now + FOR_EVER
    said = parts["until"].partition(" ")[2]
    if said and is_span(said):
        raise BadJob(f"Until when? Say for {said}, or a time: until fri 18:00.")
    try:
        _, plan = planned("at", said, zone, now)
    except BadWhen as refused:
        raise BadJob(f"Until when? {refused} Here for example: until fri 18:00.") from refused
    at = following(plan, now)
    if not plan.once or at is None:
        raise BadJob("Until when? Say one time: until fri 18:00, or for 2d.")
    return at


# WHAT -------------------------------------------------------------------------------------


def read_what(words: str) -> What:
    """What is looked at and what is waited for. Raises BadJob."""
    held, quoted = quotations(words)
    first, _, rest = held.partition(" ")
    try:
        look = Look(first.lower())
    except ValueError:
        raise BadJob(f"I can look at url, run or file. Say for example: {EXAMPLE}") from None
    target, _, condition = rest.strip().partition(" ")
    if not target:
        raise BadJob(f"What shall I look at? Say for example: {EXAMPLES[look]}")
    what = replace(
        _condition(look, condition.strip(), quoted), target=_target(look, _bare(target, quoted))
    )
    if what.condition not in _TESTS[look]:
        raise BadJob(
            f"“{what.condition.value}” means nothing for {look.value}. Say {_CONDITIONS[look]}."
        )
    return what


def _target(look: Look, target: str) -> str:
    if look is Look.URL:
        return _address(target.strip("<>"))
    most, noun = (COMMAND_MOST, "command") if look is Look.RUN else (PATH_MOST, "path")
    if not target.strip() or len(target) > most:
        raise BadJob(f"A {noun} has 1 to {most} characters. Say for example: {EXAMPLES[look]}")
    if not target.isprintable():
        raise BadJob(f"A {noun} is one line without control characters: {EXAMPLES[look]}")
    return target


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise BadJob(f"An address begins with https:// and names a host: {EXAMPLES[Look.URL]}")
    if parts.username is not None or parts.password is not None:
        raise BadJob("A watch signs in nowhere: leave name and password out of the address.")
    if len(url) > COMMAND_MOST:
        raise BadJob(f"An address has at most {COMMAND_MOST} characters.")
    return url


def _refuse_private(url: str) -> None:
    """What can be told without asking anybody for the name; the rest is told by the look."""
    host = urlsplit(url).hostname or ""
    try:
        private = not is_public(host)
    except ValueError:
        private = host == "localhost" or host.endswith(".localhost")
    if private:
        raise BadJob(
            f"{host} is a private address, which watches reach only where an admin has set "
            "LANEWAY_WATCH_PRIVATE=on."
        )


def _condition(look: Look, said: str, quoted: Sequence[str]) -> What:
    """The condition, without what it is about."""
    word, _, rest = said.partition(" ")
    rest = rest.strip()
    match word.lower():
        case "":
            raise BadJob(f"What shall I wait for? Say {_CONDITIONS[look]}: {EXAMPLES[look]}")
        case "changed" | "exists" if not rest:
            return What(look, "", Condition(word.lower()))
        case "contains":
            return What(look, "", Condition.CONTAINS, text=_text(rest, quoted))
        case "json":
            return _json(look, said, quoted)
    if (found := _CODE.fullmatch(said)) is not None:
        code = int(found[3])
        return What(look, "", Condition(found[1].lower()), op=_op(found[2]), value=code)
    where = "Put the command in quotes. " if look is Look.RUN else ""
    shown = _whole(said, quoted)
    raise BadJob(f"I do not understand “{shown}”. {where}Say {_CONDITIONS[look]}: {EXAMPLES[look]}")


def _text(said: str, quoted: Sequence[str]) -> str:
    text = _bare(said, quoted)
    if " " in said or not text:
        raise BadJob('Put the text in quotes: contains "sold out".')
    if len(text) > TEXT_MOST:
        raise BadJob(f"The text to look for has at most {TEXT_MOST} characters.")
    return text


def _json(look: Look, said: str, quoted: Sequence[str]) -> What:
    if (found := _JSON_CHANGED.fullmatch(said)) is not None:
        return What(look, "", Condition.CHANGED, path=_path(found[1], quoted))
    found = _JSON.fullmatch(said)
    if found is None:
        raise BadJob(
            "Say which value to compare with what: json .jobs[0].state == done, or json .price < 10"
        )
    value, exact = _value(found[4], quoted)
    op = "contains" if found[3] else _op(found[2])
    if op == "contains":
        value, exact = _bare(found[4], quoted), True
    if op not in ("==", "!=", "contains") and (exact or not isinstance(value, int | float)):
        raise BadJob(f"“{op}” compares numbers: json .price {op} 10.")
    return What(
        look, "", Condition.JSON, path=_path(found[1], quoted), op=op, value=value, exact=exact
    )


def _path(said: str, quoted: Sequence[str]) -> tuple[Step, ...]:
    if said == ".":
        return ()
    steps: list[Step] = []
    at = 0
    for found in _STEP.finditer(said):
        if found.start() != at:
            break
        at = found.end()
        if found[2] is not None:
            steps.append(int(found[2]))
        else:
            steps.append(found[1] if found[1] is not None else quoted[int(found[3])][1:-1])
    if at != len(said) or not steps:
        raise BadJob(f"“{_whole(said, quoted)}” is no way to a value. Write it as .jobs[0].state.")
    return tuple(steps)


def _value(said: str, quoted: Sequence[str]) -> tuple[Value, bool]:
    """A value as it is written: a number, true, false or null, else text; quoted always text."""
    if _HELD.fullmatch(said):
        return _bare(said, quoted), True
    if " " in said:
        raise BadJob(f'Put the text in quotes: json .state == "{_whole(said, quoted)}".')
    known: dict[str, Value] = {"true": True, "false": False, "null": None}
    if said.lower() in known:
        return known[said.lower()], False
    if re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", said):
        return float(said), False
    return said, False


def _op(said: str | None) -> str:
    return "==" if said in (None, "=") else str(said)


def _bare(word: str, quoted: Sequence[str]) -> str:
    """What a word says: inside its quotes, where it stands in some."""
    found = _HELD.fullmatch(word)
    return quoted[int(found[1])][1:-1] if found else _whole(word, quoted)
