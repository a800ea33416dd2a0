"""What a running agent may do in its own thread, while its turn runs and only then.

Each call acts in the turn's lane and with the rights of the person who began it. A token belongs
to one session of an agent; between its turns it is known and refused. This file owns which turns
have their tools; it must not know how agents reach it, nor platforms.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.attending import begun
from core.channel import Channel
from core.engines.base import ToolReply, ToolSpec
from core.items import Item, Said, Take
from core.job_tools import JobTools
from core.messages import clean
from core.outbox import Outbox
from core.questions import Questions
from core.reading import read_back
from core.showing import Showing
from core.store import rows
from core.store.errors import StoreError
from core.store.records import Delivery, DeliveryKind
from core.store.store import Store
from core.telling import Telling
from core.tool_table import JOB_MOST, READ_MOST, TABLE, TOOLS, BadCall, Given, Name
from core.turns import Kind, Turn

log = logging.getLogger("laneway.tools")

DONE_MOST = 50  # things one turn does in its thread besides its answer
READS_MOST = 100  # times that it reads there; a platform may be asked each time
READ = 20  # messages that are read where the agent does not say how many
QUEUED = "It waits for the main conversation."

Queue = Callable[[Turn, str], Awaitable[str]]  # a request of a side answer; why not, or ""


class Idle(Exception):
    """The token is one of ours, but no turn of its session runs."""


class Unknown(Exception):
    """Nobody was ever given this token."""


@dataclass(slots=True)
class Seat:
    """One running turn with its tools; what engines know as their toolbox.

    ``hold`` and ``release``: a person is asked, and has answered.
    """

    turn: Turn
    folder: Path
    hold: Callable[[], None]
    release: Callable[[], None]
    url: str
    token: str
    tools: Tools
    done: int = 0
    reads: int = 0
    used: bool = False
    queued: bool = field(default=False)

    def offered(self) -> Sequence[ToolSpec]:
        side = self.turn.kind is Kind.SIDE
        return [tool.spec for tool in TABLE if (tool.side if side else tool.main)]

    async def call(self, name: str, arguments: Mapping[str, object]) -> ToolReply:
        return await self.tools.call(self, name, arguments)


class Tools:
    """``url``: where agents reach the tools; empty while they are not served."""

    def __init__(
        self,
        store: Store,
        channel_of: Callable[[str], Channel],
        telling: Telling,
        showing: Showing,
        outbox: Outbox,
        questions: Questions,
        jobs: JobTools,
        spill: Path,
        url: str = "",
    ) -> None:
        self.url = url
        self._store = store
        self._channel_of = channel_of
        self._telling = telling
        self._showing = showing
        self._outbox = outbox
        self._questions = questions
        self._jobs = jobs
        self._spill = spill
        self._key = secrets.token_bytes(32)
        self._seats: dict[str, Seat] = {}
        self._renewed: dict[tuple[str, str], int] = {}  # how often, by lane and engine
        self._take: Take | None = None
        self._queue: Queue | None = None

    def begin(self, take: Take, queue: Queue) -> None:
        """Before the first turn runs: the way in, and the way into a lane's queue."""
        self._take, self._queue = take, queue

    def admit(
        self,
        turn: Turn,
        engine: str,
        folder: Path,
        hold: Callable[[], None],
        release: Callable[[], None],
    ) -> Seat:
        """The turn's tools, from now until it leaves. One session, one token."""
        renewed = self._renewed.get((turn.lane, engine), 0)
        session = f"{turn.lane}\0{engine}\0{turn.epoch}\0{renewed}"
        if turn.kind is Kind.SIDE:
            session += f"\0{turn.id}"
        token = self._token(hashlib.sha256(session.encode()).hexdigest()[:32])
        seat = Seat(turn, folder, hold, release, self.url, token, self)
        self._seats[token] = seat
        return seat

    def leave(self, seat: Seat) -> None:
        """The turn is over, and its tools with it."""
        if self._seats.get(seat.token) is seat:
            del self._seats[seat.token]
        self._questions.end(seat.turn.id)

    def renew(self, lane: str, engine: str) -> None:
        """Something that knows the lane's token may have outlived its turn: another from now on."""
        self._renewed[lane, engine] = self._renewed.get((lane, engine), 0) + 1

    def seat(self, token: str) -> Seat:
        """The running turn of this token; raises Idle or Unknown."""
        found = self._seats.get(token)
        if found is not None:
            return found
        name = token.partition(".")[0]
        if hmac.compare_digest(token.encode(), self._token(name).encode()):
            raise Idle
        raise Unknown

    async def call(self, seat: Seat, name: str, arguments: Mapping[str, object]) -> ToolReply:
        """Do what an agent asks; what cannot be done is said in words for the agent."""
        if self._seats.get(seat.token) is not seat:
            return ToolReply("The turn is over.", failed=True)
        if name not in {spec.name for spec in seat.offered()}:
            return ToolReply(f"There is no tool {name!r} here.", failed=True)
        try:
            given = Given(TOOLS[name], arguments)
            seat.used = True
            _count(seat, Name(name))
            said = await self._do(seat, Name(name), given)
        except BadCall as bad:
            return ToolReply(str(bad), failed=True)
        except StoreError as fault:
            log.error("turn %d: %s was not stored: %s", seat.turn.id, name, fault)
            return ToolReply("It could not be stored; nothing was done.", failed=True)
        log.info("turn %d in %s used %s", seat.turn.id, seat.turn.lane, name)
        return ToolReply(said)

    # The tools ----------------------------------------------------------------------------

    async def _do(self, seat: Seat, name: Name, given: Given) -> str:
        match name:
            case Name.SEND_MESSAGE:
                return await self._message(seat, given.text("text"))
            case Name.SEND_FILE:
                return await self._file(seat, given.text("path"), given.text("name"))
            case Name.ASK_PERSON:
                return await self._ask(seat, given.text("question"), given.options("options"))
            case Name.SET_TITLE:
                return await self._title(seat.turn, given.text("title"))
            case Name.READ_THREAD:
                limit = given.number("limit", READ, READ_MOST)
                return await read_back(self._store, self._channel_of, seat.turn, limit)
            case Name.QUEUE_FOR_MAIN:
                return await self._queue_up(seat, given.text("request"))
            case Name.SCHEDULE | Name.WATCH:
                return await self._set_up(seat, given)
            case Name.LIST_JOBS:
                return await self._jobs.listed(seat.turn)
            case Name.CANCEL_JOB:
                number = given.number("id", 1, JOB_MOST)
                return await self._jobs.cancel(seat.turn, number, self._taking())

    async def _message(self, seat: Seat, text: str) -> str:
        turn = seat.turn
        shown = self._showing.text(turn.lane, clean(text), DeliveryKind.NOTICE, turn=turn.id)
        return await self._sent(turn, shown)

    async def _file(self, seat: Seat, path: str, name: str) -> str:
        """Only a regular file inside the workspace leaves; what goes out is a copy of it."""
        where = Path(clean(path))
        whole = where if where.is_absolute() else seat.folder / where
        shown_as = Path(clean(name)).name or whole.name
        said = await self._telling.file(seat.turn, seat.folder, whole, shown_as, self._spill)
        if not _is_file(said):
            raise BadCall(
                f"{shown_as} cannot be sent. It must be a regular file inside the workspace,"
                " with something in it, and not larger than the platform takes."
            )
        return await self._sent(seat.turn, said.deliveries)

    async def _sent(self, turn: Turn, shown: Sequence[Delivery]) -> str:
        """Store what is shown; what the turn shows from now on, its answer too, stands below it."""
        await self._taking()(Item(deliveries=shown))
        self._outbox.step_aside(turn.id)
        return "Sent."

    async def _ask(self, seat: Seat, question: str, options: Sequence[str]) -> str:
        chosen = await self._choice(seat, clean(question), [clean(one) for one in options])
        return f"The answer is: {chosen}" if chosen is not None else "Nobody answered in time."

    async def _choice(self, seat: Seat, question: str, options: Sequence[str]) -> str | None:
        """Wait for a person; nothing is expected of the agent meanwhile."""
        turn, take = seat.turn, self._taking()
        attended = bool((await begun(self._store, turn)).starter)
        seat.hold()
        try:
            return await self._questions.ask(turn, question, options, take, attended=attended)
        finally:
            seat.release()

    async def _set_up(self, seat: Seat, given: Given) -> str:
        async def confirm(question: str, options: Sequence[str]) -> str | None:
            return await self._choice(seat, question, options)

        when, prompt, request = map(given.text, ("when", "prompt", "request_id"))
        taking = self._taking()
        if given.tool.spec.name == Name.WATCH:
            what = given.text("what")
            return await self._jobs.watch(seat.turn, what, when, prompt, request, confirm, taking)
        return await self._jobs.schedule(seat.turn, when, prompt, request, confirm, taking)

    async def _title(self, turn: Turn, title: str) -> str:
        named = " ".join(clean(title).split())
        if not named:
            raise BadCall("A title needs a word.")
        await self._taking()(Item(rows=[rows.lane_setting(turn.lane, "title", named)]))
        self._outbox.retitle(turn.lane, named)
        return "Named."

    async def _queue_up(self, seat: Seat, request: str) -> str:
        assert self._queue is not None, "begin comes before the first turn"
        if seat.queued:
            raise BadCall("A side answer can hand over one request, and this one did.")
        seat.queued = True
        if why := await self._queue(seat.turn, clean(request)):
            raise BadCall(why)
        return QUEUED

    # Inside -------------------------------------------------------------------------------

    def _token(self, name: str) -> str:
        return f"{name}.{hmac.new(self._key, name.encode(), hashlib.sha256).hexdigest()}"

    def _taking(self) -> Take:
        assert self._take is not None, "begin comes before the first turn"
        return self._take


def _count(seat: Seat, name: Name) -> None:
    """What one turn does is bounded, whichever tools it does it with."""
    if name in (Name.READ_THREAD, Name.LIST_JOBS):
        if seat.reads >= READS_MOST:
            raise BadCall(f"A turn can read here {READS_MOST} times.")
        seat.reads += 1
        return
    if seat.done >= DONE_MOST:
        raise BadCall(
            f"A turn can do {DONE_MOST} things in its thread besides its answer: messages, files, "
            "questions, titles, jobs and requests, all together."
        )
    seat.done += 1


def _is_file(said: Said) -> bool:
    return any(one.kind is DeliveryKind.FILE for one in said.deliveries)
