"""Typed reads of what is committed. Each is one query by name; nothing here decides anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TypeVar

from core.channel import Mark
from core.messages import Address
from core.store.encoding import load_data, load_extra, load_keyboard, load_part
from core.store.records import (
    ApprovalRow,
    ApprovalState,
    ButtonRow,
    Delivery,
    DeliveryKind,
    DeliveryState,
    LaneRow,
    MessageRow,
    PauseRow,
    ProcessRow,
    Reached,
    RuleRow,
    SessionRow,
    SettingRow,
    ThreadMark,
    TurnRow,
    stop_of,
)
from core.store.store import Reader
from core.turns import Kind, Origin, Rank, Status

T = TypeVar("T")


# Lanes ------------------------------------------------------------------------------------


async def lane(store: Reader, lane: str) -> LaneRow | None:
    return _first(map(lane_of, await store.fetch("lane.by_id", id=lane)))


async def lane_called(store: Reader, name: str) -> LaneRow | None:
    """A lane by its id, or by where it lives today: a chat that moved keeps its lane's id."""
    found = await lane(store, name)
    if found is not None or ":" not in name:
        return found
    channel, chat, thread = (*name.split(":", 2), "")[:3]
    return await lane_at(store, Address(channel, chat, thread))


async def lane_at(store: Reader, address: Address) -> LaneRow | None:
    found = await store.fetch(
        "lane.at", channel=address.channel, chat=address.chat, thread=address.thread
    )
    return _first(map(lane_of, found))


async def lane_direct(store: Reader, channel: str, person: str) -> LaneRow | None:
    """The person's direct chat on a channel, if there was ever one."""
    found = await store.fetch("lane.direct_of", channel=channel, person=person)
    return _first(map(lane_of, found))


async def lanes_of_place(store: Reader, channel: str, chat: str) -> list[LaneRow]:
    return [lane_of(row) for row in await store.fetch("lane.of_place", channel=channel, chat=chat)]


async def lanes_open(store: Reader, *, held: bool = False) -> list[LaneRow]:
    """Lanes with turns that are not over."""
    return [lane_of(row) for row in await store.fetch("lane.of_open", held=int(held))]


async def lane_list(store: Reader) -> list[LaneRow]:
    return [lane_of(row) for row in await store.fetch("lane.all")]


# Turns and messages -----------------------------------------------------------------------


async def turn(store: Reader, turn: int) -> TurnRow | None:
    return _first(map(turn_of, await store.fetch("turn.by_id", id=turn)))


async def open_turns(store: Reader) -> list[TurnRow]:
    """Turns that are not over, in the order of their arrival; without those that are held."""
    return [turn_of(row) for row in await store.fetch("turn.open")]


async def held_turns(store: Reader) -> list[TurnRow]:
    """Open turns that came out of a backup and wait for their release."""
    return [turn_of(row) for row in await store.fetch("turn.held")]


async def turns_of(store: Reader, lane: str | None, limit: int) -> list[TurnRow]:
    """The newest turns of a lane, or of all; newest first."""
    if lane is None:
        found = await store.fetch("turn.latest", limit=limit)
    else:
        found = await store.fetch("turn.of_lane", lane=lane, limit=limit)
    return [turn_of(row) for row in found]


async def turn_started_after(store: Reader, lane: str, turn: int) -> TurnRow | None:
    """The newest main turn of the lane that started after this one."""
    return _first(map(turn_of, await store.fetch("turn.after", lane=lane, id=turn)))


async def promised(store: Reader, since: int) -> list[TurnRow]:
    """Turns cut off since, of which people were told that they go on, and which did not."""
    return [turn_of(row) for row in await store.fetch("turn.promised", since=since)]


async def messages_of(store: Reader, turns: Iterable[int]) -> list[MessageRow]:
    """What was said in these turns, in order."""
    found: list[MessageRow] = []
    for turn in turns:
        found += map(message_of, await store.fetch("message.of_turn", turn=turn))
    found.sort(key=lambda message: message.seq)
    return found


async def waiting_message(store: Reader, identity: str) -> MessageRow | None:
    """A message that is being gathered, or whose turn is not over."""
    return _first(map(message_of, await store.fetch("message.waiting", identity=identity)))


async def message(store: Reader, identity: str) -> MessageRow | None:
    """A message that is being gathered, or of a turn that is open or among the newest thousand."""
    return _first(map(message_of, await store.fetch("message.recent", identity=identity)))


async def messages_of_lane(store: Reader, lane: str, limit: int) -> list[MessageRow]:
    """The newest messages of a lane, newest first."""
    found = await store.fetch("message.of_lane", lane=lane, limit=limit)
    return [message_of(row) for row in found]


async def people_of_lane(store: Reader, lane: str, limit: int) -> list[str]:
    """Who wrote what the newest turns of a lane are made of."""
    found = await store.fetch("message.people", lane=lane, limit=limit)
    return [row["person"] for row in found]


async def messages_open(store: Reader, *, held: bool = False) -> list[MessageRow]:
    """What was said in the turns that are not over, in order."""
    return [message_of(row) for row in await store.fetch("message.of_open", held=int(held))]


async def gathered(store: Reader) -> list[MessageRow]:
    """Messages that belong to no turn yet, in the order they were stored."""
    return [message_of(row) for row in await store.fetch("message.gathered")]


async def sessions(store: Reader, lane: str) -> dict[str, SessionRow]:
    """The lane's conversations by engine."""
    found = await store.fetch("session.of_lane", lane=lane)
    return {row["engine"]: SessionRow(**dict(row)) for row in found}


# Deliveries and buttons -------------------------------------------------------------------


