"""From what a person said to a turn: the rows and the event that make it run.

It decides nothing about who may talk or what a command is; it must not know platforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core import wording
from core.ground import Ground
from core.items import Item
from core.lane_events import Arrived, SideAsked
from core.messages import FileKind, Message, clean
from core.people import Role
from core.prompt import label_of
from core.store import rows
from core.store.records import LaneRow, MessageRow, TurnRow
from core.store.rows import Row
from core.turns import Busy, Kind, Origin, Turn


@dataclass(frozen=True, slots=True)
class Arriving:
    """Makes items out of messages."""

    ground: Ground

    def row(self, message: Message, lane: LaneRow, text: str, group: str) -> MessageRow:
        """The message as it is stored, without a turn yet."""
        return MessageRow(
            seq=self.ground.store.ids.message(),
            identity=message.identity,
            lane=lane.id,
            turn=None,
            person=message.sender,
            person_name=clean(message.sender_name),
            message_id=message.message_id,
            text=clean(text),
            at=message.at,
            files=message.files,
            quote=message.quote,
            album=group,
        )

    def lane_rows(self, message: Message, lane: LaneRow, new: bool) -> tuple[Row, ...]:
        """What a message changes about its lane, before anything refers to the lane."""
        written: list[Row] = []
        if new:
            written.append(
                rows.new_lane(
                    lane.id, lane.address, lane.direct, lane.title, lane.created_at, lane.owner
                )
            )
        if message.engages:
            written.append(rows.lane_engaged(lane.id, self.ground.clock.now()))
        if lane.person != message.sender:
            written.append(rows.lane_setting(lane.id, "person", message.sender))
            written.append(rows.wrote(lane.id, message.sender))
        written += self.ground.mark(message, lane)
        if message.title and not lane.title and not new:  # a name people gave stays
            written.append(rows.lane_setting(lane.id, "title", clean(message.title)))
        return tuple(written)

    def told(self, message: Message, lane: LaneRow) -> str:
        """Why this message cannot become a turn, in words for its sender; "" when it can."""
        limit = self.ground.limits(message.address.channel).file_in
        for file in message.files:
            if file.size is not None and file.size > limit:
                return wording.sentence(wording.too_big(file.name or file.kind.value, limit))
        if message.text.strip():
            return ""
        spoken = message.files and all(file.kind is FileKind.VOICE for file in message.files)
        if spoken and not self.ground.house.hears:
            return wording.VOICE_UNHEARD
        if not message.files and message.quote is None:
            return wording.EMPTY_MESSAGE
        return ""

    def arrived(
        self,
        lane: LaneRow,
        pieces: Sequence[MessageRow],
        *,
        identity: str | None = None,
        written: Sequence[Row] = (),
        stored: bool = False,
    ) -> Item:
        """The item that makes a turn of these pieces. ``stored``: they are in the store already."""
        turn = self.turn(lane, pieces)
        event = self.event(lane, turn)
        said = tuple(replace(piece, turn=turn.id) for piece in pieces)
        if stored:
            return Item(identity, event, joined=said, rows=written)
        return Item(identity, event, messages=said, rows=written)

    def event(self, lane: LaneRow, turn: Turn) -> Arrived:
        ground, able = self.ground, self.ground.abilities(lane)
        return Arrived(
            turn,
            ground.facts(lane),
            Busy(lane.busy) if lane.busy else ground.house.busy,
            admin=ground.people.role(turn.person) is Role.ADMIN,
            can_steer=able.steer,
            can_side=able.side,
        )

    def turn(
        self,
        lane: LaneRow,
        pieces: Sequence[MessageRow],
        origin: Origin = Origin.PERSON,
        kind: Kind = Kind.MAIN,
    ) -> Turn:
        now = self.ground.clock.now()
        first = pieces[0]
        texts = (piece.text for piece in pieces if piece.text.strip())
        files = [file for piece in pieces for file in piece.files]
        return Turn(
            id=self.ground.store.ids.turn(),
            lane=lane.id,
            person=first.person,
            origin=origin,
            kind=kind,
            arrived=now,
            label=label_of(next(texts, ""), files),
            last_piece=now,
            pieces=len(pieces),
        )

    def side(
        self,
        lane: LaneRow,
        said: MessageRow,
        identity: str | None,
        written: Sequence[Row] = (),
    ) -> Item:
        """A question that is answered beside what runs."""
        turn = self.turn(lane, [said], Origin.SIDE, Kind.SIDE)
        event = SideAsked(turn, self.ground.facts(lane), self.ground.abilities(lane).side)
        return Item(identity, event, messages=(replace(said, turn=turn.id),), rows=tuple(written))

    def repeated(
        self, lane: LaneRow, old: TurnRow, said: Sequence[MessageRow], action: str
    ) -> tuple[Turn, tuple[MessageRow, ...]]:
        """A turn that asks once more what an earlier one asked, with that one's rights."""
        origin = Origin.SIDE if old.kind is Kind.SIDE else Origin.PERSON
        turn = self.turn(lane, said, origin, old.kind)
        copies = tuple(
            replace(
                row,
                seq=self.ground.store.ids.message(),
                identity=f"{action}:{old.id}:{row.identity}",
                turn=turn.id,
            )
            for row in said
        )
        return replace(turn, person=old.person, label=old.label), copies
