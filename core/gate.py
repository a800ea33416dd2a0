"""The waiting side of the rates: who wants to call a platform stands here until it may.

One gate for each channel's token. It knows no message and no delivery, only tickets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from core.channel import ChannelLimits, RateLimited
from core.clock import Clock
from core.messages import Address
from core.rates import CHAT_BURST, GROUP_BURST, Rank, Rates, Ticket

Spawn = Callable[[Coroutine[None, None, None], str], "asyncio.Task[None]"]
_SHORTEST = 0.001  # seconds; a timer below this would only spin


class Gate:
    def __init__(self, limits: ChannelLimits, clock: Clock, spawn: Spawn) -> None:
        shared = limits.threads_share_rate
        group_burst = GROUP_BURST if shared else CHAT_BURST
        self._rates = Rates(limits.total_rate, limits.chat_rate, limits.group_rate, group_burst)
        self._shared = shared
        self._clock = clock
        self._spawn = spawn
        self._waiting: dict[Ticket, asyncio.Future[None]] = {}
        self._timer: asyncio.Task[None] | None = None
        self._timer_at = 0.0
        self.penalties = 0  # that the platform told, ever

    def ask(self, address: Address, direct: bool, rank: Rank) -> Ticket:
        return self._rates.ask(self._counted(address), direct, rank)

    async def granted(self, ticket: Ticket) -> None:
        """Returns when the call may be made; whoever is cancelled here has made none."""
        turn = self._waiting[ticket] = asyncio.get_running_loop().create_future()
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            self._waiting.pop(ticket, None)
            if turn.done() and not turn.cancelled():
                self.give_back(ticket)
            else:
                self._rates.withdraw(ticket)
            raise

    def hurry(self, ticket: Ticket, rank: Rank) -> None:
        """Something more urgent stands behind it."""
        self._rates.hurry(ticket, rank)
        self._grant()

    def give_back(self, ticket: Ticket) -> None:
        """Granted, but no call was made with it."""
        self._rates.give_back(ticket, self._clock.monotonic())
        self._grant()

    def spare(self, address: Address, direct: bool) -> bool:
        """Take a call that nobody misses, if there is one."""
        return self._rates.spare(self._counted(address), direct, self._clock.monotonic())

    def held(self, address: Address, direct: bool, rank: Rank) -> bool:
        """Whether a penalty forbids a call of this rank now."""
        return self._rates.held(self._counted(address), direct, rank, self._clock.monotonic())

    def held_everywhere(self) -> float:
        return self._rates.held_everywhere(self._clock.monotonic())

    def hold(
        self, address: Address, direct: bool, limited: RateLimited, *, cosmetic: bool = False
    ) -> None:
        """Keep to a penalty: of the token if the platform says so, else of what counts apart."""
        now = self._clock.monotonic()
        self.penalties += 1
        if limited.everywhere:
            self._rates.hold_everywhere(limited.retry_after, now)
        else:
            counted = self._counted(address)
            self._rates.hold(counted, direct, limited.retry_after, now, cosmetic=cosmetic)

    def _counted(self, address: Address) -> str:
        """What has a rate of its own: the chat with all its threads, or the thread alone."""
        return address.place if self._shared else str(address)

    def _grant(self) -> None:
        now = self._clock.monotonic()
        for ticket in self._rates.grants(now):
            turn = self._waiting.pop(ticket, None)
            if turn is None or turn.done():
                self._rates.give_back(ticket, now)
            else:
                turn.set_result(None)
        self._arm(now)

    def _arm(self, now: float) -> None:
        """One timer, for the earliest ticket; none while nobody waits."""
        at = self._rates.next_at(now)
        if self._timer is not None and (at is None or at < self._timer_at):
            self._timer.cancel()
            self._timer = None
        if at is not None and self._timer is None:
            self._timer_at = at
            self._timer = self._spawn(self._wait(max(_SHORTEST, at - now)), "rate gate")

    async def _wait(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._timer = None
        self._grant()
