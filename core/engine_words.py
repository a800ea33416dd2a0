"""What people are told about engines: limits, stand-ins, conversations that are lost. Pure.

Markdown, like all notices. It must not know any engine by name, nor the store.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from core.turns import EnginePause
from core.wording import count, duration, plain

LIMIT_REACHED = "its limit of use is reached"
IN_A_ROW = "it failed three times in a row"
BY_ADMIN = "an admin paused it"
LOST = (
    "The agent's earlier conversation in this thread is not there any more, so it began a new one "
    "and does not know what was said before. Tell it again what still matters."
)
REFUSED = (
    "The agent refused to go on with its earlier conversation in this thread, so I began a new one "
    "and sent your message there. It does not know what was said before."
)
KEPT = (
    "That failed in the new conversation as well, so the earlier one was not to blame: it is kept, "
    "and your next message goes on with it."
)
SET_ASIDE = (
    "The agent's earlier conversation in this thread was set aside, because the agent did not end "
    "as it should. A new one began; it does not know what was said before."
)


def stands_in(engine: str, other: str, why: str) -> str:
    """For a thread, once: another engine has its turns."""
    return (
        f"{plain(engine)} does not work just now ({plain(why)}), so {plain(other)} takes its turns "
        f"here. It does not know what was said to {plain(engine)}. I look now and then whether "
        f"{plain(engine)} works again, and tell you."
    )


def back_again(engine: str) -> str:
    return (
        f"{plain(engine)} works again and takes the turns here. It goes on with the conversation "
        "it had here, if there was one; it does not know what was said meanwhile."
    )


def moment(at: int, now: int, zone: tzinfo = UTC) -> str:
    """An instant (ms) as people say it, with how long it is until then."""
    when, today = (datetime.fromtimestamp(one / 1000, zone) for one in (at, now))
    day = "" if when.date() == today.date() else f"{when:%Y-%m-%d} "
    named = when.tzname() or "UTC"
    soon = f", in {duration(at - now)}" if at > now else ""
    return f"{day}{when:%H:%M} {named}{soon}"


def pause(engine: str, why: EnginePause, now: int, zone: tzinfo = UTC) -> str:
    """Why an engine is paused and how it goes on; half a sentence."""
    reason = plain(why.reason) or "somebody paused it"
    return f"{plain(engine)} is paused ({reason}); {until(engine, why, now, zone)}"


def until(engine: str, why: EnginePause, now: int, zone: tzinfo = UTC) -> str:
    if why.until is None:
        return f"an admin lets it go on with /resume {plain(engine)}"
    return f"it goes on at {moment(why.until, now, zone)}"


def waiting(
    number: int, engine: str, why: EnginePause, now: int, zone: tzinfo = UTC, *, timeless: bool
) -> str:
    """The waiting notice of a lane whose engine is paused."""
    they = "it runs" if number == 1 else "they run"
    reason = plain(why.reason) or "somebody paused it"
    if why.until is None:
        then = f"{they} when an admin sends /resume {plain(engine)}"
    else:
        then = f"{they} after that, at {moment(why.until, why.until if timeless else now, zone)}"
    return f"Waiting: {count(number, 'message')}; {plain(engine)} is paused ({reason}), {then}."