async def delivery(store: Reader, delivery: int) -> Delivery | None:
    return _first(map(delivery_of, await store.fetch("delivery.by_id", id=delivery)))


async def deliveries_open(store: Reader) -> list[Delivery]:
    """What is pending or was in flight, in order; without what is held."""
    return [delivery_of(row) for row in await store.fetch("delivery.open")]


async def previews_open(store: Reader, *, held: bool = False) -> list[Delivery]:
    """What turns that are not over show of themselves."""
    return [delivery_of(row) for row in await store.fetch("delivery.previews_open", held=int(held))]


async def deliveries_held(store: Reader) -> list[Delivery]:
    return [delivery_of(row) for row in await store.fetch("delivery.held")]


async def deliveries_of(store: Reader, turn: int) -> list[Delivery]:
    return [delivery_of(row) for row in await store.fetch("delivery.of_turn", turn=turn)]


async def waiting_notices(store: Reader) -> list[Delivery]:
    """The first delivery of every waiting notice that is still on the screen."""
    return [delivery_of(row) for row in await store.fetch("delivery.waiting_shown")]


async def button(store: Reader, button: str) -> ButtonRow | None:
    return _first(map(_button, await store.fetch("button.by_id", id=button)))


# Approvals --------------------------------------------------------------------------------


async def approval(store: Reader, approval: int) -> ApprovalRow | None:
    return _first(map(_approval, await store.fetch("approval.by_id", id=approval)))


async def approvals_open(store: Reader) -> list[ApprovalRow]:
    return [_approval(row) for row in await store.fetch("approval.open")]


async def approval_copies(store: Reader, approval: int) -> list[Delivery]:
    """The cards that were shown besides the one in the lane."""
    return [delivery_of(row) for row in await store.fetch("approval.copies", approval=approval)]


async def always_rules(store: Reader) -> list[RuleRow]:
    """Every *always here* that was not revoked."""
    return [RuleRow(**dict(row)) for row in await store.fetch("rule.list")]


# The gateway itself ---------------------------------------------------------------------


async def settings(store: Reader) -> dict[str, SettingRow]:
    found = await store.fetch("setting.list")
    return {row["name"]: SettingRow(**dict(row)) for row in found}


async def pauses(store: Reader) -> list[PauseRow]:
    return [PauseRow(**dict(row)) for row in await store.fetch("pause.list")]


async def processes(store: Reader) -> list[ProcessRow]:
    return [ProcessRow(**dict(row)) for row in await store.fetch("process.list")]


async def set_aside(store: Reader, limit: int) -> list[tuple[str, int, str]]:
    """Identity, instant and reason of what could never be stored, newest first."""
    return [tuple(row) for row in await store.fetch("seen.aside", limit=limit)]


async def seen(store: Reader, identity: str) -> bool:
    """Whether this message, press or edit was handled already."""
    return bool(await store.fetch("seen.has", identity=identity))


async def marks(store: Reader, channel: str, engaged: int) -> list[ThreadMark]:
    """Direct chats, and threads that were engaged since and need no mention, with their marks."""
    found = await store.fetch("mark.of_channel", channel=channel, engaged=engaged)
    return [
        ThreadMark(
            Address(channel, row["chat"], row["thread"]),
            bool(row["direct"]),
            Mark(row["message_id"], row["at"]),
        )
        for row in found
    ]


async def reached(store: Reader) -> dict[str, Reached]:
    """By channel, how far everything was accepted."""
    found = await store.fetch("reached.list")
    return {row["channel"]: Reached(row["at"], row["runs_from"]) for row in found}


async def last_answer(store: Reader, lane: str) -> str:
    """The newest answer of the lane's main turns; empty when there is none."""
    found = await store.fetch("turn.last_answer", lane=lane)
    return str(found[0]["answer"]) if found else ""


# Rows as records --------------------------------------------------------------------------


def _first(found: Iterable[T]) -> T | None:
    return next(iter(found), None)


def lane_of(row: sqlite3.Row) -> LaneRow:
    """The record of a row of lanes."""
    values = dict(row)
    values["address"] = Address(values.pop("channel"), values.pop("chat"), values.pop("thread"))
    values["direct"] = bool(values["direct"])
    values["paused"] = bool(values["paused"])
    return LaneRow(**values)


def turn_of(row: sqlite3.Row) -> TurnRow:
    """The record of a row of turns."""
    values = dict(row)
    values["kind"] = Kind(values["kind"])
    values["origin"] = Origin(values["origin"])
    values["status"] = Status(values["status"])
    values["rank"] = Rank(values["rank"])
    values["held"] = bool(values["held"])
    values["stop"] = stop_of(values.pop("stop_kind"), values.pop("stop_by"))
    return TurnRow(**values)


def message_of(row: sqlite3.Row) -> MessageRow:
    """The record of a row of messages."""
    values = dict(row)
    del values["held"]
    values["files"], values["quote"], values["album"] = load_extra(values.pop("extra"))
    return MessageRow(**values)


def delivery_of(row: sqlite3.Row) -> Delivery:
    """The record of a row of deliveries."""
    values = dict(row)
    values["kind"] = DeliveryKind(values["kind"])
    values["state"] = DeliveryState(values["state"])
    values["part"] = load_part(values["part"])
    values["keyboard"] = load_keyboard(values["keyboard"])
    return Delivery(**values)


def _button(row: sqlite3.Row) -> ButtonRow:
    values = dict(row)
    values["data"] = load_data(values["data"])
    return ButtonRow(**values)


def _approval(row: sqlite3.Row) -> ApprovalRow:
    values = dict(row)
    values["state"] = ApprovalState(values["state"])
    return ApprovalRow(**values)
