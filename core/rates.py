"""How often a platform may be called: one bucket for its token, one for each chat, and penalties.

Pure: time is handed in (seconds that never go back). It knows no platform, no message, no task.
A chat here is whatever has a rate of its own, which on some platforms is a single thread.
Whoever wants to call asks for a ticket; ``grants`` says whose turn it is. Equal ranks go in the
order of asking, and as every lane holds one ticket at a time, its lanes share a chat fairly.
Thousands may wait, and most of them for the same chat: nothing here walks past all of them.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from itertools import count

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


ReadyAt = Callable[[Ticket], float]  # when its chat may be called; may be now or past


class _Line:
    """The tickets of one rank: by chat in the order of asking, and which chat is next.

    Each chat stands in one of two heaps: *due*, by its first ticket, or *later*, by a time before
    which it cannot be ready. Both are looked at again when they come first, as what makes a chat
    wait longer is not told; what makes it ready earlier is. An entry that is not the chat's present
    place is passed over.
    """

    def __init__(self) -> None:
        self._chats: dict[str, OrderedDict[Ticket, int]] = {}
        self._places: dict[str, tuple[float, bool]] = {}  # key in its heap, and whether it is due
        self._due: list[tuple[float, str]] = []
        self._later: list[tuple[float, str]] = []

    def add(self, ticket: Ticket, number: int) -> None:
        tickets = self._chats.setdefault(ticket.chat, OrderedDict())
        tickets[ticket] = number
        if len(tickets) == 1:
            self.look_again(ticket.chat)

    def remove(self, ticket: Ticket) -> bool:
        """Whether it waited here."""
        tickets = self._chats.get(ticket.chat)
        if tickets is None or ticket not in tickets:
            return False
        was_first = next(iter(tickets)) is ticket
        del tickets[ticket]
        if not tickets:
            del self._chats[ticket.chat], self._places[ticket.chat]
        elif was_first:
            self.look_again(ticket.chat)
        return True

    def look_again(self, chat: str) -> None:
        """This chat may be ready earlier than was thought, or with another ticket."""
        if chat in self._chats:
            self._place(chat, -math.inf, due=False)

    def first(self, now: float, ready_at: ReadyAt) -> Ticket | None:
        """Of the chats that are ready, the ticket that was asked for first."""
        while self._later and self._later[0][0] <= now:
            self._look(heapq.heappop(self._later), now, ready_at, due=False)
        while self._due:
            number, chat = self._due[0]
            if self._places.get(chat) == (number, True):
                ticket = self._head(chat)
                if ready_at(ticket) <= now:
                    return ticket
            self._look(heapq.heappop(self._due), now, ready_at, due=True)
        return None

    def next_at(self, now: float, ready_at: ReadyAt) -> float | None:
        """When a chat is ready; None while nobody waits."""
        if self.first(now, ready_at) is not None:
            return now
        while self._later:
            at, chat = self._later[0]
            if self._places.get(chat) == (at, False):
                ready = ready_at(self._head(chat))
                if ready <= at + _EPSILON:
                    return ready
            self._look(heapq.heappop(self._later), now, ready_at, due=False)
        return None

    def _look(self, entry: tuple[float, str], now: float, ready_at: ReadyAt, *, due: bool) -> None:
        """Give the chat of an entry that was taken out its place anew."""
        key, chat = entry
        if self._places.get(chat) != (key, due):
            return
        ready = ready_at(self._head(chat))
        if ready <= now:
            self._place(chat, next(iter(self._chats[chat].values())), due=True)
        else:
            self._place(chat, ready, due=False)

    def _place(self, chat: str, key: float, *, due: bool) -> None:
        self._places[chat] = (key, due)
        heapq.heappush(self._due if due else self._later, (key, chat))

    def _head(self, chat: str) -> Ticket:
        return next(iter(self._chats[chat]))


class Rates:
    """Everything one token of one platform may do."""

    def __init__(
        self,
        total_rate: float,
        chat_rate: float,
        group_rate: float,
        group_burst: float = GROUP_BURST,
    ) -> None:
        self._total = Bucket(total_rate, max(1.0, total_rate / 2))
        self._chat_rate = chat_rate
        self._group_rate = group_rate
        self._group_burst = group_burst
        self._chats: dict[str, Bucket] = {}
        self._sweep_at = KEPT
        self._lines = {rank: _Line() for rank in Rank}
        self._numbers = count()

    def ask(self, chat: str, direct: bool, rank: Rank) -> Ticket:
        ticket = Ticket(chat, direct, rank)
        self._lines[rank].add(ticket, next(self._numbers))
        return ticket

    def withdraw(self, ticket: Ticket) -> None:
        """Not wanted any more, and not granted yet."""
        self._lines[ticket.rank].remove(ticket)

    def give_back(self, ticket: Ticket, now: float) -> None:
        """It was granted, and no call was made with it."""
        self._bucket(ticket.chat, ticket.direct, now).give_back(now)
        self._total.give_back(now)
        for line in self._lines.values():
            line.look_again(ticket.chat)

    def hurry(self, ticket: Ticket, rank: Rank) -> None:
        """Something more urgent stands behind this ticket: it goes with that one's rank."""
        if rank < ticket.rank and self._lines[ticket.rank].remove(ticket):
            ticket.rank = rank
            self._lines[rank].add(ticket, next(self._numbers))

    def grants(self, now: float) -> list[Ticket]:
        """Those whose turn it is; their calls count as made."""
        granted: list[Ticket] = []
        for rank, line in self._lines.items():
            ready_at = self._ready_at(rank, now)
            while self._total.ready_at(rank, now) <= now and (ticket := line.first(now, ready_at)):
                self._total.take(now)
                self._bucket(ticket.chat, ticket.direct, now).take(now)
                line.remove(ticket)
                granted.append(ticket)
        return granted

    def next_at(self, now: float) -> float | None:
        """When ``grants`` is worth asking again; None while nobody waits."""
        best: float | None = None
        for rank, line in self._lines.items():
            ready = line.next_at(now, self._ready_at(rank, now))
            if ready is not None:
                at = max(ready, self._total.ready_at(rank, now))
                best = at if best is None else min(best, at)
        return best

    def _ready_at(self, rank: Rank, now: float) -> ReadyAt:
        def ready_at(ticket: Ticket) -> float:
            return self._bucket(ticket.chat, ticket.direct, now).ready_at(rank, now)

        return ready_at

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
                bucket = Bucket(self._group_rate, self._group_burst)
            self._chats[chat] = bucket
        return bucket

    def _sweep(self, now: float) -> None:
        """Chats at rest cost nothing; so a hundred thousand of them do not either."""
        self._chats = {chat: b for chat, b in self._chats.items() if not b.at_rest(now)}
        self._sweep_at = max(KEPT, 2 * len(self._chats))
