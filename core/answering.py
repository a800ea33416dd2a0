"""A command, carried out: reads the lane's situation, asks the plain function, makes the item.

The effect of a command, its answer and its identity are one item. It must not know platforms.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core import commands, linking, usage, wording
from core.addressing import Spoken
from core.arriving import Arriving
from core.budget_words import BudgetsSeen
from core.commands import scheduling
from core.commands.base import (
    Answer,
    Ask,
    JobsSeen,
    LinkSeen,
    Looked,
    Needs,
    Shown,
    Situation,
    Values,
)
from core.commands.knowing import pairing_text
from core.engines.base import Choices
from core.folders import resolved, workspace
from core.ground import Ground
from core.items import Item
from core.lanes import Hold, LaneView
from core.messages import Message, Part
from core.people import PAIRING_LASTS, PAIRINGS_MOST, Person, pairing_code
from core.store import jobs, reads, roster, rows, threads, web
from core.store.records import (
    ALL_LANES,
    ENGINE_SCOPE,
    DeliveryKind,
    LaneRow,
    PairingRow,
    PauseRow,
    RuleRow,
)
from core.store.rows import Row
from core.turns import EnginePause, Kind, Turn
from core.usage import Report, Used
from core.wording import plain

COMPACTION = "/compact"  # what such a turn is called in notices


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of a command: to be taken, and what follows when it was new."""

    item: Item
    answer: Answer
    private: tuple[Part, ...] = ()  # what only the one who asked is shown


