"""Every write, as a typed constructor of one row for the group commit.

A row is (name of a query, its parameters); the queries stand in sql/*.sql. Nothing here decides
anything, and nothing here is executed: rows take effect when the unit that returned them commits.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.messages import Address, Part
from core.store.encoding import dump_data, dump_extra, dump_keyboard, dump_part
from core.store.records import (
    LEFT_BEHIND,
    ApprovalRow,
    ApprovalState,
    ButtonRow,
    Delivery,
    DeliveryState,
    FilePart,
    MessageRow,
    ProcessRow,
    RuleRow,
    SettingRow,
)
from core.turns import LaneFacts, Turn

Row = tuple[str, Mapping[str, object]]

LANE_SETTINGS = frozenset(
    {"busy", "engine", "model", "effort", "approvals", "workspace", "listen", "title", "person"}
)


# Lanes ------------------------------------------------------------------------------------


def new_lane(
    lane: str, address: Address, direct: bool, title: str, at: int, owner: str = ""
) -> Row:
    """A lane that is new; nothing changes when it, or another at its address, exists."""
    return "lane.new", {
        "id": lane,
        "channel": address.channel,
        "chat": address.chat,
        "thread": address.thread,
        "direct": int(direct),
        "title": title,
        "at": at,
        "owner": owner,
    }


def wrote(lane: str, person: str) -> Row:
    """Somebody has written there; said again it changes nothing."""
    return "lane.wrote", {"lane": lane, "person": person}


def lane_facts(lane: str, facts: LaneFacts) -> Row:
    """End of the last turn, epoch and pause; engine and folder are settings and stand apart."""
    return "lane.facts", {
        "id": lane,
        "ended": facts.ended,
        "epoch": facts.epoch,
        "paused": int(facts.paused),
    }


def lane_setting(lane: str, name: str, value: str) -> Row:
    if name not in LANE_SETTINGS:
        raise ValueError(f"a lane has no setting {name!r}")
    return f"lane.set_{name}", {"id": lane, "value": value}


def lane_titled(lane: str, title: str) -> Row:
    """A name that nobody gave; one that is there stays."""
    return "lane.titled", {"id": lane, "value": title}


def lane_engaged(lane: str, at: int) -> Row:
    return "lane.engaged", {"id": lane, "at": at}


def lane_address(lane: str, address: Address) -> Row:
    """The lane lives on at another address; that address must be free."""
    return "lane.address", {
        "id": lane,
        "channel": address.channel,
        "chat": address.chat,
        "thread": address.thread,
    }


def lane_moved(lane: str, address: Address) -> list[Row]:
    """The lane lives on where its chat moved to; what was said before is not there."""
    left = "lane.left_behind", {"id": lane, "mark": LEFT_BEHIND}
    return [lane_address(lane, address), left, ("lane.read_elsewhere", {"id": lane})]


# Turns and messages -----------------------------------------------------------------------


def turn(turn: Turn) -> Row:
    """The turn as the lane rules see it; what it said and cost is left as it is."""
    stop = turn.stop
    return "turn.save", {
        "id": turn.id,
        "lane": turn.lane,
        "kind": str(turn.kind),
        "origin": str(turn.origin),
        "person": turn.person,
        "label": turn.label,
        "status": str(turn.status),
        "rank": int(turn.rank),
        "pieces": turn.pieces,
        "last_piece": turn.last_piece,
        "offered_to": turn.offered_to,
        "epoch": turn.epoch,
        "attempts": turn.attempts,
        "unsent": turn.unsent,
        "stop_kind": str(stop.kind) if stop else "",
        "stop_by": stop.by if stop else "",
        "received_at": turn.arrived,
    }


def turn_of(turn: int, of_turn: int, by: str = "") -> Row:
    """What a continue, steer or side answer belongs to, and the person who pressed for it."""
    return "turn.of", {"id": turn, "of_turn": of_turn, "by": by}


def turn_started(turn: int, at: int, engine: str, model: str) -> Row:
    return "turn.started", {"id": turn, "at": at, "engine": engine, "model": model}


def turn_prompted(turn: int, at: int | None, session: str, model: str) -> Row:
    """The prompt may leave from now on; with ``at`` None the mark is taken back."""
    return "turn.prompted", {"id": turn, "at": at, "session": session, "model": model}


def turn_result(turn: int, at: int, answer: str, error: str) -> Row:
    return "turn.result", {"id": turn, "at": at, "answer": answer, "error": error}


def turn_failed(turn: int, error: str) -> Row:
    """Why a turn that had no result of its own has failed, if the rules said that it has."""
    return "turn.failed", {"id": turn, "error": error}


def turn_ended(turn: int, at: int) -> Row:
    """When it was over, for a turn that had no result of its own."""
    return "turn.ended", {"id": turn, "at": at}


def usage(turn: int, tokens_in: int | None, tokens_out: int | None, cost: float | None) -> Row:
    """What the turn has used so far, in all."""
    return "turn.usage", {
        "id": turn,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost": cost,
    }


def message(message: MessageRow) -> Row:
    return "message.new", _message(message)


def _message(message: MessageRow) -> Mapping[str, object]:
    return {
        "seq": message.seq,
        "identity": message.identity,
        "lane": message.lane,
        "turn": message.turn,
        "person": message.person,
        "person_name": message.person_name,
        "message_id": message.message_id,
        "text": message.text,
        "extra": dump_extra(message.files, message.quote, message.album),
        "at": message.at,
    }


def message_turn(seq: int, turn: int) -> Row:
    """A gathered message, or one of a merged turn, belongs to this turn."""
    return "message.turn", {"seq": seq, "turn": turn}


def messages_join(turn: int, into: int) -> Row:
    """All messages of one turn belong to another from now on."""
    return "message.join", {"turn": turn, "into": into}


def message_edit(identity: str, text: str) -> Row:
    """The message's new text; taken only while it waits and no engine was offered it."""
    return "message.edit", {"identity": identity, "text": text}


