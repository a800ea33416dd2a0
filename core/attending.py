"""Who attends a turn: who began it, or pressed for it to go on; of a job's run nobody.

What went on by itself after a cut is what it was before. It must not know what follows from that.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.store import reads
from core.store.store import Reader
from core.turns import Origin, Turn


@dataclass(frozen=True, slots=True)
class Begun:
    """How a turn came to be. ``starter``: "" where nobody attends it.

    ``asked``: a person has just asked for it, or pressed. ``job_run``: the run of a job that it is,
    or goes on with by itself.
    """

    starter: str
    asked: bool = False
    job_run: int | None = None


async def begun(store: Reader, turn: Turn) -> Begun:
    """Who began this turn; one that goes on after a cut is followed back to what was cut off."""
    if turn.origin.job:
        return Begun("", job_run=turn.id)
    if turn.origin is not Origin.CONTINUE:
        return Begun(turn.person, asked=True)
    row = await reads.turn(store, turn.id)
    asked, pressed = row is not None and bool(row.pressed_by), ""
    while row is not None and row.origin is Origin.CONTINUE:
        pressed = pressed or row.pressed_by
        row = await reads.turn(store, row.of_turn) if row.of_turn is not None else None
    if row is None:  # nobody knows any more what was cut off
        return Begun(pressed, asked)
    if not row.origin.job:
        return Begun(turn.person, asked)
    return Begun(pressed, asked) if pressed else Begun("", job_run=row.id)
