"""Commands about what runs and waits, from status to resume."""

from __future__ import annotations

from core import usage
from core.commands.base import Answer, Ask, Shown, Situation
from core.store import rows
from core.store.records import ALL_LANES
from core.turns import DropAsked, PauseAsked, ResumeAsked, SkipAsked, StopAsked
from core.wording import count, duration, plain, quoted


def status(ask: Ask) -> Answer:
    here = ask.here
    lines = [f"**{plain(here.lane.title) or plain(here.lane.id)}**", _state(here)]
    if here.waiting:
        lines.append(f"Waiting: {count(len(here.waiting), 'message')} (see /queue)")
    if here.sides:
        lines.append(f"Side answers: {len(here.sides)}")
    values = here.values
    lines.append(
        f"Engine: {plain(values.engine)}, model {plain(values.model) or 'default'}, "
        f"effort {plain(values.effort) or 'default'}"
    )
    lines.append(f"Approvals: {plain(values.approvals)}; when busy: {plain(values.busy)}")
    lines.append(f"Session: {plain(here.session) or 'none yet'}")
    if ask.person.admin:
        lines.append(f"Workspace: {plain(values.workspace) or 'a folder of its own'}")
    spent = "nothing yet" if not here.spent.turns else usage.told(here.spent)
    lines.append(f"Spent here: {spent}")
    return Answer("\n".join(f"- {line}" if number else line for number, line in enumerate(lines)))


def _state(here: Situation) -> str:
    if here.main is None:
        state = "waiting to start" if here.waiting else "idle"
        state = "paused" if here.lane.paused or here.paused_all else state
        return f"State: {state}"
    verb = {"asking": "waiting for a decision about"}.get(here.state, here.state)
    since = duration(here.now - here.main.since)
    state = f"State: {verb} {quoted(here.main.label)} of {plain(here.main.name)}, for {since}"
    return state + (" (paused after it)" if here.lane.paused or here.paused_all else "")


def stop(ask: Ask) -> Answer:
    person = ask.person
    return Answer(event=StopAsked(ask.here.lane.id, person.id, person.admin, first=ask.here.first))


def skip(ask: Ask) -> Answer:
    first = ask.here.first
    turn = first.id if first else None
    return Answer(event=SkipAsked(ask.here.lane.id, ask.person.id, turn=turn))


def queue(ask: Ask) -> Answer:
    waiting = ask.here.waiting
    if not waiting:
        return Answer("Nothing waits here.")
    lines = [
        f"{number}. {quoted(turn.label)} of {plain(turn.name)}, "
        f"for {duration(ask.here.now - turn.since)}"
        for number, turn in enumerate(waiting, 1)
    ]
    return Answer(
        "Waiting here:\n\n" + "\n".join(lines) + "\n\nTake one out with /drop and its number."
    )


def drop(ask: Ask) -> Answer:
    waiting = ask.here.waiting
    if not waiting:
        return Answer("Nothing waits here, so there is nothing to drop.")
    turn = _numbered(waiting, ask.args)
    if turn is None:
        return Answer(
            f"Say which one: /drop and a number from 1 to {len(waiting)}. /queue shows them."
        )
    if turn.person != ask.person.id and not ask.person.admin:
        return Answer("That message is somebody else's; only its sender or an admin can drop it.")
    return Answer(event=DropAsked(turn.id, ask.here.lane.id, ask.person.id, ask.person.admin))


def _numbered(waiting: tuple[Shown, ...], typed: str) -> Shown | None:
    if not (typed.isascii() and typed.isdigit()) or len(typed) > 6:
        return None
    number = int(typed)
    return waiting[number - 1] if 1 <= number <= len(waiting) else None


def btw(ask: Ask) -> Answer:
    if not ask.args:
        return Answer("Write the question behind it: /btw what are you doing?")
    return Answer(side=ask.args)


def again(ask: Ask) -> Answer:
    return Answer(ask.here.answer or "There is no answer in this thread yet.")


def pause(ask: Ask) -> Answer:
    here = ask.here
    match ask.args.lower():
        case "":
            return Answer(
                "Paused: nothing new starts in this thread, and messages are kept. "
                "/resume lets them run.",
                event=PauseAsked(lane=here.lane.id, facts=here.facts),
            )
        case "all":
            return Answer(
                "Paused: nothing new starts anywhere, and messages are kept. "
                "/resume all lets them run.",
                rows=(rows.pause(ALL_LANES, "by an admin", here.now),),
                event=PauseAsked(),
            )
    return Answer("Write /pause for this thread, or /pause all for every thread.")


def resume(ask: Ask) -> Answer:
    here = ask.here
    match ask.args.lower():
        case "":
            still = " All threads are still paused: /resume all." if here.paused_all else ""
            return Answer(
                f"This thread goes on.{still}",
                event=ResumeAsked(lane=here.lane.id, facts=here.facts),
            )
        case "all":
            return Answer(
                "All threads go on, except those that are paused by themselves.",
                rows=(rows.resume(ALL_LANES),),
                event=ResumeAsked(),
            )
    return Answer("Write /resume for this thread, or /resume all for every thread.")
