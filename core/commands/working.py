"""Commands about what runs and waits, from status to resume."""

from __future__ import annotations

from collections.abc import Iterable

from core import engine_words as words
from core import usage
from core.budget_words import caps
from core.commands.base import Act, Answer, Ask, Shown, Situation
from core.lane_events import DropAsked, PauseAsked, ResumeAsked, SkipAsked, StopAsked
from core.showing import Action, Choice
from core.store import rows
from core.store.records import ALL_LANES, ENGINE_SCOPE
from core.turns import EnginePause
from core.wording import count, duration, plain, quoted


def status(ask: Ask) -> Answer:
    here = ask.here
    lines = [f"**{plain(here.lane.title) or plain(here.lane.id)}**", _state(here)]
    if here.waiting:
        lines.append(f"Waiting: {count(len(here.waiting), 'message')} (see /queue)")
    if here.sides:
        lines.append(f"Side answers: {len(here.sides)}")
    values = here.values
    if (held := here.paused_engines.get(values.engine)) is not None:
        lines.append(_sentence(words.pause(values.engine, held, here.now, ask.clock_zone)))
    if here.acting not in ("", values.engine):
        lines.append(f"{plain(here.acting)} takes the turns of {plain(values.engine)} just now")
    lines.append(
        f"Engine: {plain(values.engine)}, model {plain(values.model) or 'default'}, "
        f"effort {plain(values.effort) or 'default'}"
    )
    lines.append(f"Approvals: {plain(values.approvals)}; when busy: {plain(values.busy)}")
    lines.append(f"Session: {plain(here.session) or 'none yet'}")
    if ask.person.admin:
        lines.append(f"Workspace: {plain(values.workspace) or 'a folder of its own'}")
    lines += caps(here.budgets, here.now, values.clock_zone, admin=ask.person.admin)
    spent = "nothing yet" if not here.spent.turns else usage.told(here.spent)
    lines.append(f"Spent here: {spent}")
    return Answer("\n".join(f"- {line}" if number else line for number, line in enumerate(lines)))


def _state(here: Situation) -> str:
    if here.main is None:
        state = "waiting to start" if here.waiting else "idle"
        state = "paused" if _held(here) else state
        return f"State: {state}"
    verb = {"asking": "waiting for a decision about"}.get(here.state, here.state)
    since = duration(here.now - here.main.since)
    state = f"State: {verb} {quoted(here.main.label)} of {plain(here.main.name)}, for {since}"
    return state + (" (paused after it)" if _held(here) else "")


def _held(here: Situation) -> bool:
    """Whether nothing new starts here."""
    return here.lane.paused or here.paused_all or here.values.engine in here.paused_engines


def _sentence(half: str) -> str:
    return half[:1].upper() + half[1:]


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
    if not ask.here.answer:
        return Answer("There is no answer in this thread yet.")
    return Answer(ask.here.answer, shared=True)


def pause(ask: Ask) -> Answer:
    here, typed = ask.here, ask.args.lower()
    if not typed:
        return Answer(
            "Paused: nothing new starts in this thread, and messages are kept. "
            "/resume lets them run." + _others(ask),
            event=PauseAsked(lane=here.lane.id, facts=here.facts),
            act=Act("thread.paused", here.lane.id),
        )
    if typed == "all":
        return Answer(
            "Paused: nothing new starts anywhere, and messages are kept. "
            "/resume all lets them run." + _others(ask),
            rows=(rows.pause(ALL_LANES, words.BY_ADMIN, here.now),),
            event=PauseAsked(),
            act=Act("all.paused"),
        )
    if typed in here.engines:
        why = EnginePause(words.BY_ADMIN)
        return Answer(
            f"Paused: nothing new starts with {plain(typed)}, and messages are kept. "
            f"/resume {plain(typed)} lets them run.",
            rows=(rows.pause(f"{ENGINE_SCOPE}{typed}", why.reason, here.now),),
            event=PauseAsked(engine=typed, why=why),
            act=Act("engine.paused", typed),
        )
    return Answer(
        "Write /pause for this thread, /pause all for every thread, or /pause and the name of an "
        f"engine ({', '.join(map(plain, here.engines))})."
    )


def resume(ask: Ask) -> Answer:
    here, typed = ask.here, ask.args.lower()
    if not typed:
        still = " All threads are still paused: /resume all." if here.paused_all else ""
        return Answer(
            f"This thread goes on.{still}{_others(ask)}",
            event=ResumeAsked(lane=here.lane.id, facts=here.facts),
            act=Act("thread.resumed", here.lane.id),
            choices=_resumable(here, (here.values.engine,)),
        )
    if typed == "all":
        return Answer(
            "All threads go on, except those that are paused by themselves." + _others(ask),
            rows=(rows.resume(ALL_LANES),),
            event=ResumeAsked(),
            act=Act("all.resumed"),
            choices=_resumable(here, here.paused_engines),
        )
    if typed in here.paused_engines:
        return Answer(
            f"{plain(typed)} goes on, and what waited for it runs now.",
            rows=(rows.resume(f"{ENGINE_SCOPE}{typed}"),),
            event=ResumeAsked(engine=typed),
            act=Act("engine.resumed", typed),
        )
    if typed in here.engines:
        return Answer(f"{plain(typed)} is not paused.")
    return Answer(
        "Write /resume for this thread, /resume all for every thread, or /resume and the name of "
        "an engine that is paused."
    )


def _others(ask: Ask) -> str:
    """Engines that are paused by themselves, with how each goes on."""
    lines = [
        f"- {_sentence(words.pause(name, why, ask.here.now, ask.clock_zone))}"
        for name, why in sorted(ask.here.paused_engines.items())
    ]
    return "\n\nAlso:\n\n" + "\n".join(lines) if lines else ""


def _resumable(here: Situation, names: Iterable[str]) -> tuple[Choice, ...]:
    return tuple(
        Choice(f"Resume {name} now", Action.SET, {"name": "resume", "value": name})
        for name in sorted(names)
        if name in here.paused_engines
    )
