"""Small signs beside the messages: typing, reactions, titles, what a button's presser sees.

None of them is stored, and none may delay a message: each has a path of its own, is dropped when
the platform wants quiet, and is never tried for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from core.calls import Calls, Place, Unreachable
from core.channel import (
    AnswerPress,
    ChatMoved,
    NotSent,
    RateLimited,
    React,
    Retitle,
    SendError,
    Typing,
)
from core.messages import Part, Receipt
from core.rates import Rank

log = logging.getLogger("laneway.outbox")

TYPING_TIME = 5.0  # seconds a platform shows it; a call that takes longer is of no use
HUSH_TIME = 0.2  # seconds an answer waits for a typing call to end
PRESS_TIME = 12.0  # seconds after which platforms take no answer to a press
PRESS_PAUSE = 0.5
REACTION_AFTER = 0.5  # seconds: what is answered at once needs no sign that it was received
REACTIONS_WAITING = 500
REACTIONS_KEPT = 2000
TITLE_TRIES = 3


class Signs:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._clock = calls.clock
        self._typing: dict[str, asyncio.Task[None]] = {}
        self._wanted: dict[tuple[str, str], Receipt] = {}
        self._reacted: OrderedDict[tuple[str, str], Receipt] = OrderedDict()
        self._titles: dict[str, str] = {}

    # Typing -------------------------------------------------------------------------------

    def typing(self, lane: str) -> None:
        if self._calls.group is None or lane in self._typing:
            return
        task = self._typing[lane] = self._calls.spawn(self._type(lane), f"typing in {lane}")
        task.add_done_callback(lambda _: self._typing.pop(lane, None))

    def hush(self, lane: str) -> None:
        """No typing sign may come after this."""
        if task := self._typing.get(lane):
            task.cancel()

    async def hushed(self, lane: str) -> None:
        """As ``hush``, and wait a moment for a call that is under way."""
        if task := self._typing.get(lane):
            task.cancel()
            await self._calls.finished(task, HUSH_TIME)

    async def _type(self, lane: str) -> None:
        async def work(place: Place) -> None:
            if place.channel.limits.typing_every and place.gate.spare(place.address, place.direct):
                await self._calls.do(place.channel, Typing(place.address))

        await self._briefly(TYPING_TIME, self._kindly(lane, "typing", work))

    # Reactions ----------------------------------------------------------------------------

    def react(self, lane: str, message_id: str, receipt: Receipt) -> None:
        """The newest receipt of a message wins; one that was never shown needs no taking back."""
        if self._calls.group is None or not message_id:
            return
        key = (lane, message_id)
        if key in self._wanted:
            self._wanted[key] = receipt
        elif self._reacted.get(key) is not receipt and len(self._wanted) < REACTIONS_WAITING:
            self._wanted[key] = receipt
            if receipt is not Receipt.NONE:  # else an earlier process may have left one there
                self._reacted.setdefault(key, Receipt.NONE)
            self._calls.spawn(self._react(lane, message_id), f"reaction in {lane}")

    async def _react(self, lane: str, message_id: str) -> None:
        key = (lane, message_id)

        async def work(place: Place) -> None:
            known = place.channel.limits.receipts
            while known and self._wanted[key] is not self._reacted.get(key):
                ticket = place.ask(Rank.REACTION)
                await place.gate.granted(ticket)
                place = await self._calls.place(lane)  # the chat may have moved meanwhile
                wanted = self._wanted[key]
                if wanted is self._reacted.get(key) or wanted not in {*known, Receipt.NONE}:
                    place.gate.give_back(ticket)
                    return
                await self._calls.do(place.channel, React(place.address, message_id, wanted))
                self._reacted[key] = wanted
                self._reacted.move_to_end(key)
                if len(self._reacted) > REACTIONS_KEPT:
                    self._reacted.popitem(last=False)

        try:
            await self._clock.sleep(REACTION_AFTER)
            await self._kindly(lane, "reaction", work)
        finally:
            del self._wanted[key]

    # Titles -------------------------------------------------------------------------------

    def retitle(self, lane: str, title: str) -> None:
        """The newest title wins; platforms allow few, so it waits as long as it must."""
        if self._calls.group is None:
            return
        waiting = lane in self._titles
        self._titles[lane] = title
        if not waiting:
            self._calls.spawn(self._retitle(lane), f"title of {lane}")

    async def _retitle(self, lane: str) -> None:
        async def work(place: Place) -> None:
            for _ in range(TITLE_TRIES if place.channel.limits.titles else 0):
                await place.gate.granted(place.ask(Rank.REACTION))
                place = await self._calls.place(lane)
                title = self._titles[lane]
                try:
                    await self._calls.do(place.channel, Retitle(place.address, title))
                except RateLimited as limited:  # of renaming alone; messages go on
                    if limited.everywhere:
                        place.hold(limited)
                    await self._clock.sleep(limited.retry_after)
                else:
                    if self._titles[lane] == title:
                        return

        try:
            await self._kindly(lane, "title", work)
        finally:
            del self._titles[lane]

    # Presses ------------------------------------------------------------------------------

    def answer_press(
        self, channel: str, press: str, text: str, alert: bool, parts: tuple[Part, ...] = ()
    ) -> None:
        if self._calls.group is not None:
            action = AnswerPress(press, text, alert, parts)
            self._calls.spawn(self._answer(channel, action), "answer to a press")

    async def _answer(self, name: str, action: AnswerPress) -> None:
        """Tried while the platform still takes it."""
        found = self._calls.channel(name)
        if found is None:
            return
        channel, gate = found
        until = self._clock.monotonic() + PRESS_TIME
        while True:
            try:
                await self._clock.sleep(gate.held_everywhere())
                if self._clock.monotonic() <= until:
                    await self._briefly(PRESS_TIME, self._calls.do(channel, action))
                return
            except RateLimited as limited:
                pause = limited.retry_after
            except NotSent:
                pause = PRESS_PAUSE
            except SendError as error:
                log.info("a press on %s could not be answered: %s", name, error)
                return
            if self._clock.monotonic() + pause > until:
                return
            await self._clock.sleep(pause)

    # What they share ----------------------------------------------------------------------

    async def _kindly(self, lane: str, what: str, work: Callable[[Place], Awaitable[None]]) -> None:
        """Do it at the lane's present place; a failure is a line in the log."""
        try:
            place = await self._calls.place(lane)
        except Unreachable as reason:
            log.debug("no %s: %s", what, reason)
            return
        try:
            await work(place)
        except RateLimited as limited:
            place.hold(limited, cosmetic=True)
        except ChatMoved as moved:
            await self._calls.follow(place.address, moved.new_chat)
        except SendError as error:
            log.debug("%s in %s: %s", what, lane, error)

    async def _briefly(self, seconds: float, work: Awaitable[object]) -> None:
        """Cancel this very task when the work takes longer."""
        task = asyncio.current_task()
        assert task is not None, "signs are given by tasks of their own"

        async def give_up() -> None:
            await self._clock.sleep(seconds)
            task.cancel()

        timer = self._calls.spawn(give_up(), f"time limit of {task.get_name()}")
        try:
            await work
        finally:
            timer.cancel()
