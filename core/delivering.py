"""One delivery, from its first attempt until nothing more can be done for it.

A first send is marked *in flight* in a commit before the call: whoever finds that mark after a
crash knows that the message may be there. Edits need no mark, for doing them twice changes
nothing. What never reached the platform is tried again for as long as it takes. What may have
reached it is in doubt: it is repeated only while the platform tells repetitions apart, and after
that the platform is asked whether it is there; one that can do neither gets no second try.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

from core.attempt import Attempt, Outcome
from core.calls import Broke, Calls, Place
from core.channel import (
    ChatMoved,
    Forbidden,
    FormatRefused,
    MessageGone,
    NotSent,
    RateLimited,
    Refused,
    SendError,
    Uncertain,
)
from core.finding import FIND_AFTER, found, nonce_of, repeatable
from core.frames import Previews
from core.rates import Rank, Ticket
from core.signs import Signs
from core.store import reads, rows
from core.store.records import Delivery, DeliveryKind, DeliveryState, revised

log = logging.getLogger("laneway.outbox")

PAUSES = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)  # seconds between tries
REPEAT_AFTER = 1.0  # seconds after which an edit that a late frame may have undone is repeated
KNOWN = 4096  # messages remembered by what made them
OUR_FAULT = "a fault inside the gateway; its log says more"

Holding = Callable[[Ticket | None], None]  # told which ticket the delivery waits with


class Delivering:
    def __init__(self, calls: Calls, previews: Previews, signs: Signs) -> None:
        self._calls = calls
        self._store = calls.store
        self._clock = calls.clock
        self._previews = previews
        self._signs = signs
        self._made: OrderedDict[int, str] = OrderedDict()  # message ids by delivery
        self._instead: OrderedDict[tuple[str, str], str] = OrderedDict()  # of lost messages
        self._repeats: dict[tuple[str, str], int] = {}  # message → the delivery to show again
        self._in_flight: set[int] = set()  # deliveries with that mark
        self._landed = asyncio.Event()
        self._resting = False
        self._unwanted: set[int] = set()  # to be taken away again before they were sent

    async def carry_out(
        self, delivery: Delivery, rank: Callable[[], Rank], holding: Holding
    ) -> Outcome:
        """Try until it is sent, uncertain, failed or pointless."""
        attempt = self._begin(delivery, rank)
        if not await self._aim(attempt):
            return Outcome(DeliveryState.WITHDRAWN)
        while True:
            place = await self._calls.place(delivery.lane)
            if asks := self._asks(attempt, place):
                await self._clock.sleep(attempt.ask_at - self._clock.monotonic())
            ticket = await self._await_turn(attempt, place, holding)
            place = await self._calls.place(delivery.lane)  # the chat may have moved meanwhile
            if delivery.id in self._unwanted and attempt.doubt is None:
                self._unwanted.discard(delivery.id)
                place.gate.give_back(ticket)
                return Outcome(DeliveryState.WITHDRAWN)
            if self._resting:
                self.landed(delivery.id)
                await asyncio.Event().wait()  # until the process ends; it stays as it is stored
            if asks:
                outcome = await self._find(attempt, place)
                if outcome is None:
                    continue
                self._remember(attempt, outcome, place)
                return outcome
            if not await self._mark(attempt, place):
                await self._unmark(attempt)
                continue
            try:
                done = await self._calls.do(place.channel, attempt.action(place.address))
            except SendError as error:
                outcome = await self._after(attempt, place, error)
            else:
                outcome = Outcome(DeliveryState.SENT, done.message_id or attempt.target)
            if outcome is not None:
                self._remember(attempt, outcome, place)
                return outcome

    def withdraw(self, delivery: int) -> None:
        """Leave it unsent if it still waits: what it says is not true any more."""
        self._unwanted.add(delivery)

    async def rest(self) -> None:
        """Begin no further call; returns when what became of those under way is stored."""
        self._resting = True
        while self._in_flight:
            self._landed.clear()
            await self._landed.wait()

    def broken(self, delivery: Delivery) -> Outcome:
        """How a delivery ends that broke on our side: with the mark, it may be there."""
        self._unwanted.discard(delivery.id)
        doubtful = delivery.id in self._in_flight
        state = DeliveryState.UNCERTAIN if doubtful else DeliveryState.FAILED
        return Outcome(state, error=Refused(OUR_FAULT))

    def landed(self, delivery: int) -> None:
        """What became of a delivery is stored."""
        self._in_flight.discard(delivery)
        self._landed.set()

    def made(self, delivery: int, message_id: str) -> None:
        """Which message came of a delivery, for those that revise it."""
        self._made[delivery] = message_id
        if len(self._made) > KNOWN:
            self._made.popitem(last=False)

    # Before the call ----------------------------------------------------------------------

    def _begin(self, delivery: Delivery, rank: Callable[[], Rank]) -> Attempt:
        """A first try; or the next one of what an earlier process had in flight."""
        now = self._clock.monotonic()
        attempt = Attempt(delivery, rank, delivery.part, delivery.target, now)
        if delivery.state is DeliveryState.IN_FLIGHT and not delivery.target:
            attempt.began -= (self._clock.now() - delivery.created_at) / 1000
            attempt.in_flight, attempt.doubt = True, Uncertain("restart")
            attempt.ask_at = now + FIND_AFTER
            self._in_flight.add(delivery.id)
        return attempt

    async def _aim(self, attempt: Attempt) -> bool:
        """Find the message to edit, if there is one. False: there is nothing to change."""
        delivery = attempt.delivery
        if delivery.kind is DeliveryKind.ANSWER and delivery.seq == 0:
            await self._signs.hushed(delivery.lane)
            if delivery.turn is not None and attempt.doubt is None:
                closed = await self._previews.settle(delivery.turn)
                attempt.target = attempt.target or closed.message_id
                attempt.late, attempt.rows = closed.late, closed.rows
        named = revised(attempt.target)
        if named is not None:
            attempt.target = await self._message_of(named)
            if not attempt.target:
                log.info("delivery %d changes a message that never came to be", delivery.id)
                return False
        if attempt.target:
            key = (delivery.lane, attempt.target)
            while (newer := self._instead.get(key)) is not None:
                attempt.target, key = newer, (delivery.lane, newer)
            self._repeats.pop((delivery.lane, attempt.target), None)
        return True

    async def _message_of(self, delivery: int) -> str:
        known = self._made.get(delivery)
        if known is None:
            row = await reads.delivery(self._store, delivery)
            known = row.message_id if row else ""
        return known

    async def _await_turn(self, attempt: Attempt, place: Place, holding: Holding) -> Ticket:
        ticket = place.ask(attempt.rank())
        holding(ticket)
        try:
            await place.gate.granted(ticket)
        finally:
            holding(None)
        return ticket

    async def _mark(self, attempt: Attempt, place: Place) -> bool:
        """Commit what must be known before the call. False: a penalty came meanwhile."""
        written = [*attempt.rows]
        if attempt.anew and attempt.delivery.target and not attempt.in_flight:
            written.append(rows.delivery_target(attempt.delivery.id, ""))
        if not attempt.edits and not attempt.in_flight:
            written.append(rows.delivery_state(attempt.delivery.id, DeliveryState.IN_FLIGHT))
            attempt.in_flight = True
            self._in_flight.add(attempt.delivery.id)
        if not written:
            return True
        attempt.rows = ()
        await self._store.save(*written)  # waits while the disk fails
        return not place.held(attempt.rank())

    async def _unmark(self, attempt: Attempt) -> None:
        """It certainly was not sent, and will wait: a crash meanwhile leaves it to be sent."""
        if attempt.in_flight and attempt.doubt is None:
            attempt.in_flight = False
            pending = rows.delivery_state(attempt.delivery.id, DeliveryState.PENDING)
            await self._store.save(pending)
            self.landed(attempt.delivery.id)

    # After the call -----------------------------------------------------------------------

    async def _after(self, attempt: Attempt, place: Place, error: SendError) -> Outcome | None:
        """What an error means for this delivery; None: try again."""
        match error:
            case RateLimited():
                place.hold(error)
                await self._unmark(attempt)
            case NotSent():
                await self._unmark(attempt)
                await self._pause(attempt, error)
            case Broke():  # it would break again and again
                return self.broken(attempt.delivery)
            case Uncertain() if attempt.edits:
                await self._pause(attempt, error)
            case Uncertain():
                return await self._doubt(attempt, place, error)
            case FormatRefused() if not attempt.plain:
                attempt.without_markup()
                await self._unmark(attempt)
            case MessageGone() if attempt.edits:
                return await self._gone(attempt)
            case Refused() | FormatRefused() | Forbidden() if attempt.edits and not attempt.deletes:
                await self._leave(attempt)
            case ChatMoved(new_chat=new_chat) if not attempt.moved:
                attempt.moved = True
                await self._unmark(attempt)
                await self._calls.follow(place.address, new_chat)
                if attempt.edits:
                    return await self._gone(attempt)
            case _:
                return Outcome(DeliveryState.FAILED, error=error)
        return None

    async def _gone(self, attempt: Attempt) -> Outcome | None:
        """The message to edit is not there: what it should say is sent once as a new one."""
        if attempt.deletes:
            return Outcome(DeliveryState.SENT)
        if attempt.delivery.turn is not None:
            attempt.rows = tuple(self._previews.lost(attempt.delivery.turn, attempt.target))
        attempt.lost, attempt.target, attempt.anew, attempt.late = attempt.target, "", True, False
        return None

    async def _leave(self, attempt: Attempt) -> None:
        """The message cannot be changed: what it should say is sent once as a new one."""
        if attempt.delivery.turn is not None:
            left = await self._previews.stuck(attempt.delivery.turn, attempt.target)
            attempt.rows = tuple(left)
        attempt.lost, attempt.target, attempt.anew, attempt.late = attempt.target, "", True, False

    # What may be there --------------------------------------------------------------------

    async def _doubt(self, attempt: Attempt, place: Place, error: SendError) -> Outcome | None:
        """A send may have arrived. None: it is repeated, or the platform is asked."""
        attempt.doubt = error
        if self._repeatable(attempt, place):
            attempt.ask_at = self._clock.monotonic() + FIND_AFTER
            await self._pause(attempt, error)
        elif not place.channel.limits.finds_sends:
            return Outcome(DeliveryState.UNCERTAIN, error=error)
        else:
            pause = PAUSES[min(attempt.doubts, len(PAUSES) - 1)]
            attempt.doubts += 1
            attempt.ask_at = self._clock.monotonic() + max(FIND_AFTER, pause)
        return None

    def _repeatable(self, attempt: Attempt, place: Place) -> bool:
        return repeatable(place.channel.limits, self._clock.monotonic() - attempt.began)

    def _asks(self, attempt: Attempt, place: Place) -> bool:
        """Whether it has to be known that it is not there before it may be sent."""
        return attempt.doubt is not None and not self._repeatable(attempt, place)

    async def _find(self, attempt: Attempt, place: Place) -> Outcome | None:
        """Ask whether it is there. None: it is not, and may be sent; or nobody could tell yet."""
        delivery, doubt = attempt.delivery, attempt.doubt
        if not place.channel.limits.finds_sends:
            return Outcome(DeliveryState.UNCERTAIN, error=doubt)
        try:
            nonce = nonce_of(delivery.id, delivery.created_at)
            message_id = await found(self._calls, place, nonce, delivery.created_at)
        except RateLimited as limited:
            place.hold(limited)
        except ChatMoved as moved:
            if attempt.moved:
                return Outcome(DeliveryState.UNCERTAIN, error=doubt)
            attempt.moved = True
            await self._calls.follow(place.address, moved.new_chat)
        except SendError as error:
            if isinstance(error, Broke) or not isinstance(error, NotSent | Uncertain):
                return Outcome(DeliveryState.UNCERTAIN, error=error)
            await self._pause(attempt, error)
        else:
            if message_id:
                log.info("delivery %d had arrived", delivery.id)
                return Outcome(DeliveryState.SENT, message_id)
            attempt.doubt, attempt.began, attempt.tries = None, self._clock.monotonic(), 0
        return None

    async def _pause(self, attempt: Attempt, error: SendError) -> None:
        pause = PAUSES[min(attempt.tries, len(PAUSES) - 1)]
        attempt.tries += 1
        log.info("delivery %d waits %g s: %s", attempt.delivery.id, pause, error)
        await self._clock.sleep(pause)

    # Afterwards ---------------------------------------------------------------------------

    def _remember(self, attempt: Attempt, outcome: Outcome, place: Place) -> None:
        delivery = attempt.delivery
        self._unwanted.discard(delivery.id)
        self.made(delivery.id, outcome.message_id)
        if delivery.kind is DeliveryKind.ANSWER and delivery.seq == 0 and delivery.turn is not None:
            self._previews.forget(delivery.turn)
        if outcome.state is not DeliveryState.SENT:
            return
        if not attempt.edits:
            self._came(attempt, outcome.message_id)
        if attempt.late and attempt.edits:
            self._repeats[(delivery.lane, attempt.target)] = delivery.id
            self._calls.spawn(self._repeat(attempt, place), f"repeat of delivery {delivery.id}")

    def _came(self, attempt: Attempt, message_id: str) -> None:
        """A new message is there, maybe in the place of one that is lost.

        A chat that moved counts anew: the number may be one that was lost, and means this from now
        on. So what stands in another's place is never itself replaced by what is older.
        """
        delivery = attempt.delivery
        self._instead.pop((delivery.lane, message_id), None)
        if not attempt.lost or not delivery.target:  # of a preview nobody changes anything but us
            return
        named = revised(delivery.target)
        if named is not None:
            self.made(named, message_id)
        if attempt.lost != message_id:
            self._instead[(delivery.lane, attempt.lost)] = message_id
            if len(self._instead) > KNOWN:
                self._instead.popitem(last=False)

    async def _repeat(self, attempt: Attempt, place: Place) -> None:
        """A frame that was cut off may have landed after the answer: show the answer again."""
        key = (attempt.delivery.lane, attempt.target)
        await self._clock.sleep(REPEAT_AFTER)
        while self._repeats.get(key) == attempt.delivery.id:
            await place.gate.granted(place.ask(Rank.FINAL))
            if self._repeats.get(key) != attempt.delivery.id:
                return
            try:
                await self._calls.do(place.channel, attempt.action(place.address))
            except RateLimited as limited:
                place.hold(limited)
                continue
            except (NotSent, Uncertain) as error:
                if attempt.tries < len(PAUSES):
                    await self._pause(attempt, error)
                    continue
            except SendError as error:
                log.info("delivery %d was not shown again: %s", attempt.delivery.id, error)
            if self._repeats.get(key) == attempt.delivery.id:
                del self._repeats[key]
