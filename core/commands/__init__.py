"""What a person can say with a slash: one table, which also gives the help and the menus."""

from __future__ import annotations

from collections.abc import Mapping

from core.commands import capping, choosing, knowing, scheduling, working
from core.commands.base import Answer, Ask, Command, Needs, Who
from core.people import Person
from core.wording import plain


def _help(ask: Ask) -> Answer:
    return Answer(knowing.help_text(COMMANDS.values(), ask.person))


_TABLE = (
    Command("help", "what can be said here", Who.ALL, _help),
    Command(
        "status",
        "what runs here, the queue, engine, model and cost",
        Who.ALL,
        working.status,
        needs=frozenset({Needs.SESSION, Needs.SPENT, Needs.PAUSES}),
    ),
    Command("stop", "end the running turn and drop what waits", Who.LANE, working.stop),
    Command("skip", "end the running turn only; the queue goes on", Who.LANE, working.skip),
    Command("queue", "the waiting messages", Who.ALL, working.queue),
    Command("drop", "take a waiting message out", Who.ALL, working.drop, "N"),
    Command("btw", "a side answer, read-only, beside what runs", Who.ALL, working.btw, "TEXT"),
    Command(
        "again",
        "show the last answer once more",
        Who.LANE,
        working.again,
        needs=frozenset({Needs.ANSWER}),
    ),
    Command("new", "a fresh session", Who.LANE, choosing.new),
    Command("busy", "what a message does while I work", Who.LANE, choosing.busy, "MODE"),
    Command(
        "compact",
        "shorten what the agent remembers",
        Who.LANE,
        choosing.compact,
        "[WHAT MATTERS]",
        needs=frozenset({Needs.SESSION}),
    ),
    Command(
        "model",
        "the model of this thread",
        Who.LANE,
        choosing.model,
        "NAME",
        needs=frozenset({Needs.CHOICES}),
    ),
    Command(
        "effort",
        "how hard the agent thinks",
        Who.LANE,
        choosing.effort,
        "LEVEL",
        needs=frozenset({Needs.CHOICES}),
    ),
    Command(
        "budget",
        "what the next turn here may cost",
        Who.LANE,
        capping.budget,
        "1.50 [for 2h]|off",
    ),
    Command("usage", "tokens and cost, here and yours", Who.ALL, knowing.usage, "[7d|all]"),
    Command("every", "a schedule", Who.ALL, scheduling.set_up, "WHEN : PROMPT"),
    Command("at", "something to do once, at a time", Who.ALL, scheduling.set_up, "WHEN : PROMPT"),
    Command("in", "something to do once, in a while", Who.ALL, scheduling.set_up, "20m : PROMPT"),
    Command(
        "watch",
        "look at something again and again, and act when it comes true",
        Who.ALL,
        scheduling.watch,
        "url|run|file … every 5m : PROMPT",
    ),
    Command("jobs", "what is set up in this thread", Who.ALL, scheduling.jobs),
    Command(
        "job",
        "look at a job or change it",
        Who.ALL,
        scheduling.job,
        "ID [pause|resume|run|cancel]",
    ),
    Command("title", "name this thread", Who.LANE, choosing.title, "TEXT"),
    Command(
        "listen", "whether messages here need a mention", Who.LANE, choosing.listen, "all|mention"
    ),
    Command("zone", "your time zone", Who.ALL, knowing.zone, "Europe/Berlin"),
    Command(
        "link", "make this chat part of your account of the page", Who.ALL, knowing.link, "CODE"
    ),
    Command("whoami", "your id and role", Who.ANYONE, knowing.whoami),
    Command("engine", "the engine of this thread", Who.ADMINS, choosing.engine, "NAME"),
    Command(
        "approvals",
        "when I ask before acting, and what is always allowed here",
        Who.ADMINS,
        choosing.approvals,
        "MODE|revoke N",
        needs=frozenset({Needs.RULES}),
    ),
    Command("workspace", "the folder of this thread", Who.ADMINS, choosing.workspace, "DIR"),
    Command(
        "pause",
        "start nothing new here, or anywhere",
        Who.ADMINS,
        working.pause,
        "[all|ENGINE]",
        needs=frozenset({Needs.PAUSES}),
    ),
    Command(
        "resume",
        "let waiting messages run again",
        Who.ADMINS,
        working.resume,
        "[all|ENGINE]",
        needs=frozenset({Needs.PAUSES}),
    ),
)

COMMANDS: Mapping[str, Command] = {command.name: command for command in _TABLE}
JOBS = frozenset({"every", "at", "in", "watch", "jobs", "job"})  # that look at jobs
MONEY = frozenset({"budget", "status"})  # that look at caps on money
_ANYWHERE = frozenset({"help", "start", "whoami", "zone", "usage", "link"})
_HERE_OR_ALL = frozenset({"pause", "resume"})  # with a word behind them they concern all threads
NAMES = frozenset(COMMANDS) | {"start"}


def anywhere(name: str, args: str) -> bool:
    """Whether a command means something where no conversation is."""
    return name in _ANYWHERE or (name in _HERE_OR_ALL and bool(args))


def menu() -> tuple[tuple[str, str], ...]:
    """Name and description of each command, for the platforms that list them."""
    return tuple((command.name, command.line) for command in _TABLE)


def needs(name: str, person: Person) -> frozenset[Needs]:
    """What has to be read before ``answer`` for this command of this person."""
    command = _command(name)
    return command.needs if command.open_to(person) else frozenset()


def answer(ask: Ask) -> Answer:
    """Carry out a known command, if this person may."""
    command = _command(ask.name)
    if not command.open_to(ask.person):
        return Answer(f"Only admins can use /{plain(command.name)}.")
    return command.run(ask)


def _command(name: str) -> Command:
    return COMMANDS["help" if name == "start" else name]


def nearest_chosen(typed: str) -> str:
    """The same in private, plain text, to a command that was chosen from a menu or typed there."""
    return knowing.nearest_chosen_text(typed, COMMANDS)


def nearest(typed: str, sign: str = "/") -> str:
    """The answer to a word that looks like a command and is none."""
    return knowing.nearest_text(typed, COMMANDS, sign)
