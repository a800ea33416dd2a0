"""A gateway's intake with the real store and the real lane rules, and nothing that runs.

Turns that start stay running until a test ends them, so every test says itself what goes on.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from core.channel import Action, ChannelLimits, Connection, Done, Intake
from core.engines.base import Abilities, Choices
from core.ground import Ground, House
from core.intake import Intake as CoreIntake
from core.items import Item, content
from core.lane_commands import Command, Refuse, Tell
from core.lane_events import Ended, Finished, Prompted
from core.lanes import Lanes, LaneView
from core.messages import Address, FileRef, Message, Part, Press
from core.people import Lists, People
from core.prompt import build
from core.steps import rows_of
from core.store import reads, rows
from core.store.records import ButtonRow, Delivery, TurnRow
from core.store.store import Store
from core.store.writer import Unit
from core.turns import Limits, Result, Status, Stop
from tests.fakes.clock import FakeClock

ANA, BEN, MAL = "telegram:700000001", "telegram:700000002", "telegram:700000009"
LAB = "-1001900000001"
NAMES = MappingProxyType({ANA: "Ana", BEN: "Ben", MAL: "Mal"})
NUMBERS = itertools.count(1)  # goes on over a restart within a test
ABLE = Abilities(resume=True, side=True, steer=True)


class PlainChannel:
    """Renders Markdown as it is; never sends."""

    def __init__(self, name: str, limits: ChannelLimits) -> None:
        self.name = name
        self.limits = limits

    async def listen(self, intake: Intake) -> None:
        await asyncio.Event().wait()

    def render(self, markdown: str) -> list[Part]:
        return [Part(markdown)]

    async def do(self, action: Action) -> Done:
        return Done()

    async def fetch(self, file: FileRef, target: Path) -> None:
        target.write_bytes(b"")


@dataclass
class Rules:
    """The runner without its tasks: what the lane rules decide is stored and noted."""

    store: Store
    able: Mapping[str, Abilities]
    lanes: Lanes = field(default_factory=lambda: Lanes(Limits()))
    commands: list[Command] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    cancelled: list[tuple[str, Stop, int | None]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    offered: Choices = field(default_factory=Choices)  # what engines can be set to
    stuck: asyncio.Event | None = None  # set by a test: the disk does not answer before this

    async def take(self, *items: Item) -> list[bool]:
        if self.stuck is not None:
            await self.stuck.wait()
        self.batches.append(len(items))
        return await self.store.commit(*(self._unit(item) for item in items))

    def _unit(self, item: Item) -> Unit:
        commands: list[Command] = []
        mark = self.lanes.mark()

        def decide() -> list[rows.Row]:
            nonlocal mark
            mark = self.lanes.mark()
            commands[:] = self.lanes.handle(item.event) if item.event else []
            return [
                *rows_of(commands, self.store.clock.now()),
                *content(item),
                *map(rows.delivery, item.deliveries),
            ]

        def done() -> None:
            self.lanes.settle()
            self.commands.extend(commands)
            self.deliveries.extend(item.deliveries)

        return Unit(item.identity, decide, lambda: self.lanes.undo(mark), done)

    def view(self, lane: str) -> LaneView | None:
        return self.lanes.view(lane)

    def since(self, turn: int) -> int | None:
        return None

    def cancel_now(self, lane: str, stop: Stop, turn: int | None = None) -> None:
        self.cancelled.append((lane, stop, turn))

    async def choices(self, engine: str, model: str) -> Choices:
        return self.offered

    def acting(self, engine: str) -> str:
        return engine

    def abilities(self, engine: str) -> Abilities:
        return self.able.get(engine, Abilities())


@dataclass
class Signs:
    pressed: list[tuple[str, str]] = field(default_factory=list)
    titles: list[tuple[str, str]] = field(default_factory=list)
    moves: list[tuple[str, str, str]] = field(default_factory=list)

    def answer_press(
        self,
        channel: str,
        press: str,
        text: str,
        alert: bool = False,
        parts: tuple[Part, ...] = (),
    ) -> None:
        self.pressed.append((press, text or "\n".join(part.text for part in parts)))

    def retitle(self, lane: str, title: str) -> None:
        self.titles.append((lane, title))

    def moved(self, channel: str, old_chat: str, new_chat: str) -> None:
        self.moves.append((channel, old_chat, new_chat))


@dataclass
class Decisions:
    asked: list[tuple[int, str, str, bool, bool]] = field(default_factory=list)

    async def decide(
        self,
        approval: int,
        choice: str,
        person: str,
        may: bool,
        admin: bool,
        lane: str = "",
        message_id: str = "",
    ) -> str:
        self.asked.append((approval, choice, person, may, admin))
        return "Decided." if may else "Not you."

    def choose(self, ident: str, choice: int, person: str, admin: bool) -> str:
        return f"{person} chose {choice} of {ident}"


@dataclass
class Scene:
    """Ana is an admin, Ben a member, Mal nobody; the group chat LAB is on the list."""

    ground: Ground
    intake: CoreIntake
    rules: Rules
    signs: Signs
    decisions: Decisions
    clock: FakeClock
    store: Store
    numbers: Iterator[int] = field(default_factory=lambda: NUMBERS)

    # What people do

    def message(self, text: str = "", sender: str = ANA, **more: Any) -> Message:
        """A direct message, unless a chat is named."""
        number = next(self.numbers)
        chat = more.pop("chat", None)
        thread = more.pop("thread", "")
        direct = chat is None
        address = Address("telegram", chat or sender.partition(":")[2], thread)
        message = Message(
            identity=f"telegram:800000001:{address.chat}:{number}",
            message_id=str(number),
            address=address,
            sender=sender,
            sender_name=NAMES.get(sender, "Bot"),
            text=text,
            at=self.clock.now(),
            direct=direct,
        )
        return replace(message, **more)

    async def say(self, text: str = "", sender: str = ANA, **more: Any) -> Message:
        message = self.message(text, sender, **more)
        await self.intake.accept([message])
        return message

    async def mention(self, text: str, sender: str = ANA, **more: Any) -> Message:
        return await self.say(text, sender, chat=LAB, addressed=True, **more)

    async def choose(self, text: str, sender: str = ANA, **more: Any) -> list[str]:
        """An application command of the platform's own; what the person alone is told."""
        before = len(self.signs.pressed)
        message = self.message(text, sender, **more)
        await self.intake.accept([replace(message, press=f"interaction {message.message_id}")])
        return [text for _, text in self.signs.pressed[before:]]

    async def press(self, button: str, sender: str = ANA, chat: str = "") -> str:
        """Press a button; returns what the person who pressed is told."""
        number = next(self.numbers)
        before = len(self.signs.pressed)
        press = Press(
            identity=f"cb:{number}",
            press=f"press {number}",
            address=Address("telegram", chat or sender.partition(":")[2]),
            sender=sender,
            sender_name=NAMES[sender],
            button=button,
            message_id="500",
            direct=not chat,
        )
        await self.intake.accept([press])
        answers = self.signs.pressed[before:]
        assert len(answers) == 1, answers
        return answers[0][1]

    async def button(self, lane: str, action: str, turn: int | None = None, **data: object) -> str:
        button = ButtonRow(self.ground.new_id(), lane, turn, action, data, self.clock.now())
        await self.store.save(rows.button(button))
        return button.id

    # What engines do

    async def run(self, turn: int, answer: str = "done") -> None:
        """Let a started turn come to its end."""
        row = await reads.turn(self.store, turn)
        assert row is not None
        now = self.clock.now()
        await self.rules.take(
            Item(event=Prompted(turn, row.lane), rows=(rows.turn_started(turn, now, "demo", ""),))
        )
        result = rows.turn_result(turn, now, answer, "")
        await self.rules.take(Item(event=Finished(turn, row.lane, Result.DONE), rows=(result,)))
        await self.rules.take(Item(event=Ended(turn, row.lane, now)))

    # What can be seen

    async def turns(self) -> list[TurnRow]:
        return list(reversed(await reads.turns_of(self.store, None, 1000)))

    async def prompts(self) -> list[str]:
        """What each turn that was not dropped asks its agent, in order of the turns."""
        found = []
        for turn in await self.turns():
            if turn.status is not Status.DROPPED:
                said = await reads.messages_of(self.store, [turn.id])
                found.append(build(said, group=False))
        return found

    @property
    def said(self) -> list[str]:
        """Every text for a thread, in order."""
        texts = (delivery.part for delivery in self.rules.deliveries)
        return [part.text for part in texts if isinstance(part, Part)]

    @property
    def told(self) -> list[Tell | Refuse]:
        return [one for one in self.rules.commands if isinstance(one, Tell | Refuse)]

    def buttons(self) -> dict[str, str]:
        """Label and id of the buttons of the newest message that has some."""
        for delivery in reversed(self.rules.deliveries):
            if delivery.keyboard:
                return {one.label: one.id for row in delivery.keyboard for one in row}
        return {}

    async def stored(self, query: str, **parameters: object) -> list[Any]:
        return await self.store.fetch(query, **parameters)


