"""The local channel: lanes named by their owner, watched by terminals and pages in this process.

It is a channel like any other: messages come in through ``say`` and ``press``, and what core asks
for is kept for whoever watches the lane. It must not know sockets, pages or lane rules.
What was said before is in the store; what is newer than that, such as a half-written answer, is
here (``shown``). A message's id is made of the send that makes it, so that the same send, repeated
after a crash, makes the same message; and ids are in the order in which messages stand.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from core.channel import (
    Action,
    AnswerPress,
    Channel,
    ChannelLimits,
    Connection,
    Delete,
    Done,
    Find,
    Intake,
    OpenThread,
    React,
    Recall,
    Refused,
    Retitle,
    Revise,
    Send,
    SendFile,
    Stream,
    Typing,
)
from core.lane_ids import LOCAL
from core.messages import Address, Button, FileRef, Keyboard, Message, Part, Press

LIMITS = ChannelLimits(
    preview_every_direct=0.1,
    preview_every_group=0.1,
    preview_text=1_000_000,
    preview_footer=False,  # a terminal prints what is new; a footer would be printed with it
    stop_button=False,
    typing_every=0,
    paste_units=1_000_000_000,  # nothing splits a text on its way here
    chat_rate=1000.0,
    group_rate=1000.0,
    total_rate=10_000.0,
    idempotent_sends=True,
    finds_sends=True,
    history=True,
    titles=True,
)
NONCES_KEPT = 4096  # messages of which it is remembered what made them
SHOWN_NOW = 1024  # messages of which the newest text is known without the store
SHOWN_SIGNS = 2_000_000  # characters of all these together, at most
SHOWN_KEPT = 1000  # a watcher this far behind is cut off, so that it cannot fill the memory


@dataclass(frozen=True, slots=True)
class Shown:
    """What one watcher of a lane sees: a message's text as it is now, or a file."""

    kind: str  # sent | revised | deleted | file | private | titled
    message_id: str = ""
    text: str = ""
    keyboard: Keyboard = ()
    path: str = ""
    nonce: str = ""  # of the send that made the message; empty where an earlier process made it
    lane: str = ""

    def as_json(self) -> dict[str, object]:
        """For a socket or a page."""
        buttons = [[_button(button) for button in row] for row in self.keyboard]
        return {
            "kind": self.kind,
            "message_id": self.message_id,
            "text": self.text,
            "buttons": buttons,
            "path": self.path,
        }


def _button(button: Button) -> dict[str, str]:
    return {"id": button.id, "label": button.label, "style": button.style.value}


class Watch:
    """What one watcher of a lane has not seen yet, in order.

    Of a message that changes faster than somebody reads only the newest text is kept.
    """

    def __init__(self) -> None:
        self._waiting: deque[Shown] = deque()
        self._there = asyncio.Event()
        self._lost = False
        self._ended = False

    def put(self, shown: Shown) -> None:
        if self._ended:
            return
        last = self._waiting[-1] if self._waiting else None
        if last and shown.kind == last.kind == "revised" and shown.message_id == last.message_id:
            self._waiting[-1] = shown
        elif len(self._waiting) < SHOWN_KEPT:
            self._waiting.append(shown)
        else:
            self._lost = True
        self._there.set()

    def end(self) -> None:
        """Nothing that comes from now on is wanted; what is there still is."""
        self._ended = True
        self._there.set()

    async def get(self) -> Shown | None:
        """The next, None at the end; ConnectionError once the watcher is too far behind."""
        while not self._waiting:
            if self._ended:
                return None
            if self._lost:
                raise ConnectionError("this watcher fell too far behind")
            self._there.clear()
            await self._there.wait()
        return self._waiting.popleft()


