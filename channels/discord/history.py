"""What was said while nobody listened: Discord does not send it again, so it is read.

Reads after each thread's mark, and in every place since the last thing that was heard. It must not
know who may talk, nor what is done with the messages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from channels.discord.content import id_at, snowflake
from channels.discord.errors import ApiError, translate
from channels.discord.events import Reading, read_message, unreadable
from channels.discord.places import OPENS_THREADS, POSTS, Kind, Spot, spot_of
from channels.discord.rest import Rest
from channels.fields import Json, Malformed, objects
from core.channel import Marks
from core.messages import Address, Incoming, Message, Missed

DAY = 24 * 3600 * 1000
OVERLAP = 10_000  # ms: what is told twice is told apart by its identity
MOST = 200  # messages a thread
PAGE, PAGES = 100, 10
LABELS, LABEL_MOST = 10, 60


@dataclass(frozen=True, slots=True)
class Stretch:
    """A channel from an id on. ``whole``: every message there is for us, mention or not."""

    spot: Spot
    after: int
    whole: bool


class History:
    """One reading, from where the marks stand to now."""

    def __init__(self, rest: Rest, reading: Reading, marks: Marks) -> None:
        self._rest = rest
        self._reading = reading
        self._places = reading.places
        self._marks = marks
        self._start = id_at(marks.since - OVERLAP)
        self._now = rest.now()

    async def missed(self, directs: Iterable[str], people: Iterable[str]) -> list[Incoming]:
        """Everything, in order. Raises SendError when Discord cannot be asked."""
        found: list[Incoming] = []
        messages: list[Message] = []
        for stretch in await self._stretches(directs, people):
            fresh, others = self._sorted_out(stretch, await self._read(stretch))
            messages += fresh
            found += others
        messages.sort(key=lambda one: int(one.message_id))
        return [*found, *messages]

    # --- where to look ---

    async def _stretches(self, directs: Iterable[str], people: Iterable[str]) -> list[Stretch]:
        found: dict[str, Stretch] = {}
        for address, mark in self._marks.threads.items():
            if mark.message_id.isdecimal():
                spot = self._marked(address)
                found[spot.id] = Stretch(spot, int(mark.message_id), True)
        for channel in [*directs, *await self._directs_of(people)]:
            spot = Spot(channel, Kind.DIRECT)
            found.setdefault(channel, Stretch(spot, self._start, True))
        spots = [spot for spot in [await self._spot(one) for one in self._chats()] if spot]
        listed = {spot.id for spot in spots}
        for spot in spots:
            if spot.direct or spot.kind not in POSTS:
                found.setdefault(spot.id, Stretch(spot, self._start, spot.direct))
        quiet: set[str] = set()
        for thread in await self._threads(spots):
            if thread.parent not in listed:
                continue
            known = found.setdefault(thread.id, Stretch(thread, self._start, False))
            if 0 <= thread.last <= known.after:
                quiet.add(thread.id)
        return [one for one in found.values() if one.spot.id not in quiet]

    def _marked(self, address: Address) -> Spot:
        """A thread or direct chat in which we were; what it is shows in its address."""
        if not address.thread:
            return Spot(address.chat, Kind.DIRECT)
        known = self._places.get(address.thread)
        if known is not None:
            return known
        parent = self._places.get(address.chat)
        guild = parent.guild if parent is not None else ""
        return Spot(address.thread, Kind.THREAD, guild, address.chat)

    def _chats(self) -> list[str]:
        chats = {place.rpartition(":")[2] for place in self._marks.places}
        return sorted(chat for chat in chats if chat.isdecimal())

    async def _spot(self, channel: str) -> Spot | None:
        known = self._places.get(channel)
        if known is not None:
            return known
        answer = await self._ask(lambda: self._rest.get_channel(channel))
        try:
            spot = spot_of(answer) if isinstance(answer, dict) else None
        except Malformed:
            return None
        if spot is not None and not spot.direct:
            self._places.put(spot)
        return spot

    async def _directs_of(self, people: Iterable[str]) -> list[str]:
        found = []
        for person in people:
            answer = await self._ask(partial(self._rest.start_private_message, person))
            if isinstance(answer, dict) and isinstance(answer.get("id"), str):
                found.append(answer["id"])
        return found

    async def _threads(self, places: list[Spot]) -> list[Spot]:
        """Threads that are open now, and those that were closed meanwhile."""
        found: list[Spot] = []
        for guild in sorted({spot.guild for spot in places if spot.guild}):
            answer = await self._ask(partial(self._rest.get_active_threads, guild))
            found += self._listed(answer, guild)
        for spot in places:
            if spot.kind in OPENS_THREADS or spot.kind in POSTS:
                answer = await self._ask(partial(self._rest.get_public_archived_threads, spot.id))
                found += [s for s in self._listed(answer, spot.guild) if s.last > self._start]
        return found

    def _listed(self, answer: object, guild: str) -> list[Spot]:
        found: list[Spot] = []
        if not isinstance(answer, dict):
            return found
        try:
            threads = objects(answer, "threads")
        except Malformed:
            return found
        for one in threads:
            try:
                spot = spot_of(one, guild)
            except Malformed:
                continue
            if spot.is_thread:
                self._places.put(spot)
                found.append(spot)
        return found

    async def _ask(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """What Discord refuses to show holds nothing for us."""
        try:
            return await self._rest.patient(call)
        except ApiError as error:
            if error.status >= 500:
                raise translate(error) from None
            return None

    # --- what stands there ---

    async def _read(self, stretch: Stretch) -> list[Json]:
        """The messages after an id, oldest first; of very many the newest."""
        channel = stretch.spot.id
        first = await self._page(channel, after=stretch.after)
        if len(first) < PAGE:
            return first[::-1]
        found: list[Json] = []
        before: str | None = None
        for _ in range(PAGES):
            page = await self._page(channel, before=before)
            fresh = [one for one in page if int(snowflake(one, "id")) > stretch.after]
            found += fresh
            if len(fresh) < len(page) or len(page) < PAGE:
                break
            before = snowflake(page[-1], "id")
        return found[::-1]

    async def _page(self, channel: str, **where: Any) -> list[Json]:
        answer = await self._ask(lambda: self._rest.logs_from(channel, PAGE, **where))
        found: list[Json] = []
        for one in answer if isinstance(answer, list) else ():
            if isinstance(one, dict) and str(one.get("id", "")).isdecimal():
                found.append(one)
        return sorted(found, key=lambda one: int(str(one["id"])), reverse=True)

    def _sorted_out(
        self, stretch: Stretch, raw: list[Json]
    ) -> tuple[list[Message], list[Incoming]]:
        """Messages to run; beside them what cannot be read, and what is too old or too much."""
        others: list[Incoming] = []
        ours: list[Message] = []
        begun = stretch.whole
        for one in raw:
            try:
                message = read_message(one, stretch.spot, self._reading)
            except Malformed as error:
                others.append(unreadable("history", one, error))
                continue
            if message is None or self._known(message):
                continue
            if begun or message.addressed:
                ours.append(message)
                begun = begun or stretch.spot.is_thread
        youngest = max(self._now - DAY, self._marks.runs_from)
        fresh = [one for one in ours if one.at >= youngest][-MOST:]
        kept = {one.message_id for one in fresh}
        if old := [one for one in ours if one.message_id not in kept and not one.from_bot]:
            others.append(self._left_out(stretch, old))
        return fresh, others

    def _known(self, message: Message) -> bool:
        mark = self._marks.threads.get(message.address)
        known = mark is not None and mark.message_id.isdecimal()
        return mark is not None and known and int(mark.message_id) >= int(message.message_id)

    @staticmethod
    def _left_out(stretch: Stretch, old: list[Message]) -> Missed:
        spot = stretch.spot
        thread = spot.id if spot.is_thread else ""
        return Missed(
            identity=f"discord:missed:{spot.id}:{old[-1].message_id}",
            address=Address("discord", spot.parent or spot.id, thread),
            direct=spot.direct,
            count=len(old),
            oldest=old[0].at,
            newest=old[-1].at,
            message_id=old[-1].message_id,
            labels=tuple(_label(one) for one in old[:LABELS]),
        )


def _label(message: Message) -> str:
    words = " ".join(message.text.split())
    return words if len(words) <= LABEL_MOST else words[: LABEL_MOST - 1] + "…"
