"""Who is not let in: strangers, places that are not on the list, bots that talk too much.

What they tried leaves a line in the log and nothing else; only where the platform itself wants an
answer do they get one, in private and without a word of what is going on here. It must not know
what people who are let in may do.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from core import addressing, wording
from core.addressing import Spoken
from core.ground import Ground
from core.messages import Message, Part
from core.people import Allowance, Knocks

log = logging.getLogger("laneway.intake")


@dataclass(slots=True)
class Door:
    ground: Ground
    _knocks: Knocks = field(default_factory=Knocks)
    _bots: Allowance = field(default_factory=Allowance)

    def stranger(self, message: Message, spoken: Spoken | None) -> bool:
        """A message of somebody without a role; whether they ask, as they may, who they are."""
        if not message.direct and self.ground.people.listed(message.address):
            bare = self.ground.limits(message.address.channel).bare_commands
            now = self.ground.clock.now()
            if not addressing.addressed(message, None, spoken, bare, now):
                return False  # people who talk to each other knock at no door
        self.knock(message.sender, message.address.place)
        asks = spoken is not None and spoken.name in ("whoami", "start")
        if asks and message.direct and not message.from_bot:
            return True
        self.say(message, wording.STRANGER_PRESS)
        return False

    def unlisted(self, message: Message) -> None:
        """A message of somebody we know, in a place where nobody is answered."""
        self.knock(message.sender, message.address.place)
        self.say(message, wording.UNLISTED_PRESS)

    def knock(self, sender: str, place: str) -> None:
        for line in self._knocks.knock(sender, place, self.ground.clock.now()):
            log.warning("%s", line)

    def bot_may(self, message: Message, spoken: Spoken | None) -> bool:
        """Bots are answered so many times, and never give commands."""
        if spoken is not None:
            return False
        house = self.ground.house
        allowed, first = self._bots.take(
            message.sender, self.ground.clock.monotonic(), house.bot_turns, house.bot_seconds
        )
        if first:
            log.warning(
                "bot %s wrote more than %d messages in %g s; the rest is not answered",
                message.sender,
                house.bot_turns,
                house.bot_seconds,
            )
        return allowed

    def say(self, message: Message, text: str) -> None:
        """Answer the platform, if this came the way of a press; nobody else sees it."""
        if message.press:
            self.ground.says.answer_press(message.address.channel, message.press, text)

    def show(self, message: Message, parts: tuple[Part, ...]) -> None:
        """The same with what is rendered already."""
        channel = message.address.channel
        self.ground.says.answer_press(channel, message.press, "", parts=parts)