class LocalChannel(Channel):
    """Who may speak here was settled before: by the socket's file mode, or by the sign-in."""

    name = LOCAL
    limits = LIMITS

    def __init__(
        self, new_id: Callable[[], str], now: Callable[[], int], files: Path | None = None
    ) -> None:
        self._new_id = new_id  # unique for ever: ids of presses
        self._now = now  # milliseconds since 1970
        self._files = files  # folder of what is sent to and from the page
        self._count = 0  # of messages that came in
        self._shown: OrderedDict[str, Shown] = OrderedDict()  # by message, the newest ones
        self._signs = 0
        self._observers: set[Callable[[Shown], None]] = set()
        self._watches: dict[str, set[Watch]] = {}
        self._intake: Intake | None = None
        self._nonces: OrderedDict[str, str] = OrderedDict()  # by message
        self._presses: dict[str, asyncio.Future[str]] = {}

    async def listen(self, intake: Intake) -> None:
        self._intake = intake
        intake.connection(self.name, Connection())
        try:
            await asyncio.Event().wait()
        finally:
            self._intake = None

    def render(self, markdown: str) -> list[Part]:
        """Markdown as it is: terminals and pages read it themselves."""
        return [Part(markdown if markdown.strip() else "(empty)")]

    @contextmanager
    def watch(self, lane: str) -> Iterator[Watch]:
        """See what is shown in ``lane`` from now on."""
        watch = Watch()
        self._watches.setdefault(lane, set()).add(watch)
        try:
            yield watch
        finally:
            watchers = self._watches[lane]
            watchers.discard(watch)
            if not watchers:
                del self._watches[lane]

    def on_shown(self, observer: Callable[[Shown], None]) -> Callable[[], None]:
        """Call ``observer`` with all that is shown anywhere; returns how to stop that."""
        self._observers.add(observer)
        return lambda: self._observers.discard(observer)

    def shown(self, message_id: str) -> Shown | None:
        """A message as it is now, if it changed lately; the store is never newer than this."""
        return self._shown.get(message_id)

    async def say(
        self,
        lane: str,
        sender: str,
        name: str,
        text: str,
        *,
        ident: str = "",
        files: tuple[FileRef, ...] = (),
    ) -> str:
        """A message of ``sender``; returns its identity once it is durable.

        Said again with the same ``ident`` it is one message.
        """
        at = self._now()
        message_id = self._next(at)
        message = Message(
            identity=f"{LOCAL}:{ident or message_id}",
            message_id=message_id,
            address=Address(LOCAL, lane),
            sender=sender,
            sender_name=name,
            text=text,
            at=at,
            direct=True,
            files=files,
        )
        await self._listening().accept([message])
        return message.identity

    async def press(self, lane: str, sender: str, name: str, button: str, message_id: str) -> str:
        """A pressed button; returns the private answer, empty when there is none."""
        ident = self._new_id()
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._presses[ident] = answer
        press = Press(
            identity=f"{LOCAL}:press:{ident}",
            press=ident,
            address=Address(LOCAL, lane),
            sender=sender,
            sender_name=name,
            button=button,
            message_id=message_id,
            direct=True,
        )
        try:
            await self._listening().accept([press])
            async with asyncio.timeout(5):
                return await answer
        except TimeoutError:
            return ""
        finally:
            del self._presses[ident]

    async def do(self, action: Action) -> Done:
        match action:
            case Send(address, part, keyboard, nonce=nonce):
                message_id = self._made_by(nonce)
                return self._show(address, "sent", message_id, part, keyboard)
            case Stream():
                raise Refused("a local lane is shown frames")
            case Recall():
                return Done()
            case Revise(address, message_id, part, keyboard):
                return self._show(address, "revised", message_id, part, keyboard)
            case Delete(address, message_id):
                return self._show(address, "deleted", message_id, Part(""), ())
            case SendFile(address, path, name, nonce=nonce):
                message_id = self._made_by(nonce)
                if self._files is not None:
                    await asyncio.to_thread(_keep, path, self._files / sent_file(message_id))
                file = Shown("file", message_id, text=name, path=str(path), nonce=nonce)
                return self._pass_on(address, file)
            case AnswerPress(press, text):
                waiting = self._presses.get(press)
                if waiting and not waiting.done():
                    waiting.set_result(text)
                return Done()
            case OpenThread():
                raise Refused("a local lane has no threads")
            case Find():
                return Done()  # sent again it makes the same message
            case Retitle(address, title):
                self._tell(Shown("titled", text=title, lane=address.chat))
                return Done()
            case Typing() | React():
                return Done()

    async def fetch(self, file: FileRef, target: Path) -> None:
        if self._files is None or not _REF.fullmatch(file.ref):
            raise Refused(f"{file.name} is not kept here")
        try:
            await asyncio.to_thread(shutil.copyfile, self._files / received_file(file.ref), target)
        except FileNotFoundError as fault:
            raise Refused(f"{file.name} is not kept any more") from fault

    def _listening(self) -> Intake:
        if self._intake is None:
            raise ConnectionError("the gateway is not taking messages yet")
        return self._intake

    def _made_by(self, nonce: str) -> str:
        """The id of a new message; what made it is remembered for its changes."""
        message_id = message_of(nonce) or self._next(self._now())
        self._nonces[message_id] = nonce
        if len(self._nonces) > NONCES_KEPT:
            self._nonces.popitem(last=False)
        return message_id

    def _show(
        self, address: Address, kind: str, message_id: str, part: Part, keyboard: Keyboard
    ) -> Done:
        nonce = self._nonces.get(message_id, "")
        return self._pass_on(address, Shown(kind, message_id, part.text, keyboard, nonce=nonce))

    def _next(self, at: int) -> str:
        """An id for what was not sent by core; after those of the same moment before it."""
        self._count += 1
        return f"{at:011x}.0{self._count:06x}{self._new_id()[:6]}"

    def _pass_on(self, address: Address, shown: Shown) -> Done:
        shown = replace(shown, lane=address.chat)
        self._remember(shown)
        for watch in self._watches.get(address.chat, ()):
            watch.put(shown)
        self._tell(shown)
        return Done(shown.message_id)

    def _tell(self, shown: Shown) -> None:
        for observer in tuple(self._observers):
            observer(shown)

    def _remember(self, shown: Shown) -> None:
        if before := self._shown.pop(shown.message_id, None):
            self._signs -= len(before.text)
        self._shown[shown.message_id] = shown
        self._signs += len(shown.text)
        while len(self._shown) > SHOWN_NOW or (self._signs > SHOWN_SIGNS and len(self._shown) > 1):
            _, oldest = self._shown.popitem(last=False)
            self._signs -= len(oldest.text)


_REF = re.compile(r"[A-Za-z0-9_-]{8,64}")
_NONCE = re.compile(r"(p\.)?([0-9a-f]+)\.([0-9a-f]+)")


def message_of(nonce: str) -> str:
    """The id of the message that a send makes, for ever; "" if it cannot be told from its nonce."""
    found = _NONCE.fullmatch(nonce)
    return f"{int(found[3], 16):011x}.1{int(found[2], 16):010x}" if found else ""


def received_file(ref: str) -> str:
    """What a file that came by the page is called in the folder of files."""
    return f"in-{ref}"


def sent_file(message_id: str) -> str:
    """The same for a file that was sent to it."""
    return f"out-{message_id}"


def _keep(path: Path, kept: Path) -> None:
    """Keep what was sent: the copy that it was sent from goes sooner or later.

    Where that cannot be done the file is not there later, and the page says so; it was sent.
    """
    with contextlib.suppress(OSError):
        kept.parent.mkdir(mode=0o700, exist_ok=True)
        if kept.exists():
            return
        try:
            os.link(path, kept)
        except OSError:  # another disk
            shutil.copyfile(path, kept)