def message_late(message: MessageRow) -> Row:
    """A piece that came late: joins its turn if that still waits, else is stored without one."""
    return "message.late", _message(message)


# Sessions ---------------------------------------------------------------------------------


def session(lane: str, engine: str, epoch: int, session: str, at: int) -> Row:
    """The conversation to go on with; one under a newer epoch stays."""
    return "session.save", {
        "lane": lane,
        "engine": engine,
        "epoch": epoch,
        "session": session,
        "at": at,
    }


def forget_session(lane: str, engine: str, session: str) -> Row:
    """Of a conversation in which nothing was said."""
    return "session.forget", {"lane": lane, "engine": engine, "session": session}


def quarantine(lane: str, engine: str, session: str, reason: str) -> Row:
    """This very session may never be used again."""
    return "session.quarantine", {
        "lane": lane,
        "engine": engine,
        "session": session,
        "reason": reason,
    }


# Deliveries and buttons -------------------------------------------------------------------


def delivery(delivery: Delivery) -> Row:
    return "delivery.new", {
        "id": delivery.id,
        "lane": delivery.lane,
        "turn": delivery.turn,
        "kind": str(delivery.kind),
        "seq": delivery.seq,
        "part": dump_part(delivery.part),
        "keyboard": dump_keyboard(delivery.keyboard),
        "reply_to": delivery.reply_to,
        "target": delivery.target,
        "message_id": delivery.message_id,
        "state": str(delivery.state),
        "error": delivery.error,
        "created_at": delivery.created_at,
        "sent_at": delivery.sent_at,
    }


def delivery_state(
    delivery: int,
    state: DeliveryState,
    *,
    message_id: str = "",
    error: str = "",
    sent_at: int | None = None,
) -> Row:
    """How far it is. An empty ``message_id`` and a ``sent_at`` of None keep what stands there."""
    return "delivery.state", {
        "id": delivery,
        "state": str(state),
        "message_id": message_id,
        "error": error,
        "sent_at": sent_at,
    }


