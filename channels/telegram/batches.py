"""Updates to messages, the same way whether they were polled or posted.

One that cannot be read holds up no other: it is stored as such, and tried again beside. It must
not know how updates arrive, nor what a message starts.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from channels.telegram.content import Me
from channels.telegram.fields import Malformed
from channels.telegram.updates import read, unreadable, update_id
from core.channel import Intake
from core.clock import Clock
from core.messages import Incoming

log = logging.getLogger(__name__)

PARSE_PAUSES = (0.5, 1.0, 2.0)


class Batches:
    """Reads for one ``listen``."""

    def __init__(self, intake: Intake, clock: Clock) -> None:
        self._intake = intake
        self._clock = clock

    def read(self, me: Me, updates: Sequence[object]) -> tuple[list[Incoming], list[object]]:
        """What updates mean for us, and those among them that cannot be read."""
        batch: list[Incoming] = []
        failed: list[object] = []
        for update in updates:
            try:
                incoming = read(update, me, self._clock.now())
            except Malformed as error:
                failed.append(update)
                incoming = unreadable(update, me, error)
            if incoming is not None:
                batch.append(incoming)
        return batch, failed

    async def again(self, me: Me, failed: list[object]) -> None:
        """Try unreadable updates again, with growing pauses, beside all others."""
        for pause in PARSE_PAUSES:
            await self._clock.sleep(pause)
            left = self.read(me, failed)[1]
            if readable := [one for one in failed if one not in left]:
                await self._intake.accept(self.read(me, readable)[0])
            failed = left
        for update in failed:
            log.info("telegram: update %s still cannot be read; it stays aside", update_id(update))
