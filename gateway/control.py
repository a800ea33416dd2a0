"""The local socket: what the owner's terminal asks of the running gateway.

One request a connection: a line of JSON in, lines of JSON out. Whoever can open the socket (mode
0600, in a private folder) is the owner. It carries words between the terminal and the parts that
do the work; it decides nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from channels.local.channel import LocalChannel, Shown, Watch, message_of
from core.asking import Card
from core.finding import nonce_of
from core.lane_ids import local_name
from core.store import reads
from core.store.errors import StoreError
from core.store.records import Delivery, FilePart
from core.store.store import Store
from core.store.writer import Unit
from core.turns import Turn
from core.wording import INTERNAL_FAULT
from gateway.following import Following
from gateway.socket_path import LONGEST_LINE

log = logging.getLogger("laneway.control")

OWNER = "local:owner"
OWNER_NAME = "Owner"
SHOWN_WITHIN = 10.0  # seconds until the terminal is let go although the disk takes no end of it
Ask = Callable[[Mapping[str, Any]], Awaitable[Any]]


class Turns(Protocol):
    """Of the runner: who wants to know when turns end."""

    def on_over(self, watcher: Callable[[Turn], None]) -> Callable[[], None]: ...


class Sends(Protocol):
    """Of the outbox: what a lane was to be told is told."""

    async def said(self, lane: str) -> None: ...


class Questions(Protocol):
    """Of the approvals: what waits for an answer, and what was shown where nobody can decide."""

    def open_in(self, lane: str) -> Sequence[Card]: ...

    async def nobody(self, approval: int) -> None: ...


class BadRequest(Exception):
    """The request cannot be carried out; the message says why."""


class Control:
    """Serves the socket. ``asks`` are the requests that answer once, by name."""

    def __init__(
        self,
        store: Store,
        local: LocalChannel,
        turns: Turns,
        sends: Sends,
        questions: Questions,
        asks: Mapping[str, Ask],
    ) -> None:
        self._store = store
        self._local = local
        self._turns = turns
        self._sends = sends
        self._questions = questions
        self._asks = asks

    async def serve(self, listener: socket.socket) -> None:
        """Answer until cancelled."""
        async with asyncio.TaskGroup() as group:

            def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                group.create_task(self._talk(reader, writer), name="terminal")

            server = await asyncio.start_unix_server(connected, sock=listener, limit=LONGEST_LINE)
            try:
                await asyncio.Event().wait()
            finally:
                server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        finally:
            writer.close()
            # At the end of the gateway nobody waits for a terminal that does not read. One that
            # read all is gone already, and aborting what is gone is an error.
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            request = json.loads(line or b"{}")
            if not isinstance(request, dict):
                raise BadRequest("a request is a JSON object")
            await self._carry_out(request, reader, writer)
        except (BadRequest, ValueError, StoreError) as fault:
            await _refuse(writer, str(fault))
        except (ConnectionError, asyncio.IncompleteReadError):
            log.debug("a terminal went away")
        except Exception:
            # The border to terminals: a request that breaks ends alone, and never the gateway.
            log.exception("a request of a terminal broke")
            await _refuse(writer, INTERNAL_FAULT)

    async def _carry_out(
        self,
        request: Mapping[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        name = str(request.get("do", ""))
        if name == "say":
            await self._say(request, reader, writer)
        elif name in self._asks:
            try:
                result = await self._asks[name](request)
            except LookupError as fault:
                raise BadRequest(str(fault)) from fault
            await _write(writer, {"result": result})
        else:
            raise BadRequest(f"this gateway does not know {name!r}; is it an older version?")

    async def _say(
        self,
        request: Mapping[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Say something, and pass on what is shown until it is answered.

        A terminal at which somebody sits (``attended``) is shown first what was asked before it
        came and keeps its message waiting: whoever was asked may have closed their terminal.
        """
        lane = local_name(str(request.get("lane") or "main"))
        text = str(request.get("text", ""))
        over: dict[int, Turn] = {}
        changed = asyncio.Event()

        def watch_over(turn: Turn) -> None:
            over[turn.id] = turn
            changed.set()

        forget = self._turns.on_over(watch_over)
        try:
            with self._local.watch(lane) as watch:
                identity = await self._local.say(lane, OWNER, OWNER_NAME, text)
                await _write(writer, {"accepted": identity})
                attended = request.get("attended") is True
                following = Following(self._store, identity, attended=attended)
                await self._ask_again(lane, following, writer)
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pass_on(watch, following, writer), name="shown")
                    presses = group.create_task(self._presses(lane, reader, writer), name="presses")
                    status = await self._answered(identity, lane, over, changed)
                    watch.end()
                    presses.cancel()
                await _write(writer, {"end": status})
        except* ConnectionError:
            log.debug("the terminal of lane %s went away", lane)
        finally:
            forget()

    async def _ask_again(
        self, lane: str, following: Following, writer: asyncio.StreamWriter
    ) -> None:
        """Show what waits for an answer. Its end comes by the watch, which was there before."""
        for card in self._questions.open_in(lane):
            message_id = _message_of(card.message)
            if await following.wants_question(card.message, message_id):
                for delivery in (*card.before, card.message):
                    await _write(writer, {"shown": _standing(delivery).as_json()})

    async def _answered(
        self, identity: str, lane: str, over: Mapping[int, Turn], changed: asyncio.Event
    ) -> str:
        """Wait for the turn of a message, and for what the lane is told; how it ended."""
        message = await reads.message(self._store, identity)
        if message is None or message.turn is None:
            await self._said(lane)  # a command: its answer was stored with it
            return "done"
        while message.turn not in over:
            stored = await reads.turn(self._store, message.turn)
            if stored is not None and stored.status.over:
                await self._handed_over()
                break
            changed.clear()
            if message.turn not in over:
                await changed.wait()
        await self._said(lane)
        ended = await reads.turn(self._store, message.turn)
        return ended.status.value if ended else "done"

    async def _handed_over(self) -> None:
        """Wait until what is stored by now has had its effects, such as answers to be sent.

        Steps are stored one after another and each has them before the next one is: a step that
        stores nothing comes after them all.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOWN_WITHIN):
                await self._store.commit(Unit(None, lambda: ()))

    async def _said(self, lane: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOWN_WITHIN):
                await self._sends.said(lane)

    async def _presses(
        self, lane: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Buttons that the person at the terminal chooses."""
        while line := await reader.readline():
            press = json.loads(line)
            if "nobody" in press:
                await self._nobody(lane, str(press["nobody"]))
                continue
            button, message_id = str(press.get("press", "")), str(press.get("message_id", ""))
            said = await self._local.press(lane, OWNER, OWNER_NAME, button, message_id)
            if said:
                await _write(writer, {"shown": Shown("private", text=said).as_json()})
        # The terminal closed its side: what it asked goes on, there is nobody to show it to.

    async def _nobody(self, lane: str, button: str) -> None:
        """A card was shown to a terminal at which nobody sits."""
        meaning = await reads.button(self._store, button)
        if meaning is not None and meaning.lane == lane:
            approval = meaning.data.get("of")
            if isinstance(approval, int):
                await self._questions.nobody(approval)


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """The socket, closed to everybody else before the first connection can come."""
    path.unlink(missing_ok=True)  # of an earlier process: the home's lock is ours
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.setblocking(False)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _message_of(delivery: Delivery) -> str:
    return delivery.message_id or message_of(nonce_of(delivery.id, delivery.created_at))


def _standing(delivery: Delivery) -> Shown:
    """What a delivery made, as it was shown."""
    message_id, part = _message_of(delivery), delivery.part
    if isinstance(part, FilePart):
        return Shown("file", message_id, text=part.name, path=part.path)
    return Shown("sent", message_id, part.text, delivery.keyboard)


async def _pass_on(watch: Watch, following: Following, writer: asyncio.StreamWriter) -> None:
    while shown := await watch.get():
        if await following.wants(shown):
            await _write(writer, {"shown": shown.as_json()})


async def _refuse(writer: asyncio.StreamWriter, why: str) -> None:
    with suppress(ConnectionError):
        await _write(writer, {"error": why})


async def _write(writer: asyncio.StreamWriter, answer: Mapping[str, Any]) -> None:
    writer.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")
    await writer.drain()
