"""What was said while nobody listened, read from Slack's history once the connection is there.

Slack delivers again only what it could not deliver in the last minutes. What cannot be read now is
tried again until it can: were anything newer handed on before, nobody would look for it any more.
It must not know who may talk; what it hands on may be known already.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from channels.slack.events import Me, Reading, address_of, is_direct, message
from channels.slack.fields import (
    Json,
    Malformed,
    as_object,
    maybe,
    maybe_stamp,
    objects,
    order,
    stamp_of,
    string,
)
from channels.slack.web import Web
from core.channel import Forbidden, Marks, RateLimited, Refused, SendError, ThreadGone
from core.clock import Clock
from core.messages import Address, Incoming, Message, Missed

log = logging.getLogger(__name__)

MOST = 200  # messages of a thread that are run
DAY = 24 * 3600 * 1000  # ms; what is older is told, not run
PAGE, PAGES = 200, 5
OVERLAP = 60_000  # ms read once more: neither order nor clocks are exact
SHORT = 240_000  # ms; what is said in a shorter pause, Slack delivers again by itself
TRIES = 4
LONGEST = 600.0  # seconds a penalty is waited for at once
LABELS, LABEL_MOST = 10, 60
_PAUSE = 2.0
READ_AGAIN = (1.0, 5.0, 15.0, 60.0)  # seconds after something could not be read
LIST_PAGES = 20
_DIRECTS = "the list of direct chats"  # stands among the places until it is read

Store = Callable[[Sequence[Incoming]], Awaitable[None]]


@dataclass(slots=True)
class Backfill:
    """One reading. ``holds`` says what is not read yet; ``troubled`` hears of each failure.

    ``people``: ids of those whose direct chats are looked at, whether or not they wrote before.
    """

    web: Web
    me: Me
    reading: Callable[[], Reading]
    store: Store
    clock: Clock
    learn: Callable[[list[str]], Awaitable[None]]
    changed: Callable[[], None] = lambda: None
    troubled: Callable[[SendError], None] = lambda _: None
    people: frozenset[str] = frozenset()
    _runs_from: int = 0  # ms; what is older is told, not run
    _threads: dict[Address, str] = field(default_factory=dict)  # and the newest known message
    _places: dict[str, None] = field(default_factory=dict)
    _known: set[Address] = field(default_factory=set)
    _asked: dict[Address, None] = field(default_factory=dict)
    _failed: set[Address | str] = field(default_factory=set)
    _directs: set[str] = field(default_factory=set)  # in which somebody was heard before
    _listed: set[str] = field(default_factory=set)  # the others

    def holds(self, address: Address) -> bool:
        """Whether it is still to be read. What somebody asks for is read next."""
        if self._before(address) is None:
            return False
        self._asked[address] = None
        return True

    def _before(self, address: Address) -> Address | str | None:
        """What has to be read before anything newer from there is handed on."""
        if address in self._threads:
            return address
        if address in self._known:
            return None
        if address.chat in self._places:
            return address.chat
        return _DIRECTS if is_direct(address.chat) and _DIRECTS in self._places else None

    def plan(self, marks: Marks) -> None:
        """What is going to be read, newest threads first; nothing if we never listened before."""
        self._known = set(marks.threads)
        self._runs_from = marks.runs_from
        if marks.since:
            newest_first = sorted(marks.threads.items(), key=lambda one: one[1].at, reverse=True)
            self._threads = {address: mark.message_id for address, mark in newest_first}
            places = {place.removeprefix("slack:") for place in marks.places}
            directs = {address.chat for address in marks.threads if is_direct(address.chat)}
            self._directs = directs | {chat for chat in places if is_direct(chat)}
            listing = [_DIRECTS] if self.people else []
            self._places = dict.fromkeys([*listing, *sorted(places | directs)])

    async def run(self, marks: Marks, now: Callable[[], int]) -> None:
        """Read it all. ``now``: ms by Slack's clock. Raises no SendError."""
        rounds = 0
        while self._threads or self._places:
            what = self._next()
            if what is None:
                await self.clock.sleep(READ_AGAIN[min(rounds, len(READ_AGAIN) - 1)])
                rounds += 1
                self._failed.clear()
            elif await self._kindly(self._read(what, marks, now()), str(what)):
                match what:
                    case Address():
                        del self._threads[what]
                    case chat:
                        del self._places[chat]
                self.changed()
            else:
                self._failed.add(what)

    def _next(self) -> Address | str | None:
        """Somebody waits for those that were asked for. None: the others were all tried."""
        asked = (self._before(address) for address in self._asked)
        for what in chain(asked, self._threads, self._places):
            if what is not None and what not in self._failed:
                return what
        return None

    async def _read(self, what: Address | str, marks: Marks, now: int) -> None:
        match what:
            case Address():
                await self._thread(what, now)
            case chat if chat == _DIRECTS:
                await self._list_directs()
            case chat:
                await self._place(chat, marks, now)

    async def _kindly(self, work: Awaitable[None], what: str) -> bool:
        """One place that cannot be read keeps no other from it. False: it has to be tried again."""
        try:
            await work
        except (Forbidden, ThreadGone, Refused, Malformed) as error:
            log.debug("slack: %s cannot be read: %s", what, error)
        except SendError as error:
            log.warning("slack: what was missed in %s is not known yet: %s", what, error)
            self.troubled(error)
            return False
        return True

    async def _list_directs(self) -> None:
        """Somebody's first message has no mark to read after: their chats are asked for."""
        missing, cursor = set(self.people), ""
        for _ in range(LIST_PAGES):
            page = await self._patiently(
                "conversations.list", types="im", limit=PAGE, cursor=cursor or None
            )
            for one in objects(page, "channels"):
                chat, user = string(one, "id"), string(one, "user")
                if user in missing and is_direct(chat):
                    missing.discard(user)
                    if chat not in self._directs | self._listed:
                        self._listed.add(chat)
                        self._places[chat] = None
            cursor = string(maybe(page, "response_metadata") or {}, "next_cursor")
            if not (cursor and missing):
                break

    async def _thread(self, address: Address, now: int) -> None:
        """A thread, or a direct chat's main timeline, after its mark."""
        after = self._threads[address]
        if address.thread:
            found = await self._pages(
                "conversations.replies", channel=address.chat, ts=address.thread, oldest=after
            )
        else:
            found = await self._pages(
                "conversations.history",
                channel=address.chat,
                oldest=after,
                latest=stamp_of(now + OVERLAP),
            )
        fresh = [one for one in found if order(str(one.get("ts"))) > order(after)]
        said = await self._said(fresh, address.chat)
        await self._hand([one for one in said if one.address == address], now)

    async def _place(self, chat: str, marks: Marks, now: int) -> None:
        """What began there since; threads with a mark are read by themselves."""
        since = stamp_of(marks.since - (0 if chat in self._listed else OVERLAP))
        top = await self._pages(
            "conversations.history", channel=chat, oldest=since, latest=stamp_of(now + OVERLAP)
        )
        said = await self._said(top, chat)
        older: list[Json] = []
        if now - marks.since > SHORT:  # threads that were there already, and were not ours
            older = await self._pages("conversations.history", 1, channel=chat, latest=since)
        for root in (*older, *top):
            latest, ts = maybe_stamp(root, "latest_reply"), maybe_stamp(root, "ts")
            if not latest or address_of(chat, "", ts) in self._known:
                continue
            if order(latest) > order(since):
                replies = await self._pages(
                    "conversations.replies", channel=chat, ts=ts, oldest=since
                )
                said += await self._said([one for one in replies if one.get("ts") != ts], chat)
        by_thread: dict[Address, list[Message]] = {}
        for one in said:
            if one.address not in self._known:
                by_thread.setdefault(one.address, []).append(one)
        for thread in by_thread.values():
            if is_direct(chat) or any(one.addressed for one in thread):
                await self._hand(thread, now)

    async def _hand(self, said: list[Message], now: int) -> None:
        """Hand on what is young enough, and tell of the rest."""
        said = sorted(said, key=lambda one: order(one.message_id))
        young = [one for one in said if one.at > max(now - DAY, self._runs_from)][-MOST:]
        left = [one for one in said[: len(said) - len(young)] if not one.from_bot]
        batch: list[Incoming] = [*([_missed(self.me, left)] if left else []), *young]
        if batch:
            await self.store(batch)

    async def _said(self, found: Sequence[Json], chat: str) -> list[Message]:
        """What people wrote; what cannot be read is left out, as it came as an event as well."""
        await self.learn([str(one.get("user", "")) for one in found])
        reading, said = self.reading(), []
        for one in found:
            try:
                read = message(one, chat, reading)
            except Malformed as error:
                log.debug("slack: a message of the history cannot be read: %s", error)
                continue
            if read is not None:
                said.append(read)
        return said

    async def _pages(self, method: str, most: int = PAGES, **fields: object) -> list[Json]:
        found: dict[str, Json] = {}
        cursor = ""
        for _ in range(most):
            page = await self._patiently(method, **fields, limit=PAGE, cursor=cursor or None)
            try:
                for one in objects(page, "messages"):
                    found[maybe_stamp(one, "ts")] = one
                cursor = string(maybe(page, "response_metadata") or {}, "next_cursor")
            except Malformed as error:
                raise Refused(f"Slack's history has an odd shape: {error}") from None
            if not cursor:
                break
        found.pop("", None)
        return [found[ts] for ts in sorted(found, key=order)]

    async def _patiently(self, method: str, **fields: object) -> Json:
        """A call that is only read may be made again."""
        for left in reversed(range(TRIES)):
            await self.web.when_free(method, LONGEST)
            try:
                return as_object(await self.web.call(method, **fields), method)
            except RateLimited:
                if not left:
                    raise
            except (Forbidden, ThreadGone, Refused):
                raise
            except SendError:
                if not left:
                    raise
                await self.clock.sleep(_PAUSE)
        raise AssertionError("unreachable")


def _missed(me: Me, left: list[Message]) -> Missed:
    address = left[0].address
    return Missed(
        identity=f"slack:{me.team}:{address.chat}:{address.thread}:missed:{left[-1].message_id}",
        address=address,
        direct=left[0].direct,
        count=len(left),
        oldest=left[0].at,
        newest=left[-1].at,
        message_id=left[-1].message_id,
        labels=tuple(" ".join(one.text.split())[:LABEL_MOST] for one in left[:LABELS]),
    )
