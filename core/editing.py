"""Edits: the text of a message that still waits is replaced, and nothing else ever comes of one.

It must not know commands or platforms.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from core import addressing
from core.ground import Ground
from core.holding import Holding
from core.items import Item
from core.lane_events import Edited
from core.messages import Edit, clean
from core.prompt import label_of
from core.store import reads, rows

log = logging.getLogger("laneway.intake")


@dataclass(frozen=True, slots=True)
class Editing:
    ground: Ground
    holding: Holding

    async def edit(self, edit: Edit) -> None:
        """The text of a message that waits; never a turn, never a command."""
        if not self.ground.people.role(edit.sender):
            return
        said = await reads.waiting_message(self.ground.store, edit.of)
        if said is None or said.person != edit.sender:
            log.info("edit of %s: it does not wait any more, or was not for us", edit.of)
            return
        text = addressing.prompt_text(clean(edit.text))
        if text == said.text or not (text.strip() or said.files or said.quote):
            return  # nothing is new, or nothing would be left to ask
        row = rows.message_edit(edit.of, text)
        if said.turn is None:
            self.holding.edit(said.lane, edit.of, text)
            await self.ground.take(Item(edit.identity, rows=(row,)))
            return
        view = self.ground.spine.view(said.lane)
        if view is None or said.turn not in {turn.id for turn in view.waiting}:
            log.info("edit of a message of turn %d came too late", said.turn)
            return
        first = (await reads.messages_of(self.ground.store, [said.turn]))[0]
        label = label_of(text, said.files) if first.identity == edit.of else None
        event = Edited(said.turn, said.lane, label)
        await self.ground.take(Item(edit.identity, event, rows=(row,)))