@dataclass(frozen=True, slots=True)
class Answering:
    ground: Ground
    arriving: Arriving

    async def command(
        self,
        message: Message,
        lane: LaneRow,
        new: bool,
        person: Person,
        spoken: Spoken,
        first: Turn | None = None,
    ) -> Answered:
        """A command that was typed or chosen. ``first``: what it ended before it was looked at, if
        a stop.
        """
        listed = message.direct or self.ground.people.listed(lane.address)
        engages = message.engages or lane.engaged_at > 0
        answer = await self.answer(
            lane, person, spoken, engages=engages, listed=listed, first=first
        )
        if message.press and (answer.private or (message.no_thread and not answer.choices)):
            item = Item(message.identity, answer.event, rows=answer.rows, budget=answer.budget)
            return Answered(item, answer, self.ground.showing.in_private(lane.id, answer.text))
        written = (*self._lane(lane, new), *self.ground.mark(message, lane))
        if message.direct and lane.person != person.id:  # whose direct chat it is
            person_row = rows.lane_setting(lane.id, "person", person.id)
            written = (*written, person_row, rows.wrote(lane.id, person.id))
        if self.ground.limits(message.address.channel).history and not answer.side:
            written = (*written, threads.spoken(message, lane.id))
        if answer.side:
            said = self.arriving.row(message, lane, answer.side, "")
            return Answered(self.arriving.side(lane, said, message.identity, written), answer)
        if answer.compact is not None:
            return Answered(self._compaction(message, lane, answer, written), answer)
        item = self._item(message.identity, lane, answer, written)
        if message.files:
            text, kind = wording.FILE_NOT_TAKEN, DeliveryKind.COMMAND
            remark = self.ground.showing.text(lane.id, text, kind)
            item = replace(item, deliveries=(*item.deliveries, *remark))
        return Answered(item, answer)

    async def answer(
        self,
        lane: LaneRow,
        person: Person,
        spoken: Spoken,
        *,
        engages: bool = False,
        listed: bool = True,
        first: Turn | None = None,
    ) -> Answer:
        """What a command says and does here and now."""
        if not spoken.known:
            return Answer(commands.nearest(spoken.name, "/" if spoken.slash else "!"))
        looked = Looked()
        if spoken.name == "workspace" and spoken.args:
            looked = await asyncio.to_thread(look_at, spoken.args, self.ground.house.home)
        here = await self.situation(lane, commands.needs(spoken.name, person))
        here = replace(here, engages=engages, listed=listed, folder=looked, first=first)
        if spoken.name == "usage":
            here = replace(here, used=await self._usage(lane, person, spoken.args))
        if spoken.name in commands.JOBS:
            here = replace(here, jobs=await self._jobs(lane, person, spoken))
        if spoken.name in commands.MONEY:
            here = replace(here, budgets=self._budgets(lane, person, here))
        if spoken.name == "link":
            here = replace(here, link=await self._link(lane, person, spoken.args))
        answer = commands.answer(Ask(spoken.name, spoken.args, person, here))
        if spoken.name == "link" and (answer.act or not lane.direct):
            self.ground.linking.used(linking.said(spoken.args)[0])
        return _recorded(answer, person, here)

    def pressed(self, identity: str, lane: LaneRow, answer: Answer, message_id: str) -> Item:
        """The same by a button: the message with the buttons becomes the answer."""
        return self._item(identity, lane, answer, (), target=message_id)

    def _item(
        self,
        identity: str,
        lane: LaneRow,
        answer: Answer,
        written: Sequence[Row],
        target: str = "",
    ) -> Item:
        showing, kind = self.ground.showing, DeliveryKind.COMMAND
        keyboard, meanings = showing.buttons(lane.id, answer.choices)
        deliveries = (
            showing.text(lane.id, answer.text, kind, keyboard=keyboard, target=target)
            if answer.text
            else ()
        )
        return Item(
            identity,
            answer.event,
            rows=(*written, *answer.rows, *meanings),
            deliveries=deliveries,
            budget=answer.budget,
        )

    def _compaction(
        self, message: Message, lane: LaneRow, answer: Answer, written: Sequence[Row]
    ) -> Item:
        """A turn of its own kind; what is said behind the command is what matters in it."""
        said = self.arriving.row(message, lane, answer.compact or "", "")
        said = replace(said, files=(), quote=None)
        turn = replace(self.arriving.turn(lane, [said], kind=Kind.COMPACT), label=COMPACTION)
        item = self._item(message.identity, lane, answer, written)
        event = self.arriving.event(lane, turn)
        return replace(item, event=event, messages=(replace(said, turn=turn.id),))

    def _lane(self, lane: LaneRow, new: bool) -> tuple[Row, ...]:
        if not new:
            return ()
        return (
            rows.new_lane(
                lane.id, lane.address, lane.direct, lane.title, lane.created_at, lane.owner
            ),
        )

    # What a command may look at -----------------------------------------------------------

    async def situation(self, lane: LaneRow, needs: Collection[Needs]) -> Situation:
        """The lane as it is; of what has to be read, only what is needed."""
        ground, store = self.ground, self.ground.store
        engine = ground.engine(lane)
        view = ground.spine.view(lane.id)
        session, answer, spent = "", "", Used()
        pauses: dict[str, PauseRow] = {}
        offered = Choices()
        rules: tuple[RuleRow, ...] = ()
        works_in = ""
        if Needs.SESSION in needs:
            session = await self._session(lane, engine)
        if Needs.ANSWER in needs:
            answer = await reads.last_answer(store, lane.id)
        if Needs.SPENT in needs:
            spent = await usage.of_lane(store, lane.id)
        if Needs.PAUSES in needs:
            pauses = {row.scope: row for row in await reads.pauses(store)}
        if Needs.CHOICES in needs:
            offered = await ground.spine.choices(engine, lane.model)
        if Needs.RULES in needs:
            rules = tuple(row for row in await reads.always_rules(store) if row.lane == lane.id)
            named = workspace(ground.house.home, lane.id, lane.workspace, ground.house.workspace)
            works_in = str(await asyncio.to_thread(resolved, named))
        return Situation(
            now=ground.clock.now(),
            lane=lane,
            values=self._values(lane, engine),
            facts=ground.facts(lane),
            abilities=ground.spine.abilities(engine),
            engines=ground.house.engines,
            main=self._main(view),
            state=view.phase.value if view and view.phase else "idle",
            waiting=self._shown(view.waiting if view else ()),
            sides=self._shown(view.sides if view else ()),
            paused_all=ALL_LANES in pauses or bool(view and Hold.ALL in view.paused),
            paused_engines=_engines(pauses),
            acting=ground.spine.acting(engine),
            session=session,
            answer=answer,
            spent=spent,
            rules=rules,
            works_in=works_in,
            choices=offered,
        )

    async def _usage(self, lane: LaneRow, person: Person, typed: str) -> Report | None:
        within = usage.period(typed, self.ground.clock.now())
        if within is None:
            return None
        return await usage.report(self.ground.store, lane.id, person.id, within)

    def _budgets(self, lane: LaneRow, person: Person, here: Situation) -> BudgetsSeen:
        ground, main = self.ground, here.main
        seen = ground.caps(lane.id, person.id, main.id if main else None)
        engine = here.acting or here.values.engine
        known = ground.prices().knows(engine, lane.model)
        priced = here.abilities.cost is not False or known
        return replace(seen, priced=priced, number=ground.store.ids.budget)

    async def _jobs(self, lane: LaneRow, person: Person, spoken: Spoken) -> JobsSeen:
        store, house = self.ground.store, self.ground.house
        seen = JobsSeen(house.jobs, number=store.ids.job, name=self.ground.people.name)
        match spoken.name:
            case "jobs":
                here = await jobs.of_lane(store, lane.id, self.ground.clock.now())
                return replace(seen, listed=tuple(here))
            case "job":
                number = scheduling.number_of(spoken.args)
                one = await jobs.job(store, number) if number is not None else None
                if one is None:
                    return seen
                past = await jobs.firings(store, one.id, scheduling.FIRINGS_SHOWN)
                return replace(seen, one=one, firings=tuple(past))
        return replace(seen, mine=await jobs.count(store, person.id))

    async def _link(self, lane: LaneRow, person: Person, typed: str) -> LinkSeen:
        """Whose code somebody typed in a direct chat, and whose that chat is now."""
        ground = self.ground
        found = await web.links(ground.store)
        held = next((one.account for one in found if one.identity == person.id), "")
        if not typed or not lane.direct:
            return LinkSeen(held=held)
        looked = ground.linking.look(linking.said(typed)[0], person.id)
        if looked.account and not ground.people.role(looked.account):
            return LinkSeen(problem=linking.EXPIRED, held=held)
        return LinkSeen(looked.account, looked.problem, held)

    async def _session(self, lane: LaneRow, engine: str) -> str:
        """The conversation that the next turn goes on with."""
        held = (await reads.sessions(self.ground.store, lane.id)).get(engine)
        current = held is not None and not held.quarantined and held.epoch == lane.epoch
        return held.session if held and current else ""

    def _values(self, lane: LaneRow, engine: str) -> Values:
        house = self.ground.house
        return Values(
            engine=engine,
            model=lane.model,
            effort=lane.effort,
            approvals=lane.approvals or house.approvals,
            busy=lane.busy or house.busy.value,
            workspace=lane.workspace or house.workspace,
            shared=house.workspace,
            zone=house.zone,
        )

    def _main(self, view: LaneView | None) -> Shown | None:
        if view is None or view.main is None:
            return None
        since = self.ground.spine.since(view.main.id) or view.main.arrived
        return replace(self._shown((view.main,))[0], since=since)

    def _shown(self, turns: Sequence[Turn]) -> tuple[Shown, ...]:
        name = self.ground.people.name
        return tuple(
            Shown(turn.id, turn.label, turn.person, name(turn.person), turn.arrived, turn.kind)
            for turn in turns
        )

    # Somebody unknown ---------------------------------------------------------------------

    async def pairing(self, message: Message, lane: LaneRow, new: bool) -> Item | None:
        """A code for somebody without a role; at most one an hour, and not without bounds."""
        ground, now = self.ground, self.ground.clock.now()
        known = await roster.pairings(ground.store)
        good = [row for row in known if row.expires_at > now]
        recent = any(row.person == message.sender for row in good)
        if recent or len(good) >= PAIRINGS_MOST:
            return None
        code = pairing_code()
        asked = PairingRow(code, message.sender, message.sender_name, now, now + PAIRING_LASTS)
        return Item(
            message.identity,
            rows=(
                *self._lane(lane, new),
                rows.lane_setting(lane.id, "person", message.sender),
                roster.pairing(asked),
            ),
            deliveries=ground.showing.text(
                lane.id, pairing_text(message.sender, code), DeliveryKind.COMMAND
            ),
        )