def delivery_part(delivery: int, part: Part | FilePart) -> Row:
    return "delivery.part", {"id": delivery, "part": dump_part(part)}


def delivery_target(delivery: int, target: str) -> Row:
    """The message to edit; empty: it is sent anew."""
    return "delivery.target", {"id": delivery, "target": target}


def button(button: ButtonRow) -> Row:
    return "button.new", {
        "id": button.id,
        "lane": button.lane,
        "turn": button.turn,
        "action": button.action,
        "data": dump_data(button.data),
        "at": button.created_at,
    }


# Approvals --------------------------------------------------------------------------------


def approval(approval: ApprovalRow) -> Row:
    return "approval.new", {
        "id": approval.id,
        "lane": approval.lane,
        "turn": approval.turn,
        "engine_ref": approval.engine_ref,
        "tool": approval.tool,
        "command": approval.command,
        "hash": approval.hash,
        "state": str(approval.state),
        "delivery": approval.delivery,
        "asked_at": approval.asked_at,
        "expires_at": approval.expires_at,
    }


def approval_state(approval: int, state: ApprovalState, at: int, by: str = "") -> Row:
    """Settles an open question; one that is settled already stays as it is."""
    return "approval.state", {"id": approval, "state": str(state), "at": at, "by": by}


def approval_copy(approval: int, delivery: int) -> Row:
    """The card in this delivery is a copy of the question's."""
    return "approval.copy", {"approval": approval, "delivery": delivery}


def always_rule(rule: RuleRow) -> Row:
    """An *always here*; one that was revoked counts again."""
    return "rule.save", {
        "id": rule.id,
        "lane": rule.lane,
        "engine": rule.engine,
        "tool": rule.tool,
        "command": rule.command,
        "hash": rule.hash,
        "folder": rule.folder,
        "at": rule.made_at,
        "by": rule.made_by,
    }


def revoke_rule(rule: int, at: int) -> Row:
    return "rule.revoke", {"id": rule, "at": at}


# The gateway itself -----------------------------------------------------------------------


def setting(setting: SettingRow) -> Row:
    return "setting.save", {
        "name": setting.name,
        "value": setting.value,
        "at": setting.saved_at,
        "by": setting.saved_by,
    }


def remove_setting(name: str) -> Row:
    return "setting.remove", {"name": name}


def pause(scope: str, reason: str, at: int, until: int | None = None) -> Row:
    """``until``: when it ends by itself; None: when somebody says so."""
    return "pause.save", {"scope": scope, "reason": reason, "at": at, "until": until}


def resume(scope: str) -> Row:
    return "pause.remove", {"scope": scope}


def set_aside(identity: str, at: int, error: str) -> Row:
    """What broke whoever looked at it; known from now on, so that it is not looked at again."""
    return "seen.set_aside", {"identity": identity, "at": at, "error": error}


def unreadable(identity: str, channel: str, raw: str, error: str, at: int) -> Row:
    return "unreadable.save", {
        "identity": identity,
        "channel": channel,
        "raw": raw,
        "error": error,
        "at": at,
    }


def process(process: ProcessRow) -> Row:
    return "process.save", {
        "pid": process.pid,
        "created": process.created,
        "lane": process.lane,
        "marker": process.marker,
    }


def remove_process(pid: int, created: float) -> Row:
    return "process.remove", {"pid": pid, "created": created}


def mark(lane: str, message_id: str, at: int) -> Row:
    """A message of the lane was accepted; the newest one counts. ``at``: the platform's clock."""
    return "mark.save", {"lane": lane, "message_id": message_id, "at": at}


def reached(channel: str, at: int) -> Row:
    """Everything of the channel up to ``at`` was accepted; it never goes back."""
    return "reached.save", {"channel": channel, "at": at}


def release() -> tuple[Row, ...]:
    """Let go of everything that a restored backup held back."""
    return (
        ("release.turns", {}),
        ("release.messages", {}),
        ("release.deliveries", {}),
    )
