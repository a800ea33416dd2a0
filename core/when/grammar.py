"""Reads a WHEN. Every refusal says what is wrong with it and what would work.

Times without an offset are local times of the zone that is named behind them, or else of the
person's. Words may be in any case; blanks do not count.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from core.when.plan import LAST, Cron, Every, Once, Plan, instant_of, to_datetime, to_instant

EXAMPLES = (
    "every 15m, every day at 09:00, every monday at 18:30, every month on 1 at 08:00, "
    "0 9 * * 1-5, in 20m, tomorrow at 8:00, 2026-12-24 18:00"
)
MOST = 300  # characters
FAR = 100 * 366 * 86_400_000  # ms; nobody means later than that
UNITS = {
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400,
    "w": 604800, "week": 604800, "weeks": 604800,
}  # fmt: skip
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FIELDS = {
    "minute": ("0 to 59", ""),
    "hour": ("0 to 23", ""),
    "day-of-month": ("1 to 31", ""),
    "month": ("1 to 12 or JAN to DEC", "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"),
    "day-of-week": ("0 to 7 or SUN to SAT (0 and 7 are Sunday)", "SUN|MON|TUE|WED|THU|FRI|SAT"),
}
STEPS = {"minute": 60, "hour": 24, "day-of-month": 31, "month": 12, "day-of-week": 7}

_MINUTES = r"[0-9*][0-9*,/-]*"
_TIME = r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)?"
_CLOCK = r"\d{1,2}(?::\d{2}(?:\s*[ap]m)?|\s*[ap]m)"
_SPAN = r"-?\d+\s*[a-z]+(?:\s*\d+\s*[a-z]+)*"
_ZONE = re.compile(r"(?:[a-z_]+/[a-z][a-z0-9_+/-]*|utc|gmt)", re.I)
_NAME = re.compile(r"[a-z][a-z0-9_+-]{2,}", re.I)  # CET, or a city without its continent
_STEP = re.compile(r"/([0-9]+)")
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[t ]\s*(\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s*"
    r"(z|[+-]\d{2}:?\d{2})?)?"
)


class BadWhen(ValueError):
    """A WHEN that means nothing; the message says why, in plain words."""


class NotATime(BadWhen):
    """It does not even look like a time."""


def parse(text: str, zone: tzinfo, now: int) -> Plan:
    """What ``text`` means. ``zone``: whose local times are meant. ``now``: ms; raises BadWhen."""
    words = " ".join(text.split())
    if not words:
        raise BadWhen(f"When? Say for example: {EXAMPLES}.")
    if len(words) > MOST:
        raise BadWhen(f"That is too long to be a time. Say for example: {EXAMPLES}.")
    words, zone = _zone(words, zone)
    said = words.lower()
    for shape, read in _SHAPES:
        if (found := re.fullmatch(shape, said)) is not None:
            return Plan(read(found, zone, now), zone)
    if (hint := _hint(said)) is not None:
        raise NotATime(hint)
    if said.startswith(("every ", "each ", "in ", "tomorrow", "today", "daily")):
        raise NotATime(f"“{words}” is not a time I can read. Say for example: {EXAMPLES}.")
    if re.match(r"\d{4}-\d", said):
        raise BadWhen(f"“{words}” is not a date and time. Write it as 2026-12-24 18:00.")
    return Plan(_cron(words), zone)


def _hint(said: str) -> str | None:
    """What is asked back where only half of a time was said."""
    if re.fullmatch(rf"(?:at\s+)?{_CLOCK}", said):
        clock = said.removeprefix("at ")
        return (
            f"On which day? Say: today at {clock}, tomorrow at {clock}, or: every day at {clock}."
        )
    if re.fullmatch(_SPAN, said) and span(said) > 0:
        return f"Once or again and again? Say: in {said}, or: every {said}."
    if re.fullmatch(rf"daily|today|tomorrow|(?:every|each)\s+(?:day|weekdays?|{_DAY_NAMES})", said):
        return f"At what time of the day? Say for example: {said} at 09:00."
    return None


# Zones ------------------------------------------------------------------------------------


def _zone(words: str, zone: tzinfo) -> tuple[str, tzinfo]:
    """What is left when a zone was named at the end, and the zone that counts."""
    rest, _, last = words.rpartition(" ")
    before = rest.rstrip(" ,")
    if not rest or not (_ZONE.fullmatch(last) or (_NAME.fullmatch(last) and _whole(before, words))):
        return words, zone
    return before, named_zone(last)


def _whole(rest: str, words: str) -> bool:
    """Whether a word alone can be but a zone: what stands before it is a time, with it is none."""
    if any(re.fullmatch(shape, words.lower()) for shape, _ in _SHAPES):
        return False
    fields = rest.split()
    cron = len(fields) == len(FIELDS) and re.fullmatch(_MINUTES, fields[0]) is not None
    return cron or any(re.fullmatch(shape, rest.lower()) for shape, _ in _SHAPES)


def named_zone(name: str) -> ZoneInfo:
    """The zone of this name, in whatever case; raises BadWhen with the nearest ones."""
    known = _zones()
    found = known.get(name.casefold())
    if found is not None:
        return ZoneInfo(found)
    city = f"/{name.casefold()}"
    near = [one for one in known if one.endswith(city) and one.count("/") == 1]
    near = near or difflib.get_close_matches(name.casefold(), known, 3)
    hint = " or ".join(known[one] for one in near) or "one like Europe/Berlin or UTC"
    raise BadWhen(f"There is no time zone {name}. Did you mean {hint}?")


@cache
def _zones() -> dict[str, str]:
    """Proper names by their small letters; collecting them walks through hundreds of files."""
    return {one.casefold(): one for one in available_timezones() - {"Factory", "localtime"}}


# Shapes -----------------------------------------------------------------------------------


def _every(found: re.Match[str], zone: tzinfo, now: int) -> Every:
    period = span(found["span"])
    if period <= 0:
        raise BadWhen("The time between two runs must be longer than zero: every 15m.")
    return Every(period, now)


def _in(found: re.Match[str], zone: tzinfo, now: int) -> Once:
    return _ahead(now + span(found["span"]), zone, now)


def _on_days(found: re.Match[str], zone: tzinfo, now: int) -> Cron:
    hour, minute = _clock(found)
    match found["days"].replace("weekdays", "weekday"):
        case "day":
            days = "*"
        case "weekday":
            days = "1-5"
        case "weekend":
            days = "6,0"
        case names:
            days = ",".join(str(_weekday(name) + 1) for name in re.split(_AND, names))
    return Cron(f"{minute} {hour} * * {days}")


def _daily(found: re.Match[str], zone: tzinfo, now: int) -> Cron:
    hour, minute = _clock(found)
    return Cron(f"{minute} {hour} * * *")


def _monthly(found: re.Match[str], zone: tzinfo, now: int) -> Cron:
    hour, minute = _clock(found)
    day = int(found["day"])
    if not 1 <= day <= 31:
        raise BadWhen(f"No month has a day {day}. Say: every month on 1 at 08:00.")
    return Cron(f"{minute} {hour} {day} * *")


def _near(found: re.Match[str], zone: tzinfo, now: int) -> Once:
    here = to_datetime(now).astimezone(zone).date()
    hour, minute = _clock(found)
    match found["near"]:
        case "today":
            ahead = 0
        case "tomorrow":
            ahead = 1
        case name:
            ahead = (_weekday(name) - here.weekday()) % 7
            today = instant_of(datetime.combine(here, time(hour, minute)), zone)
            ahead += 7 if not ahead and today <= now else 0
    return _ahead(_local(here, ahead, time(hour, minute), zone), zone, now)


def _dated(found: re.Match[str], zone: tzinfo, now: int) -> Once:
    day, clock, offset = found[1], found[2], found[3]
    if clock is None:
        raise BadWhen(f"At what time on {day}? Write for example {day} 18:00.")
    try:
        local = datetime.fromisoformat(f"{day}T{clock.zfill(5) if len(clock) < 6 else clock}")
        at = instant_of(local, zone) if offset is None else to_instant(_shifted(local, offset))
    except (ValueError, OverflowError):
        raise BadWhen(
            f"There is no such date and time as {day} {clock}{offset or ''}. "
            "Write it as 2026-12-24 18:00."
        ) from None
    return _ahead(at, zone, now)


_Read = Callable[[re.Match[str], tzinfo, int], Once | Every | Cron]
_DAY_NAMES = "|".join(rf"{day}s?|{day[:3]}" for day in DAYS)
_AND = r"\s*(?:,\s*and\b|,|and)\s*"
_AT = rf"\s*(?:at\s+|,\s*|\s){_TIME}"
_SHAPES: tuple[tuple[str, _Read], ...] = (
    (rf"(?:every|each)\s+(?P<span>{_SPAN})", _every),
    (r"(?:every|each)\s+(?P<span>hour|minute|week)", _every),
    (
        rf"(?:every|each|on)\s+(?P<days>day|weekdays?|weekend|(?:{_DAY_NAMES})"
        rf"(?:{_AND}(?:{_DAY_NAMES}))*){_AT}",
        _on_days,
    ),
    (rf"daily{_AT}", _daily),
    (
        rf"(?:every month|monthly)\s+on\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_AT}",
        _monthly,
    ),
    (rf"in\s+(?P<span>{_SPAN})", _in),
    (r"in\s+an?\s+(?P<span>minute|hour|day|week)", _in),
    (rf"(?P<near>today|tomorrow|{_DAY_NAMES}){_AT}", _near),
    (_ISO.pattern, _dated),
)


# Pieces -----------------------------------------------------------------------------------


def span(said: str) -> int:
    """Milliseconds of ``15m``, ``1h 30m``, ``24 hours`` or a bare ``hour``; raises BadWhen."""
    if said in UNITS:
        return UNITS[said] * 1000
    total = 0
    for number, unit in re.findall(r"(-?\d+)\s*([a-z]+)", said):
        if unit not in UNITS:
            raise BadWhen(f"“{number}{unit}” is no length of time. Say 90s, 15m, 6h or 2 days.")
        total += int(number[:20]) * UNITS[unit] * 1000
    if total > FAR:
        raise BadWhen("That is more than a hundred years. Say 90s, 15m, 6h or 2 days.")
    return total


def _clock(found: re.Match[str]) -> tuple[int, int]:
    """Hour and minute; the last three groups of every shape with a time of day."""
    hour, minute, half = found.groups()[-3:]
    if minute is None and half is None:
        raise BadWhen(f"Is {hour} an hour? Write it as {hour}:00.")
    hours, minutes = int(hour), int(minute or 0)
    if half and not 1 <= hours <= 12:
        raise BadWhen(f"There is no {hours} {half}. Write the time as 18:30.")
    if half:
        hours = hours % 12 + (12 if half == "pm" else 0)
    if hours > 23 or minutes > 59:
        raise BadWhen(f"There is no time {hour}:{minute}. The day goes from 00:00 to 23:59.")
    return hours, minutes


def _weekday(name: str) -> int:
    return next(place for place, day in enumerate(DAYS) if day[:3] == name[:3])


def _local(day: date, ahead: int, clock: time, zone: tzinfo) -> int:
    return instant_of(datetime.combine(day + timedelta(days=ahead), clock), zone)


def _shifted(local: datetime, offset: str) -> datetime:
    if offset == "z":
        return local.replace(tzinfo=UTC)
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    shift = timedelta(hours=hours, minutes=minutes)
    return local.replace(tzinfo=timezone(-shift if offset[0] == "-" else shift))


def _ahead(at: int, zone: tzinfo, now: int) -> Once:
    """An instant to come; what is over or out of reach is refused."""
    if at > min(now + FAR, LAST):
        raise BadWhen("That is more than a hundred years away.")
    if at <= now:
        there = f"{to_datetime(at).astimezone(zone):%Y-%m-%d %H:%M}"
        here = f"{to_datetime(now).astimezone(zone):%Y-%m-%d %H:%M}"
        raise BadWhen(f"{there} has passed: it is {here} now ({zone}). Say a time to come.")
    return Once(at)


# Cron -------------------------------------------------------------------------------------


def _cron(words: str) -> Cron:
    fields = words.upper().split()
    many = len(fields) > 2 or "*" in words
    counted = len(fields) == len(FIELDS) or (many and not re.search("[A-Z]{4}", words.upper()))
    begun = counted and re.fullmatch(_MINUTES, fields[0])
    if not begun and sum(bool(re.fullmatch(_MINUTES, one)) for one in fields[1:5]) < 3:
        raise NotATime(f"“{words}” is not a time I can read. Say for example: {EXAMPLES}.")
    if len(fields) != len(FIELDS):
        raise BadWhen(
            f"A cron line has five fields (minute, hour, day of month, month, weekday), this one "
            f"has {len(fields)}. Say for example 0 9 * * 1-5 or every weekday at 9:00."
        )
    for said, (name, (range_, names)) in zip(fields, FIELDS.items(), strict=True):
        rest = re.sub(rf"\b(?:{names})\b", "1", said) if names else said
        if not re.fullmatch(r"[0-9*,/-]+", rest):
            raise BadWhen(f"The field {name} of the cron line, “{said}”, must be {range_}.")
        _steps(name, said)
        _spans(name, said)
    # Behind a dash Sunday is the week's last day, as its 7 is.
    fields[4] = re.sub(r"\b(MON|TUE|WED|THU|FRI|SAT|[1-6])-SUN\b", r"\1-7", fields[4])
    line = " ".join(fields)
    try:
        CronSim(line, datetime(2026, 1, 1))
    except CronSimError as error:
        raise BadWhen(_cron_fault(str(error), fields)) from None
    return Cron(line)


def _steps(name: str, said: str) -> None:
    """A step that is longer than its field would be passed over: */90 would mean every hour."""
    if any(int(step[:9]) > STEPS[name] for step in _STEP.findall(said)):
        raise BadWhen(
            f"The field {name} of the cron line, “{said}”, has a step beyond its {STEPS[name]} "
            "values. Say for example every 90m."
        )
    if any(not int(step[:9]) for step in _STEP.findall(said)):
        raise BadWhen(f"The field {name} of the cron line, “{said}”, has a step of nothing.")


def _spans(name: str, said: str) -> None:
    """One that runs backwards would be told as a number that is too large."""
    for first, last in re.findall(r"([0-9]+)-([0-9]+)", said):
        if int(first[:9]) > int(last[:9]):
            raise BadWhen(
                f"The field {name} of the cron line, “{said}”, runs backwards. "
                f"Say two spans with a comma, or {last}-{first}."
            )


def _cron_fault(error: str, fields: list[str]) -> str:
    for said, (name, (range_, _)) in zip(fields, FIELDS.items(), strict=True):
        if error == f"Bad {name}":
            days = [int(day) for day in re.findall(r"[0-9]+", said)]
            if name == "day-of-month" and days and min(days) >= 1 and max(days) <= 31:
                return (
                    f"The cron line never comes true: no such month ({fields[3]}) has the "
                    f"day-of-month {said}."
                )
            return f"The field {name} of the cron line, “{said}”, must be {range_}."
    return f"The cron line cannot be read: {error}."