def _recorded(answer: Answer, person: Person, here: Situation) -> Answer:
    """With its act as a row, so that both are stored or none."""
    if (act := answer.act) is None:
        return answer
    row = web.act(here.now, person.id, act.act, act.about, act.detail)
    return replace(answer, rows=(*answer.rows, row))


def _engines(pauses: Mapping[str, PauseRow]) -> dict[str, EnginePause]:
    return {
        scope.removeprefix(ENGINE_SCOPE): EnginePause(row.reason, row.until)
        for scope, row in pauses.items()
        if scope.startswith(ENGINE_SCOPE)
    }


def look_at(typed: str, home: Path) -> Looked:
    """A folder that somebody named; the gateway's own secrets lie in its home."""
    try:
        path = Path(typed).expanduser()
        if not path.is_absolute():
            return Looked(None, "Write the whole path of the folder, from / on.")
        path = path.resolve()
        if path.exists() and not path.is_dir():
            return Looked(None, f"{plain(str(path))} is a file. Write the folder it lies in.")
        if not path.is_dir():
            return Looked(None, f"There is no folder {plain(str(path))}.{_beside(path)}")
    except (OSError, RuntimeError, ValueError):
        return Looked(None, "That folder cannot be looked at.")
    home = home.resolve()
    own = home / "workspaces"
    if home.is_relative_to(path) and path != home:
        return Looked(
            None,
            "That folder contains the gateway's home, and so its own secrets. "
            "Choose a folder that does not.",
        )
    if path == own or (path.is_relative_to(home) and not path.is_relative_to(own)):
        return Looked(None, "That folder holds the gateway's own secrets. Choose another.")
    return Looked(path)


def _beside(path: Path) -> str:
    """Folders with nearly the same name, at the same place."""
    try:
        names = [one.name for one in path.parent.iterdir() if one.is_dir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, 3, 0.6)
    if not near:
        return " Make it first."
    return f" Did you mean {' or '.join(plain(str(path.parent / name)) for name in near)}?"
