"""A button that was pressed: what it means, whether this person may, and what they are told.

Every press is answered exactly once, and only to the person who pressed. It must not know how a
platform shows buttons.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core import wording
from core.addressing import Spoken
from core.answering import Answering
from core.arriving import Arriving
from core.attending import begun
from core.budgets import Put, handed_on
from core.ground import Ground
from core.items import Item
from core.lane_events import Arrived, AsideAsked, DropAsked, SideAsked, SteerAsked, StopAsked
from core.lane_ids import channel_of
from core.messages import Press
from core.people import Person
from core.prompt import CONTINUE_NOTE
from core.showing import Action
from core.store import budgets, reads, roster, rows, web
from core.store.records import ButtonRow, LaneRow, MessageRow, PlaceRow, TurnRow
from core.turns import Busy, Kind, Origin, Rank, Status, Stop, StopKind, Turn

log = logging.getLogger("laneway.intake")


@dataclass(frozen=True, slots=True)
class Pressed:
    """A press by somebody who may press here, with all it is about."""

    press: Press
    button: ButtonRow
    lane: LaneRow
    person: Person


@dataclass(frozen=True, slots=True)
class Pressing:
    ground: Ground
    answering: Answering
    arriving: Arriving

    async def press(self, press: Press, person: Person) -> None:
        """Carry out a press and answer it. ``person`` has a role."""
        store = self.ground.store
        button = await reads.button(store, press.button)
        lane = await reads.lane(store, button.lane) if button else None
        if button is None or lane is None or channel_of(lane.id) != press.address.channel:
            self.tell(press, wording.UNKNOWN_PRESS)
            return
        pressed = Pressed(press, button, lane, person)
        told = await self._effect(pressed)
        if told:
            self.tell(press, told)

    def tell(self, press: Press, text: str) -> None:
        self.ground.says.answer_press(press.address.channel, press.press, text)

    async def _effect(self, pressed: Pressed) -> str:
        """What the person is told; empty when this press was handled before."""
        match pressed.button.action:
            case Action.STOP:
                return await self._stop(pressed)
            case Action.DROP | Action.STEER | Action.SIDE:
                return await self._waiting(pressed)
            case Action.CONTINUE | Action.RERUN | Action.QUEUE as action:
                return await self._again(pressed, Action(action))
            case Action.SET:
                return await self._set(pressed)
            case Action.ALLOW_PLACE:
                return await self._allow(pressed)
            case Action.APPROVAL:
                return await self._approval(pressed)
            case Action.CHOSEN:
                return await self._chosen(pressed)
            case _:
                return wording.UNKNOWN_PRESS

    async def _take(self, told: str, *items: Item) -> str:
        new = await self.ground.take(*items)
        return told if new[0] else ""

    # What runs ----------------------------------------------------------------------------

    async def _stop(self, pressed: Pressed) -> str:
        lane, turn, person = pressed.lane.id, pressed.button.turn, pressed.person
        view = self.ground.spine.view(lane)
        running = [t.id for t in (view.main, *view.sides) if t is not None] if view else []
        if turn not in running:
            return await self._take(wording.TURN_OVER_PRESS, Item(pressed.press.identity))
        self.ground.spine.cancel_now(lane, Stop(StopKind.STOP, person.id), turn)
        event = StopAsked(lane, person.id, person.admin, turn)
        return await self._take("Stopping.", Item(pressed.press.identity, event))

    # What waits ---------------------------------------------------------------------------

    async def _waiting(self, pressed: Pressed) -> str:
        """Acts on the presser's newest waiting message, or on the one that the button names."""
        lane, person, identity = pressed.lane, pressed.person, pressed.press.identity
        view = self.ground.spine.view(lane.id)
        waiting, named = view.waiting if view else (), pressed.button.turn
        own = [t for t in waiting if (t.id == named if named else t.person == person.id)]
        if not own:
            gone = "It does not wait any more." if named else "You have no message waiting here."
            return await self._take(gone, Item(identity))
        newest = max(own, key=lambda turn: turn.id)
        what = wording.label(newest.label, 40)
        match pressed.button.action:
            case Action.DROP:
                event = DropAsked(newest.id, lane.id, person.id, person.admin)
                return await self._take(f"Taking out: {what}", Item(identity, event))
            case Action.STEER:
                able = self.ground.abilities(lane).steer
                asked = SteerAsked(newest.id, lane.id, person.id, person.admin, able)
                return await self._take(f"Handing over: {what}", Item(identity, asked))
        able = self.ground.abilities(lane).side
        if not able:
            return await self._take(wording.NO_SIDE_PRESS, Item(identity))
        if view and view.sides:
            return await self._take(wording.SIDE_BUSY_PRESS, Item(identity))
        aside = AsideAsked(newest.id, lane.id, person.id, person.admin, able)
        return await self._take(f"Answering on the side: {what}", Item(identity, aside))

    # Once more ----------------------------------------------------------------------------

    async def _again(self, pressed: Pressed, action: Action) -> str:
        """Go on with, or ask again, what an earlier turn was about; once a turn and button."""
        person = pressed.person
        old = await reads.turn(self.ground.store, pressed.button.turn or 0)
        if old is None or old.lane != pressed.lane.id:
            return wording.UNKNOWN_PRESS
        if old.person != person.id and not person.admin:
            return wording.NOT_YOURS_PRESS
        return await self.once_more(pressed.lane, old, action, by=person.id)

    async def once_more(
        self, lane: LaneRow, old: TurnRow, action: Action, *, by: str = "", first: bool = False
    ) -> str:
        """Carry out *continue*, *run again* or *queue it*; returns what came of it.

        ``by``: who pressed, if anybody did. ``first``: before what waits in the lane; so a turn
        that was cut off goes on in its place.
        """
        ground = self.ground
        if action is Action.CONTINUE and (why := await self._withdrawn(lane, old)):
            return why
        said = await reads.messages_of(ground.store, [old.id])
        if not said:
            return wording.UNKNOWN_PRESS
        turn, copies = continued(self.arriving, lane, old, said, action)
        if first:
            turn = replace(turn, rank=Rank.AGAIN)
        event: Arrived | SideAsked = self.arriving.event(lane, turn)
        if action is Action.QUEUE:  # as it says, whatever messages do in this lane
            event = replace(self.arriving.event(lane, turn), busy=Busy.QUEUE)
        if turn.kind is Kind.SIDE:
            event = SideAsked(turn, ground.facts(lane), ground.abilities(lane).side)
        # The identity is the button's, not the press's: it works once, whoever presses.
        item = Item(
            f"{action}:{old.id}", event, messages=copies, rows=(rows.turn_of(turn.id, old.id, by),)
        )
        if action is Action.CONTINUE and (cap := await budgets.of_turn(ground.store, old.id)):
            number, now = ground.store.ids.budget(), ground.clock.now()
            item = replace(item, budget=Put(handed_on(cap, number, now, turn.id)))
        told = "It waits its turn." if action is Action.QUEUE else "Going on."
        return await self._take(told, item) or "That was pressed already."

    async def _withdrawn(self, lane: LaneRow, old: TurnRow) -> str:
        """Why a cut-off turn cannot be continued any more."""
        if old.status is not Status.INTERRUPTED:
            return wording.TURN_OVER_PRESS
        if lane.epoch != old.epoch:
            return "A fresh session was begun since; send it again instead."
        if await reads.turn_started_after(self.ground.store, lane.id, old.id):
            return "The thread has gone on since; send it again instead."
        return ""

    # Settings and places ------------------------------------------------------------------

    async def _set(self, pressed: Pressed) -> str:
        data, press = pressed.button.data, pressed.press
        spoken = Spoken(str(data.get("name", "")), str(data.get("value", "")))
        engages = pressed.lane.engaged_at > 0
        answer = await self.answering.answer(pressed.lane, pressed.person, spoken, engages=engages)
        if not (answer.rows or answer.event):  # refused: the others keep their buttons
            return await self._take(answer.text, Item(press.identity))
        item = self.answering.pressed(press.identity, pressed.lane, answer, press.message_id)
        told = await self._take("Saved.", item)
        if told and answer.jobs:
            self.ground.jobs_changed()
        if told and answer.act:
            log.info("%s", answer.act.told(pressed.person.id))
        return told

    async def _allow(self, pressed: Pressed) -> str:
        person, press = pressed.person, pressed.press
        if not person.admin:
            return "Only an admin can allow a place."
        place = str(pressed.button.data.get("place", ""))
        now = self.ground.clock.now()
        row = roster.place(PlaceRow(place, pressed.lane.title, now, person.id))
        act = web.act(now, person.id, "place.allowed", place, pressed.lane.title)
        text = "Members may talk to me here now. Mention me to begin."
        told = await self._take(
            "Allowed.",
            Item(
                press.identity,
                rows=(row, act),
                deliveries=self.ground.showing.text(pressed.lane.id, text, target=press.message_id),
            ),
        )
        await self.ground.people.load(self.ground.store)
        return told

    # Questions and approvals --------------------------------------------------------------

    async def _chosen(self, pressed: Pressed) -> str:
        of, choice = pressed.button.data.get("of"), pressed.button.data.get("choice")
        if not isinstance(of, str) or not isinstance(choice, int):
            return wording.UNKNOWN_PRESS
        if not await self._take("new", Item(pressed.press.identity)):
            return ""
        person = pressed.person
        return self.ground.chooses.choose(of, choice, person.id, person.admin)

    async def _approval(self, pressed: Pressed) -> str:
        data, person = pressed.button.data, pressed.person
        may = person.admin
        if not may and self.ground.house.starter_approves and pressed.button.turn is not None:
            turn = await reads.turn(self.ground.store, pressed.button.turn)
            starter = (await begun(self.ground.store, turn.turn())).starter if turn else ""
            may = starter == person.id
        approval = data.get("of")
        if not isinstance(approval, int):
            return wording.UNKNOWN_PRESS
        choice = str(data.get("choice", ""))
        press = pressed.press
        card = press.message_id if press.address == pressed.lane.address else ""
        return await self.ground.decides.decide(
            approval, choice, person.id, may, person.admin, pressed.lane.id, card
        )


def continued(
    arriving: Arriving,
    lane: LaneRow,
    old: TurnRow,
    said: Sequence[MessageRow],
    action: Action,
) -> tuple[Turn, tuple[MessageRow, ...]]:
    """The turn that goes on after a cut, or asks again: the same messages, the same rights."""
    turn, copies = arriving.repeated(lane, old, said, action)
    if action is Action.QUEUE:
        return replace(turn, kind=Kind.MAIN, origin=Origin.PERSON), copies
    if action is not Action.CONTINUE:
        return turn, copies
    note = replace(
        copies[0],
        seq=copies[0].seq,
        identity=f"{action}:{old.id}",
        person="",
        person_name="",
        message_id="",
        text=CONTINUE_NOTE,
        files=(),
        quote=None,
        album="",
    )
    ids = arriving.ground.store.ids
    after = tuple(replace(row, seq=ids.message()) for row in copies)
    return replace(turn, origin=Origin.CONTINUE), (note, *after)
