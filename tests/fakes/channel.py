"""A platform in memory: what a person would see, every call with its time, and faults on demand.

A fault is an error that the next call of a kind raises; ``landed`` says whether the platform had
carried it out all the same. A slow call takes its time by the test's clock, and when it is
cancelled it may still land later, as a request that is on the wire does.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from core.channel import (
    Action,
    AnswerPress,
    ChannelLimits,
    Delete,
    Done,
    Find,
    Intake,
    MessageGone,
    OpenThread,
    React,
    Recall,
    Refused,
    Retitle,
    Revise,
    Said,
    Send,
    SendError,
    SendFile,
    Stream,
    Typing,
)
from core.clock import Clock
from core.messages import Address, FileRef, Incoming, Keyboard, Part, Receipt

_NUMBERS = count(1001)  # of all of them: a platform gives no number twice, whoever starts anew

LIMITS = ChannelLimits(
    titles=True,
    receipts={Receipt.RECEIVED: "👀", Receipt.WAITING: "⏳", Receipt.FAILED: "⚠"},
)


@dataclass
class Call:
    """One ``do``: when it began and ended, and how."""

    action: Action
    at: float
    error: SendError | None = None
    done_at: float | None = None
    message_id: str = ""
    landed: bool = False
    growing: bool = False
    said: tuple[Said, ...] = ()

    @property
    def kind(self) -> type:
        return type(self.action)

    @property
    def text(self) -> str:
        part = getattr(self.action, "part", None)
        return part.text if part else ""


@dataclass
class Shown:
    """A message as people see it now, with every text it had."""

    message_id: str
    address: Address
    part: Part
    keyboard: Keyboard = ()
    reply_to: str = ""
    nonce: str = ""
    path: Path | None = None
    at: float = 0.0
    history: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.part.text


@dataclass
class Fault:
    error: SendError | None = None
    landed: bool = False  # the platform did it all the same
    seconds: float = 0.0  # before the answer comes
    late: bool = False  # when cancelled meanwhile, it lands with ``land()``
    chat: str = ""  # only calls into this chat


class FakeChannel:
    def __init__(
        self,
        clock: Clock,
        name: str = "telegram",
        limits: ChannelLimits = LIMITS,
        part_units: int = 4096,
    ) -> None:
        self.clock = clock
        self._name = name
        self._limits = limits
        self.part_units = part_units
        self.calls: list[Call] = []
        self.messages: dict[str, Shown] = {}
        self.reactions: dict[tuple[str, str], Receipt] = {}
        self.titles: dict[Address, str] = {}
        self.presses: list[AnswerPress] = []
        self.files: dict[str, bytes] = {}
        self.seconds = 0.0  # how long every call takes
        self.said: tuple[Said, ...] = ()  # what was said before in every thread
        self.grows = True  # a Stream's text grows by itself
        self.streams_words_only = False  # a Stream without a text makes no message
        self.knows_nonces = 180.0  # seconds for which a repetition makes no second message
        self.decide: Callable[[Action], Fault | None] = lambda action: None
        self._faults: dict[type, deque[Fault]] = defaultdict(deque)
        self._landing: list[Call] = []
        self._incoming: asyncio.Queue[tuple[Sequence[Incoming], asyncio.Event]] = asyncio.Queue()

    @property
    def name(self) -> str:
        return self._name

    @property
    def limits(self) -> ChannelLimits:
        return self._limits

    def set_limits(self, **changes: object) -> None:
        self._limits = replace(self._limits, **changes)

    # What a test prepares -----------------------------------------------------------------

    def fail(self, kind: type, *errors: SendError | Fault) -> None:
        """The next calls of this kind end so, one after the other; ``Fault()`` lets one pass."""
        for error in errors:
            self._faults[kind].append(error if isinstance(error, Fault) else Fault(error))

    def slow(self, kind: type, seconds: float, *, late: bool = False) -> None:
        """The next call of this kind takes so long."""
        self._faults[kind].append(Fault(seconds=seconds, late=late))

    def drop(self, message_id: str) -> None:
        """A person deletes a message of ours."""
        del self.messages[message_id]

    def land(self) -> None:
        """Requests that nobody waits for any more reach the platform now."""
        for call in self._landing:
            self._apply(call, strict=False)
        self._landing.clear()

    async def push(self, *incoming: Incoming) -> None:
        """Hand over a batch; returns when the gateway has accepted it."""
        accepted = asyncio.Event()
        self._incoming.put_nowait((incoming, accepted))
        await accepted.wait()

    # What a test looks at -----------------------------------------------------------------

    def of(self, kind: type) -> list[Call]:
        return [call for call in self.calls if call.kind is kind]

    def texts(self, chat: str | None = None, thread: str | None = None) -> list[str]:
        """What is to be read in a chat now, oldest first."""
        return [message.text for message in self.shown(chat, thread)]

    def shown(self, chat: str | None = None, thread: str | None = None) -> list[Shown]:
        return [
            message
            for message in self.messages.values()
            if chat in (None, message.address.chat) and thread in (None, message.address.thread)
        ]

    # The port -----------------------------------------------------------------------------

    async def listen(self, intake: Intake) -> None:
        while True:
            incoming, accepted = await self._incoming.get()
            await intake.accept(incoming)
            accepted.set()

    def render(self, markdown: str) -> list[Part]:
        size = self.part_units
        pieces = [markdown[at : at + size] for at in range(0, len(markdown), size)]
        return [Part(piece, "{}") for piece in pieces] or [Part(" ")]

    async def do(self, action: Action) -> Done:
        call = Call(action, self.clock.monotonic())
        self.calls.append(call)
        fault = self._fault(action)
        seconds = fault.seconds or self.seconds
        if seconds:
            try:
                await self.clock.sleep(seconds)
            except asyncio.CancelledError:
                if fault.late:
                    self._landing.append(call)
                raise
        try:
            if fault.error is None or fault.landed:
                self._apply(call)
            if fault.error is not None:
                raise fault.error
        except SendError as error:
            call.error = error
            raise
        finally:
            call.done_at = self.clock.monotonic()
        return Done(call.message_id, call.growing, call.said)

    async def fetch(self, file: FileRef, target: Path) -> None:
        target.write_bytes(self.files[file.ref])

    # ------------------------------------------------------------------------------------

    def _fault(self, action: Action) -> Fault:
        decided = self.decide(action)
        if decided is not None:
            return decided
        faults = self._faults[type(action)]
        if faults and faults[0].chat in ("", _chat(action)):
            return faults.popleft()
        return Fault()

    def _apply(self, call: Call, strict: bool = True) -> None:
        call.landed = True
        match call.action:
            case Send(address, part, keyboard, reply_to, nonce):
                call.message_id = self._new(address, part, keyboard, reply_to, nonce)
            case SendFile(address, path, _, caption, nonce):
                part = caption or Part("")
                call.message_id = self._new(address, part, (), "", nonce, path)
            case Revise(_, message_id, part, keyboard):
                message = self.messages.get(message_id)
                if message is not None:
                    message.part, message.keyboard = part, keyboard
                    message.history.append(part.text)
                    call.message_id = message_id
                elif strict:
                    raise MessageGone("message to edit not found")
            case Stream(address, message_id, text, part, keyboard, _, nonce):
                call.growing = bool(text) and self.grows
                if not message_id:
                    if text or not self.streams_words_only:
                        call.message_id = self._new(address, part, keyboard, "", nonce)
                    return
                message = self.messages.get(message_id)
                if message is not None:
                    message.part, message.keyboard = part, keyboard
                    message.history.append(part.text)
                    call.message_id = message_id
                elif strict:
                    raise MessageGone("message to stream into not found")
            case Recall():
                call.said = self.said
            case Delete(_, message_id):
                if self.messages.pop(message_id, None) is None and strict:
                    raise MessageGone("message to delete not found")
            case React(_, message_id, receipt):
                self.reactions[(_chat(call.action), message_id)] = receipt
            case Retitle(address, title):
                self.titles[address] = title
            case AnswerPress():
                self.presses.append(call.action)
            case OpenThread():
                call.message_id = str(next(_NUMBERS))
            case Find(address, nonce):
                if not self._limits.finds_sends:
                    raise Refused("nothing can be found here")
                call.message_id = self._made_by(nonce, address)
            case Typing():
                pass

    def _new(
        self,
        address: Address,
        part: Part,
        keyboard: Keyboard,
        reply_to: str,
        nonce: str,
        path: Path | None = None,
    ) -> str:
        known = self._made_by(nonce, address) if self._limits.idempotent_sends else ""
        if known and self.clock.monotonic() - self.messages[known].at < self.knows_nonces:
            return known
        name = str(next(_NUMBERS))
        at, history = self.clock.monotonic(), [part.text]
        shown = Shown(name, address, part, keyboard, reply_to, nonce, path, at, history)
        self.messages[name] = shown
        return name

    def _made_by(self, nonce: str, address: Address) -> str:
        """The message of a send with this nonce; empty if there is none."""
        for message in self.messages.values():
            if nonce and (message.nonce, message.address) == (nonce, address):
                return message.message_id
        return ""


def _chat(action: Action) -> str:
    address = getattr(action, "address", None)
    return address.chat if address else ""
