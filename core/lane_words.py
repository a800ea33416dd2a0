"""What the lane rules decided, in words: refusals, stops, drops and ends, as Markdown. Pure.

Each case says what became of the message and, where there is one, the next step. It must not know
who is told, nor where.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.lane_commands import News, Refusal, Refuse, Tell
from core.turns import Status, StopKind, Turn
from core.wording import Names, count, failed, label, listing, plain, quoted

WHY_MOST = 300  # characters of an engine's reason

# Refusals ---------------------------------------------------------------------------------


def refusal(reason: Refusal, what: str = "", limit: int | None = None) -> str:
    """Why something was not done, and what to do instead."""
    it = quoted(what) if what else "your message"
    match reason:
        case Refusal.QUEUE_FULL:
            full = f" ({count(limit, 'message')})" if limit is not None else ""
            return (
                f"Not accepted: the queue here is full{full}, so {it} will not run. "
                "Send it again when some have run, or make room with /drop."
            )
        case Refusal.NO_SIDE:
            return (
                "The agent of this thread cannot answer on the side, so I did not ask it. "
                "Press *queue it*, or send it without /btw, and it waits its turn."
            )
        case Refusal.SIDE_BUSY:
            return (
                "A side answer is already being written. "
                "Ask again when it is there, or press *queue it* and it waits its turn."
            )
        case Refusal.NO_STEER:
            return "The running turn cannot take a message now. It stays in the queue."
        case Refusal.NOT_YOURS:
            return "Only the person who asked, or an admin, can do this."
        case Refusal.NOTHING_RUNS:
            return "Nothing runs here."
        case Refusal.NOT_WAITING:
            return "That message does not wait any more."
        case Refusal.OVER:
            return "That turn is over already; what runs now goes on."
        case Refusal.STOPPING:
            return f"{quoted(what) if what else 'That'} is being stopped already."
        case Refusal.PAUSED:
            return (
                f"Paused here, so {it} was not started. Ask again when an admin has let it go on, "
                "or press *queue it* and it runs then."
            )
        case Refusal.SPENT:
            return (
                f"What may be spent today is spent, so {it} was not started. Ask again tomorrow, "
                "or press *queue it* and it runs then."
            )
        case Refusal.DRAINING:
            return (
                f"I am shutting down, so {it} was not started. Send it again in a minute, "
                "or press *queue it* and it runs after that."
            )


def refuse(command: Refuse, limit: int | None = None) -> str:
    """The answer to a message that was not accepted."""
    return refusal(command.reason, command.turn.label, limit)


# News -------------------------------------------------------------------------------------


def tell(command: Tell, names: Names) -> str:
    """The notice for the thread."""
    turn = command.turn
    what = quoted(turn.label) if turn else "the turn"
    match command.news:
        case News.STOPPED:
            return _stopped(command, names)
        case News.NOTHING:
            return _nothing(command.reason, turn)
        case News.DROPPED:
            gone = command.dropped or ((turn,) if turn else ())
            return _dropped(gone, command.by, names) or "Nothing was dropped."
        case News.ENDED:
            return _ended(turn) if turn else "The turn ended early."
        case News.INTERRUPTED:
            return (
                f"A restart cut off the work on {what}. What was done stays done; "
                "nothing runs again by itself. Press *continue* to go on from there."
            )
        case News.GIVEN_UP:
            why = f" {plain(label(command.why, WHY_MOST))}" if command.why else ""
            why = why if not why or why[-1] in ".!?…" else f"{why}."
            return (
                f"The agent could not be reached for {what}, also when I tried again.{why} "
                "Press *run again*, or send it once more."
            )
        case News.STEERED:
            return f"Handed {what} to the running turn."
        case News.STEER_UNCERTAIN:
            return (
                f"I handed {what} to the running turn but cannot tell whether it was read. "
                "Press *send again* if the answer does not cover it."
            )
        case News.SIDE_CUT_OFF:
            return f"A restart cut off the side answer to {what}. Press *ask again* to repeat it."
        case News.DENIED:
            return _denied(command.reason or Refusal.NOT_YOURS, turn)


def _nothing(reason: Refusal | None, turn: Turn | None) -> str:
    match reason:
        case Refusal.STOPPING:
            return refusal(reason, turn.label if turn else "")
        case Refusal.NOTHING_RUNS:
            return "Nothing to skip: nothing runs here."
        case Refusal.NOT_YOURS:
            return "Nothing to stop: nothing runs here, and what waits is not yours."
        case _:
            return "Nothing to stop: nothing runs or waits here."


def _denied(reason: Refusal, turn: Turn | None) -> str:
    """Why nothing was done about a message; one that waits is not lost by it."""
    it = quoted(turn.label) if turn and turn.label else "that message"
    if turn is None or turn.status is not Status.WAITING:
        return refusal(reason, turn.label if turn else "")
    match reason:
        case Refusal.NO_SIDE:
            return f"On the side {it} cannot be answered here; it keeps its place in the queue."
        case Refusal.SIDE_BUSY:
            return f"A side answer is already being written; {it} keeps its place in the queue."
        case Refusal.PAUSED:
            return (
                f"Paused here; {it} keeps its place in the queue and runs when an admin "
                "lets it go on."
            )
        case Refusal.SPENT:
            return f"What may be spent today is spent; {it} keeps its place and runs tomorrow."
        case Refusal.DRAINING:
            return f"I am restarting; {it} keeps its place and runs after that."
        case _:
            return refusal(reason, turn.label)


def _whose(turn: Turn, by: str, names: Names) -> str:
    if turn.origin.job:
        return f"{quoted(turn.label)} (a {turn.origin.value})"
    if turn.person and turn.person != by:
        return f"{quoted(turn.label)} of {plain(names(turn.person))}"
    return quoted(turn.label)


def _stopped(command: Tell, names: Names) -> str:
    turn, by = command.turn, command.by
    who = plain(names(by)) if by else "The gateway"
    gone = _dropped(command.dropped, by, names)
    if turn is None:
        return f"{who} cleared the queue. {gone}" if gone else f"{who} stopped this thread."
    kind = turn.stop.kind if turn.stop else StopKind.STOP
    verb = {StopKind.SKIP: "skipped", StopKind.INTERRUPT: "interrupted"}.get(kind, "stopped")
    said = f"{who} {verb} {_whose(turn, by, names)}."
    return f"{said} {gone}" if gone else said


def _dropped(turns: Sequence[Turn], by: str, names: Names) -> str:
    """What left the queue; whose it was, where it was not the own of who dropped it."""
    if not turns:
        return ""
    if len(turns) == 1:
        return f"Dropped {_whose(turns[0], by, names)}."
    gone = listing([_whose(turn, by, names) for turn in turns])
    return f"Dropped {count(len(turns), 'message')}:\n{gone}"


def _ended(turn: Turn) -> str:
    what = quoted(turn.label)
    match turn.status, turn.stop.kind if turn.stop else None:
        case Status.FAILED, _:
            return failed(turn.label, "")
        case Status.INTERRUPTED, _:
            return (
                f"{what} was cut off because I am shutting down. "
                "Press *continue* when I am back to go on from there."
            )
        case Status.DROPPED, _:
            return f"{what} was dropped and will not run."
        case _, StopKind.LIMIT:
            return (
                f"{what} took longer than the time limit and was stopped. Send it in smaller parts."
            )
        case _, StopKind.BUDGET:
            return f"{what} reached its spend cap and was stopped."
        case _, StopKind.INTERRUPT:
            return f"{what} was interrupted by a newer message."
        case _:
            return f"{what} was stopped."