@asynccontextmanager
async def opened(
    home: Path,
    clock: FakeClock,
    *,
    limits: ChannelLimits | None = None,
    able: Abilities = ABLE,
    lists: Lists | None = None,
    connected: bool = True,
    **house: Any,
) -> AsyncIterator[Scene]:
    """A scene over the database in ``home``; opened twice, it is a restart."""
    async with Store.open(home / "laneway.db", clock) as store:
        rules = Rules(store, {"demo": able, "codex": Abilities()})
        signs, decisions = Signs(), Decisions()
        limits = limits or ChannelLimits(bare_commands=True)
        people = People(
            lists
            or Lists(
                admins=frozenset({ANA}),
                members=frozenset({BEN}),
                places=frozenset({f"telegram:{LAB}"}),
            )
        )
        ground = Ground(
            store=store,
            spine=rules,
            says=signs,
            decides=decisions,
            chooses=decisions,
            people=people,
            channels={"telegram": PlainChannel("telegram", limits)},
            clock=clock,
            house=House(home=home, engine="demo", engines=("codex", "demo"), **house),
            new_id=lambda: f"button-{next(NUMBERS)}",
        )
        intake = CoreIntake(ground)
        clock.watch(lambda: ground.lock("telegram").locked() and not store.trouble)
        scene = Scene(ground, intake, rules, signs, decisions, clock, store)
        await intake.resume()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(intake.run(), name="intake")
            if connected:
                intake.connection("telegram", Connection())
            try:
                yield scene
            finally:
                task.cancel()
