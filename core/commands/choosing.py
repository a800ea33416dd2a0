"""Commands that set how a lane works: busy, engine, model, effort, approvals, workspace, new…

A change is saved at once and used from the next turn. Without an argument each shows what holds
and offers what else there is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from core import folders
from core.cards import HASH_SHOWN, visible
from core.commands.base import Act, Answer, Ask
from core.engines.base import Approvals
from core.lane_events import Configured, Renewed
from core.messages import Style
from core.showing import Action, Choice
from core.store import rows
from core.store.records import RuleRow
from core.turns import Busy, Kind
from core.wording import label, plain, quoted

DEFAULT = "default"
_BACK = (DEFAULT, "-")  # what sets a value back
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
_OFFERED_EFFORTS = ("low", "medium", "high")
_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@+\[\]-]{0,99}", re.ASCII)
_TITLE_MOST = 120
_LISTED_MOST = 30  # values that are named in a text
_BUTTONS_MOST = 12
NEEDED = {  # what an engine needs before it can be chosen
    "acp": "the command of an agent, in LANEWAY_ACP_COMMAND",
    "claude": "the program claude on the PATH, or its command in LANEWAY_CLAUDE_COMMAND",
    "codex": "the program codex on the PATH, or its command in LANEWAY_CODEX_COMMAND",
    "openai": "the address of a server, in LANEWAY_OPENAI_BASE_URL",
}
REVOKE = "revoke"
_RULES_SHOWN = 12
_TITLES = {
    "busy": "Busy mode",
    "engine": "Engine",
    "effort": "Effort",
    "approvals": "Approvals",
    "listen": "Listening mode",
}
_NOUNS = {"busy": "busy mode", "approvals": "approvals mode", "listen": "listening mode"}
_BUSY = {
    Busy.QUEUE: "waits its turn",
    Busy.SIDE: "is answered on the side at once, without touching what runs",
    Busy.STEER: "is handed to the running turn, if its sender began that turn",
    Busy.INTERRUPT: "ends the running turn and takes its place",
    Busy.COLLECT: "waits, together with the sender's other messages as one",
}


def _offer(name: str, values: Sequence[str], now: str) -> tuple[Choice, ...]:
    return tuple(
        Choice(value, Action.SET, {"name": name, "value": value}, style=_style(value, now))
        for value in values
    )


def _style(value: str, now: str) -> Style:
    return Style.PRIMARY if value == now else Style.PLAIN


def _shown(name: str, value: str, values: Sequence[str]) -> Answer:
    """What holds, and what else there is, as buttons."""
    choices = ", ".join(plain(each) for each in values)
    return Answer(
        f"{_TITLES[name]} of this thread: {plain(value) or DEFAULT}. Choices: {choices}.",
        choices=_offer(name, values, value),
    )


def _unknown(name: str, typed: str, values: Sequence[str]) -> Answer:
    """What was typed is none of them: the nearest first, else all of them."""
    noun = _NOUNS.get(name, name)
    said = f"There is no {noun} called {plain(typed[:40])} here."
    lower = {value.lower(): value for value in values}
    near = [lower[one] for one in get_close_matches(typed.lower(), lower, 3, 0.4)]
    if near:
        return Answer(
            f"{said} Did you mean {' or '.join(map(plain, near))}? /{name} shows all of them.",
            choices=_offer(name, near, ""),
        )
    listed = ", ".join(plain(each) for each in values[:_LISTED_MOST])
    more = f" and {len(values) - _LISTED_MOST} more" if len(values) > _LISTED_MOST else ""
    return Answer(
        f"{said} Choices: {listed}{more}.", choices=_offer(name, values[:_BUTTONS_MOST], "")
    )


def busy(ask: Ask) -> Answer:
    typed = ask.args.lower()
    if not typed:
        return _shown("busy", ask.here.values.busy, tuple(Busy))
    if typed not in tuple(Busy):
        return _unknown("busy", typed, tuple(Busy))
    mode = Busy(typed)
    text = f"From now on, a message that comes while I work here {_BUSY[mode]}."
    able = ask.here.abilities
    if (mode is Busy.SIDE and not able.side) or (mode is Busy.STEER and not able.steer):
        text += f" The agent here ({plain(ask.here.values.engine)}) cannot do that, so it waits."
    return Answer(text, rows=(rows.lane_setting(ask.here.lane.id, "busy", mode.value),))


def engine(ask: Ask) -> Answer:
    here, typed = ask.here, ask.args.lower()
    if not typed:
        return _shown("engine", here.values.engine, here.engines)
    if typed in NEEDED and typed not in here.engines:
        return Answer(
            f"{typed} is not set up here: it needs {NEEDED[typed]}. An admin can do that on the "
            f"settings page. Choices now: {', '.join(map(plain, here.engines))}.",
            choices=_offer("engine", here.engines, here.values.engine),
        )
    if typed not in here.engines:
        return _unknown("engine", typed, here.engines)
    lane = here.lane.id
    written = [rows.lane_setting(lane, "engine", typed)]
    text = f"Engine of this thread: {plain(typed)}, from the next turn."
    if typed != here.values.engine and (here.lane.model or here.lane.effort):
        # Names of models and efforts mean nothing to another engine.
        written += [rows.lane_setting(lane, "model", ""), rows.lane_setting(lane, "effort", "")]
        text += " Model and effort are its defaults again."
    event = Configured(lane, typed, here.facts.folder, here.facts)
    act = Act("engine.chosen", lane, typed)
    return Answer(text, rows=tuple(written), event=event, act=act)


def model(ask: Ask) -> Answer:
    here, typed = ask.here, ask.args
    known, name = here.choices, plain(here.values.engine)
    if not (known.models or known.open or known.like):
        text = f"{name} offers no choice of model here."
        if not here.lane.model or typed.lower() not in _BACK:
            return Answer(text)
    if not typed:
        return _models_shown(ask)
    if typed.lower() in _BACK:
        return _saved(ask, "model", "")
    named = next((one for one in known.models if one.lower() == typed.lower()), None)
    if named is not None:
        return _saved(ask, "model", named)
    if not _MODEL.fullmatch(typed):
        return Answer("That does not look like the name of a model: one word, without blanks.")
    if known.open or any(word in typed.lower() for word in known.like):
        return _saved(ask, "model", typed)
    return _unknown("model", typed, (DEFAULT, *known.models))


def _models_shown(ask: Ask) -> Answer:
    here = ask.here
    now, known = here.values.model or DEFAULT, here.choices
    text = f"Model of this thread: {plain(now)}."
    if not known.models:
        return Answer(
            f"{text} Write its name behind the command as {plain(here.values.engine)} knows it, "
            f"or {DEFAULT}.",
            choices=_offer("model", (DEFAULT,), now),
        )
    shown = (DEFAULT, *(one for one in known.models if one != DEFAULT))
    listed = ", ".join(plain(one) for one in shown[:_LISTED_MOST])
    more = f" and {len(shown) - _LISTED_MOST} more" if len(shown) > _LISTED_MOST else ""
    return Answer(
        f"{text} Choices: {listed}{more}.", choices=_offer("model", shown[:_BUTTONS_MOST], now)
    )


def effort(ask: Ask) -> Answer:
    here, typed = ask.here, ask.args.lower()
    known = tuple(one for one in here.choices.efforts if one != DEFAULT)
    if not known and not here.choices.open:
        text = f"{plain(here.values.engine)} offers no choice of effort here."
        if not here.lane.effort or typed not in _BACK:
            return Answer(text)
    if not typed:
        offered = known or _OFFERED_EFFORTS
        return _shown("effort", here.values.effort or DEFAULT, (DEFAULT, *offered))
    taken = known or EFFORTS
    if typed in _BACK:
        return _saved(ask, "effort", "")
    named = next((one for one in taken if one.lower() == typed), None)
    if named is None:
        return _unknown("effort", typed, (DEFAULT, *taken))
    return _saved(ask, "effort", named)


def approvals(ask: Ask) -> Answer:
    here, typed = ask.here, ask.args.lower()
    if not typed:
        shown = _shown("approvals", here.values.approvals, tuple(Approvals))
        listed, offered = _rules(here.rules, here.works_in)
        return replace(shown, text=shown.text + listed, choices=shown.choices + offered)
    verb, _, number = typed.partition(" ")
    if verb == REVOKE:
        return _revoked(ask, number.strip())
    if typed not in tuple(Approvals):
        return _unknown("approvals", typed, tuple(Approvals))
    act = Act("approvals.set", here.lane.id, typed)
    return replace(_saved(ask, "approvals", typed), act=act)


def _rules(rules: Sequence[RuleRow], works_in: str) -> tuple[str, tuple[Choice, ...]]:
    """What is always allowed here, by number, and a button for each to end it.

    What holds where the thread works now comes first.
    """
    if not rules:
        return "", ()
    rules = sorted(rules, key=lambda rule: (rule.folder != works_in, rule.id))
    lines = [f"- {rule.id}: {_rule(rule)}{_where(rule, works_in)}" for rule in rules[:_RULES_SHOWN]]
    if len(rules) > _RULES_SHOWN:
        lines.append(f"- and {len(rules) - _RULES_SHOWN} more, shown when some of these are gone")
    offered = tuple(
        Choice(
            f"Revoke {rule.id}", Action.SET, {"name": "approvals", "value": f"{REVOKE} {rule.id}"}
        )
        for rule in rules[:_RULES_SHOWN]
    )
    return (
        "\n\nAlways allowed here, without asking:\n\n"
        + "\n".join(lines)
        + f"\n\nEnd one with its button, or with /approvals {REVOKE} and its number."
    ), offered


def _rule(rule: RuleRow) -> str:
    title = f" ({plain(label(visible(rule.tool), 30))})" if rule.tool else ""
    return f"{quoted(label(visible(rule.command)))}{title}"


def _where(rule: RuleRow, works_in: str) -> str:
    """The folder it was given for: only there it holds."""
    held = "" if rule.folder == works_in else " (I ask here, as this thread works elsewhere now)"
    return f", in {plain(visible(rule.folder))}{held}"


def _revoked(ask: Ask, typed: str) -> Answer:
    rules = ask.here.rules
    number = typed.removeprefix("#")
    rule = next((one for one in rules if str(one.id) == number), None)
    if rule is None:
        listed, offered = _rules(rules, ask.here.works_in)
        none = "" if rules else " Nothing is: I ask as the approvals mode says."
        return Answer(
            f"Nothing that is always allowed here has that number.{none}{listed}", choices=offered
        )
    left, offered = _rules([one for one in rules if one is not rule], ask.here.works_in)
    detail = f"rule {rule.id}, command {rule.hash[:HASH_SHOWN]}"
    return Answer(
        f"I ask again before this here: {_rule(rule)}.{left}",
        rows=(rows.revoke_rule(rule.id, ask.here.now),),
        choices=offered,
        act=Act("rule.revoked", ask.here.lane.id, detail),
    )


def _saved(ask: Ask, name: str, value: str) -> Answer:
    return Answer(
        f"{name.capitalize()} of this thread: {plain(value) or DEFAULT}, from the next turn.",
        rows=(rows.lane_setting(ask.here.lane.id, name, value),),
    )


def workspace(ask: Ask) -> Answer:
    here, typed = ask.here, ask.args
    if not typed:
        where = plain(here.values.workspace) or "a folder of its own"
        return Answer(
            f"Workspace of this thread: {where}. Write a folder that exists behind the command, "
            f"or {DEFAULT}.",
            choices=_offer("workspace", (DEFAULT,), "" if here.lane.workspace else DEFAULT),
        )
    lane = here.lane.id
    if typed.lower() == DEFAULT:
        return Answer(
            "This thread works in its default folder again, from the next turn.",
            rows=(rows.lane_setting(lane, "workspace", ""),),
            event=Configured(
                lane, here.values.engine, folders.claim("", here.values.shared), here.facts
            ),
            act=Act("workspace.chosen", lane, DEFAULT),
        )
    if here.folder.path is None:
        return Answer(here.folder.problem or "That folder cannot be used.")
    path = str(here.folder.path)
    return Answer(
        f"Workspace of this thread: {plain(path)}, from the next turn.",
        rows=(rows.lane_setting(lane, "workspace", path),),
        event=Configured(lane, here.values.engine, path, here.facts),
        act=Act("workspace.chosen", lane, path),
    )


def new(ask: Ask) -> Answer:
    text = "A fresh session from the next message on; the agent will not know what was said before."
    if ask.here.main is not None:
        text += " What runs now ends as it is."
    return Answer(text, event=Renewed(ask.here.lane.id, ask.here.facts))


def compact(ask: Ask) -> Answer:
    """A turn of its own kind. What waits or runs comes first: it may need what is remembered."""
    here, name = ask.here, plain(ask.here.values.engine)
    if not here.abilities.compact:
        return Answer(
            f"The agent here ({name}) cannot shorten its conversation. /new begins a fresh one."
        )
    if not here.session:
        return Answer("There is nothing to shorten yet: the next message begins a conversation.")
    ahead = (*((here.main,) if here.main else ()), *here.waiting)
    if any(turn.kind is Kind.COMPACT for turn in ahead):
        return Answer("That is on its way already.")
    if here.main is not None or here.waiting:
        return Answer("I shorten the conversation when its turn comes.", compact=ask.args)
    return Answer("I shorten the conversation; that takes a moment.", compact=ask.args)


def title(ask: Ask) -> Answer:
    name = " ".join(ask.args.split())
    if not name:
        held = ask.here.lane.title
        said = f"This thread is called {plain(held)}. " if held else ""
        return Answer(f"{said}Write its name behind the command: /title Release notes")
    if len(name) > _TITLE_MOST:
        return Answer(f"That is too long for a name: at most {_TITLE_MOST} characters.")
    return Answer(
        f"This thread is called {plain(name)} now.",
        rows=(rows.lane_setting(ask.here.lane.id, "title", name),),
        title=name,
    )


def listen(ask: Ask) -> Answer:
    here, typed = ask.here, ask.args.lower()
    if here.lane.direct:
        return Answer("In direct messages I listen to everything; there is nothing to set.")
    if not here.engages:
        return Answer("Here every message for me needs a mention; only threads can do without.")
    if not typed:
        return _shown("listen", here.lane.listen, ("all", "mention"))
    if typed not in ("all", "mention"):
        return _unknown("listen", typed, ("all", "mention"))
    row = rows.lane_setting(here.lane.id, "listen", typed)
    if typed == "mention":
        return Answer("From now on, messages for me need a mention in this thread.", rows=(row,))
    return Answer(
        "I listen to every message of this thread, until it is silent for seven days.",
        rows=(row, rows.lane_engaged(here.lane.id, here.now)),
    )
