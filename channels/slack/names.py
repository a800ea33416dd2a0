"""What people are called: Slack's events carry ids only.

Asked once an hour and never waited for long; an id is a name as well. It must not know messages.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from channels.slack.fields import Malformed, maybe, obj, string
from channels.slack.web import Web
from core.channel import RateLimited, SendError
from core.clock import Clock
from core.messages import clean

KEPT_FOR, TRIED_FOR = 3600.0, 300.0  # seconds; the second where Slack did not say
PATIENCE = 1.0  # seconds a message waits for names
_KEPT, _AT_ONCE = 5000, 8


class Names:
    def __init__(self, web: Web, clock: Clock) -> None:
        self._web = web
        self._clock = clock
        self._known: OrderedDict[str, tuple[str, float]] = OrderedDict()  # name, until

    def of(self, ident: str) -> str:
        """The name; empty while it is not known."""
        return self._known.get(ident, ("", 0.0))[0]

    async def learn(self, idents: Iterable[str]) -> None:
        """Ask for those that are not known, at most for a moment."""
        now = self._clock.monotonic()
        wanted = [
            ident
            for ident in dict.fromkeys(idents)
            if ident[:1] in ("U", "W") and self._known.get(ident, ("", 0.0))[1] <= now
        ][:_AT_ONCE]
        if not wanted:
            return
        for ident in wanted:  # also if the time is not enough: the next message does not wait
            self._keep(ident, self.of(ident), now + TRIED_FOR)
        try:
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
                for ident in wanted:
                    group.create_task(self._ask(ident), name=f"slack name of {ident}")
        except TimeoutError:
            return

    async def _ask(self, ident: str) -> None:
        try:
            user = obj(await self._web.call("users.info", user=ident), "user")
            profile = maybe(user, "profile") or {}
            names = (
                string(profile, "display_name"),
                string(profile, "real_name"),
                string(user, "real_name"),
                string(user, "name"),
            )
        except RateLimited as limited:
            self._keep(ident, self.of(ident), self._clock.monotonic() + limited.retry_after)
            return
        except (SendError, Malformed):
            return
        name = clean(next(filter(None, names), ""))
        self._keep(ident, " ".join(name.split()), self._clock.monotonic() + KEPT_FOR)

    def _keep(self, ident: str, name: str, until: float) -> None:
        self._known[ident] = (name, until)
        self._known.move_to_end(ident)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
