"""A limit of an account, in words for the thread: that it is reached, and until when. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

LONGEST = 40 * 86400  # seconds; a limit that ends later is a misunderstanding


def reached(account: str, at: int | None, now: int, told: str = "") -> str:
    """That an account's limit of use is reached.

    ``at`` is when it ends, in seconds since 1970, where that is known; ``told`` stands for it
    where it is not. ``now`` is in milliseconds.
    """
    what = f"{account} has reached its limit of use"
    now //= 1000
    if at is None or not now < at < now + LONGEST:
        return f"{what}{told}. Nothing of the conversation is lost: say “go on” when it is over."
    left = at - now
    span = f"{left // 3600} h {left % 3600 // 60} min" if left >= 3600 else f"{left // 60 + 1} min"
    return (
        f"{what} until {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC (in {span}). Nothing "
        "of the conversation is lost: say “go on” after that."
    )
