"""How often a platform may be called: one bucket for its token, one for each chat, and penalties.

Pure: time is handed in (seconds that never go back). It knows no platform, no message, no task.
Whoever wants to call asks for a ticket; ``grants`` says whose turn it is. Equal ranks go in the
order of asking, and as every lane holds one ticket at a time, its lanes share a chat fairly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

CHAT_BURST = 5.0  # a conversation is not delayed, only a flood is
GROUP_BURST = 10.0
KEPT = 512  # buckets looked after before the full ones are let go
_EPSILON = 1e-6  # of a call; so that rounding never makes a due ticket wait again


class Rank(IntEnum):
    """Who goes first. What is cosmetic leaves some calls for what is not."""

    URGENT = 0  # command answers, approval cards
    FINAL = 1
    NOTICE = 2
    PREVIEW = 3
    REACTION = 4

    @property
    def cosmetic(self) -> bool:
        return self >= Rank.PREVIEW


_SPARED = {Rank.PREVIEW: 0.4, Rank.REACTION: 0.6}  # share of the burst that is left to others


class Bucket:
    """``rate`` calls a second on average, ``burst`` at once."""

    __slots__ = ("_at", "_level", "burst", "held_cosmetic", "held_until", "rate")

    def __init__(self, rate: float, burst: float) -> None:
        self.rate = rate
        self.burst = burst
        self.held_until = -math.inf
        self.held_cosmetic = -math.inf
        self._level = burst
        self._at = -math.inf

    def ready_at(self, rank: Rank, now: float) -> float:
        """When a call of this rank may leave, if nobody else takes the room before; may be now."""
        wanted = min(self.burst, 1.0 + _SPARED.get(rank, 0.0) * self.burst)
        level = self._filled(now)
        at = now if level + _EPSILON >= wanted else now + (wanted - level) / self.rate
        return max(at, self.released_at(rank))

    def released_at(self, rank: Rank) -> float:
        """The end of the last penalty that concerns this rank."""
        if rank.cosmetic:
            return max(self.held_until, self.held_cosmetic)
        return self.held_until

    def take(self, now: float) -> None:
        self._level = self._filled(now) - 1.0
        self._at = now

    def give_back(self, now: float) -> None:
        self._level = min(self.burst, self._filled(now) + 1.0)
        self._at = now

    def at_rest(self, now: float) -> bool:
        """Nothing is remembered here that a new bucket would not know."""
        released = max(self.held_until, self.held_cosmetic) <= now
        return released and self._filled(now) + _EPSILON >= self.burst

    def _filled(self, now: float) -> float:
        if math.isinf(self.rate) or math.isinf(self._at):
            return self.burst
        return min(self.burst, self._level + (now - self._at) * self.rate)


@dataclass(eq=False, slots=True)
class Ticket:
    """A wish to call once. The holder withdraws it when the wish is gone."""

    chat: str
    direct: bool
    rank: Rank


class Rates:
    """Everything one token of one platform may do."""

    def __init__(self, total_rate: float, chat_rate: float, group_rate: float) -> None:
        self._total = Bucket(total_rate, max(1.0, total_rate / 2))
        self._chat_rate = chat_rate
        self._group_rate = group_rate
        self._chats: dict[str, Bucket] = {}
        self._sweep_at = KEPT
        self._waiting: dict[Rank, dict[Ticket, None]] = {rank: {} for rank in Rank}

    def ask(self, chat: str, direct: bool, rank: Rank) -> Ticket:
        ticket = Ticket(chat, direct, rank)
        self._waiting[rank][ticket] = None
        return ticket

    def withdraw(self, ticket: Ticket) -> None:
        """Not wanted any more, and not granted yet."""
        self._waiting[ticket.rank].pop(ticket, None)

    def give_back(self, ticket: Ticket, now: float) -> None:
        """It was granted, and no call was made with it."""
        self._bucket(ticket.chat, ticket.direct, now).give_back(now)
        self._total.give_back(now)

    def hurry(self, ticket: Ticket, rank: Rank) -> None:
        """Something more urgent stands behind this ticket: it goes with that one's rank."""
        if rank < ticket.rank and ticket in self._waiting[ticket.rank]:
            del self._waiting[ticket.rank][ticket]
            ticket.rank = rank
            self._waiting[rank][ticket] = None

    def grants(self, now: float) -> list[Ticket]:
        """Those whose turn it is; their calls count as made."""
        granted: list[Ticket] = []
        for rank, tickets in self._waiting.items():
            for ticket in tuple(tickets):
                if self._total.ready_at(rank, now) > now:
                    break
                bucket = self._bucket(ticket.chat, ticket.direct, now)
                if bucket.ready_at(rank, now) <= now:
                    self._total.take(now)
                    bucket.take(now)
                    del tickets[ticket]
                    granted.append(ticket)
        return granted

    def next_at(self, now: float) -> float | None:
        """When ``grants`` is worth asking again; None while nobody waits."""
        best: float | None = None
        for rank, tickets in self._waiting.items():
            total = self._total.ready_at(rank, now)
            for ticket in tickets:
                bucket = self._bucket(ticket.chat, ticket.direct, now)
                at = max(total, bucket.ready_at(rank, now))
                best = at if best is None else min(best, at)
                if at <= total:
                    break  # the others of this rank cannot go earlier
        return best

    def spare(self, chat: str, direct: bool, now: float) -> bool:
        """Take a call of the token, but not of the chat, if nothing at all stands against it."""
        if self.held(chat, direct, Rank.REACTION, now):
            return False
        if self._total.ready_at(Rank.REACTION, now) > now:
            return False
        self._total.take(now)
        return True

    def held(self, chat: str, direct: bool, rank: Rank, now: float) -> bool:
        """Whether a penalty forbids a call of this rank."""
        bucket = self._bucket(chat, direct, now)
        return max(self._total.released_at(rank), bucket.released_at(rank)) > now

    def held_everywhere(self, now: float) -> float:
        """Seconds that the token's own penalty still lasts."""
        return max(0.0, self._total.held_until - now)

    def hold(
        self, chat: str, direct: bool, seconds: float, now: float, *, cosmetic: bool = False
    ) -> None:
        """A penalty of one chat. ``cosmetic``: it was earned by typing, and holds only the like."""
        bucket = self._bucket(chat, direct, now)
        until = now + seconds
        if cosmetic:
            bucket.held_cosmetic = max(bucket.held_cosmetic, until)
        else:
            bucket.held_until = max(bucket.held_until, until)

    def hold_everywhere(self, seconds: float, now: float) -> None:
        """A penalty of the token itself."""
        self._total.held_until = max(self._total.held_until, now + seconds)

    def _bucket(self, chat: str, direct: bool, now: float) -> Bucket:
        bucket = self._chats.get(chat)
        if bucket is None:
            if len(self._chats) >= self._sweep_at:
                self._sweep(now)
            if direct:
                bucket = Bucket(self._chat_rate, CHAT_BURST)
            else:
                bucket = Bucket(self._group_rate, GROUP_BURST)
            self._chats[chat] = bucket
        return bucket

    def _sweep(self, now: float) -> None:
        """Chats at rest cost nothing; so a hundred thousand of them do not either."""
        self._chats = {chat: b for chat, b in self._chats.items() if not b.at_rest(now)}
        self._sweep_at = max(KEPT, 2 * len(self._chats))
