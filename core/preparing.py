"""The first phase of a turn: its settings frozen, its files fetched, its prompt made.

Everything a person can put right ends as ``Unworkable`` with words that say what to do; no engine
was touched then. It must not know the lane rules, and starts nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mimetypes
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from core import inside, prompt, wording
from core.at_work import AtWork
from core.attending import begun
from core.channel import (
    Channel,
    ChannelLimits,
    FileTooBig,
    NotSent,
    RateLimited,
    Refused,
    SendError,
)
from core.clock import Clock
from core.earlier import said_before
from core.engines.base import Approvals, Attachment, Engine, Request, Usage
from core.folders import workspace
from core.health import Health
from core.hearing import MOST, Hearing, Unheard
from core.messages import FileKind
from core.store import reads
from core.store.records import LaneRow, MessageRow, SessionRow
from core.store.store import Store
from core.turns import Kind, Turn

log = logging.getLogger("laneway.turn")

TRIES = 4  # downloads of one file
PAUSE = 1.0  # seconds before the second try; doubled each time
NOTES_MOST = 10  # voice notes of one turn that are listened to
HEARD_KEPT = 200  # transcripts
INCOMING = "incoming"  # in the home: files on their way into a workspace


class Unworkable(Exception):
    """The turn cannot begin; the message says why and what to do."""


@dataclass(slots=True)
class Defaults:
    """What a lane uses that sets nothing of its own. One for the process; it follows the settings.

    A turn goes by what holds when it begins.
    """

    home: Path
    engine: str
    approvals: Approvals
    workspace: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A turn that can begin. Its settings stay as they are until it ends."""

    engine: Engine
    request: Request
    direct: bool
    limits: ChannelLimits
    wanted: str = ""  # the lane's engine; another may stand in for it
    set_aside: str = ""  # why the conversation it had is not gone on with
    earlier: Usage = field(default_factory=Usage)  # what earlier tries of this turn have used


class Preparing:
    """Reads a turn's content and makes it ready."""

    def __init__(
        self,
        store: Store,
        engines: Mapping[str, Engine],
        channel_of: Callable[[str], Channel],
        defaults: Defaults,
        clock: Clock,
        health: Health,
        at_work: AtWork,
        hearing: Hearing | None = None,
    ) -> None:
        self._at_work = at_work
        self.hearing = hearing  # replaced when the settings change
        self._heard: dict[str, str] = {}  # what was said in voice notes, the newest ones
        self._health = health
        self._store = store
        self._engines = engines
        self._channel_of = channel_of
        self._defaults = defaults
        self._clock = clock

    async def prepare(self, turn: Turn) -> Prepared:
        """Everything the engine needs; raises Unworkable."""
        async with asyncio.TaskGroup() as group:  # side by side: a person waits for this
            reading = group.create_task(reads.lane(self._store, turn.lane), name="lane")
            said = group.create_task(reads.messages_of(self._store, [turn.id]), name="messages")
            held = group.create_task(reads.sessions(self._store, turn.lane), name="sessions")
            tried = group.create_task(self._earlier(turn), name="earlier tries")
        lane, messages = reading.result(), said.result()
        if lane is None:
            raise Unworkable("This thread is not known any more. Write a new message.")
        wanted = lane.engine or self._defaults.engine
        engine = self._engine(self._health.choose(wanted, turn))
        folder = await self._folder(lane)
        channel = self._channel_of(lane.id)
        files, missing = await self._fetch(channel, folder, messages)
        several = not lane.direct and turn.kind is not Kind.COMPACT
        heard = await self._hear(folder, messages)
        asked = prompt.build(messages, group=several, missing=missing, heard=heard)
        if not held.result() and turn.kind is Kind.MAIN and turn.epoch == 0:
            asked = await self._with_earlier(channel, lane, messages, asked)
        if turn.kind is Kind.SIDE:
            asked = f"{asked}\n\n{self._at_work.note(lane.id, self._clock.now())}"
        own = engine.name == wanted  # names of models and efforts mean nothing to another
        session, set_aside = _session(turn, held.result().get(engine.name))
        request = Request(
            lane=lane.id,
            turn=turn.id,
            folder=folder,
            prompt=asked,
            session=session,
            attachments=files,
            approvals=await self._approvals(lane, turn),
            model=lane.model if own else "",
            effort=lane.effort if own else "",
            read_only=turn.kind is Kind.SIDE,
            compact=turn.kind is Kind.COMPACT,
        )
        earlier = tried.result()
        return Prepared(engine, request, lane.direct, channel.limits, wanted, set_aside, earlier)

    async def _earlier(self, turn: Turn) -> Usage:
        """What a turn that was tried before has used; its next try adds to that."""
        stored = await reads.turn(self._store, turn.id)
        if stored is None:
            return Usage()
        return Usage(stored.tokens_in or 0, stored.tokens_out or 0, stored.cost)

    async def _approvals(self, lane: LaneRow, turn: Turn) -> Approvals:
        """The lane's mode. Where nobody attends, the engine lets nothing pass by itself."""
        mode = Approvals(lane.approvals) if lane.approvals else self._defaults.approvals
        if mode is Approvals.AUTO and not (await begun(self._store, turn)).asked:
            return Approvals.ASK
        return mode

    async def _with_earlier(
        self, channel: Channel, lane: LaneRow, messages: Sequence[MessageRow], asked: str
    ) -> str:
        """The prompt below what its thread was about before; an engine's command stays one."""
        if not messages or asked.startswith("/"):
            return asked
        earlier = await said_before(channel, lane.address, messages[0].message_id)
        return f"{earlier}\n\n{asked}" if earlier else asked

    async def text_of(self, turn: int) -> str:
        """What a waiting turn would ask; for handing it to the running one. Raises Unworkable."""
        messages = await reads.messages_of(self._store, [turn])
        lane = None
        if prompt.incoming(messages):
            lane = await reads.lane(self._store, messages[0].lane)
        if lane is None:
            return prompt.build(messages, group=False)
        folder = await self._folder(lane)
        _, missing = await self._fetch(self._channel_of(lane.id), folder, messages)
        heard = await self._hear(folder, messages)
        return prompt.build(messages, group=False, missing=missing, heard=heard)

    async def _hear(
        self, folder: Path, messages: Sequence[MessageRow]
    ) -> Mapping[PurePosixPath, str]:
        """What is said in the turn's voice notes. Raises Unworkable where nothing else was said."""
        heard: dict[PurePosixPath, str] = {}
        why = ""
        hearing = self.hearing
        if hearing is None:
            return heard
        notes = [one for one in prompt.incoming(messages) if one.file.kind is FileKind.VOICE]
        for note in notes[:NOTES_MOST]:
            try:
                heard[note.path] = await self._hear_one(hearing, folder, note)
            except Unheard as fault:
                why = str(fault)
        if why and not heard and not prompt.says_more(messages):
            raise Unworkable(wording.UNHEARD.format(why))
        return heard

    async def _hear_one(self, hearing: Hearing, folder: Path, note: prompt.Incoming) -> str:
        """Once a note, however often its turn is tried."""
        key = str(folder / note.path)
        if key not in self._heard:
            try:
                sound = await asyncio.to_thread(inside.read, folder, Path(note.path), MOST + 1)
            except (inside.NotInside, OSError) as fault:
                raise Unheard("its file cannot be read") from fault
            self._heard[key] = await hearing.text(sound, note.file.mime)
            if len(self._heard) > HEARD_KEPT:
                del self._heard[next(iter(self._heard))]
        return self._heard[key]

    def _engine(self, name: str) -> Engine:
        engine = self._engines.get(name)
        if engine is None:
            known = ", ".join(sorted(self._engines))
            raise Unworkable(
                f"The engine {name!r} is not set up here. "
                f"Ask an admin to choose another with /engine ({known})."
            )
        return engine

    async def _folder(self, lane: LaneRow) -> Path:
        named = lane.workspace or self._defaults.workspace
        folder = workspace(self._defaults.home, lane.id, lane.workspace, self._defaults.workspace)

        def make() -> None:
            if named and not folder.is_dir():
                raise Unworkable(
                    f"The workspace {folder} does not exist. Ask an admin to make the folder, or "
                    "to choose another with /workspace."
                )
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

        try:
            if named:  # perhaps on another machine's disk
                await asyncio.to_thread(make)
            else:
                make()
        except OSError as fault:
            reason = fault.strerror or "it cannot be used"
            raise Unworkable(
                f"The workspace {folder} cannot be used: {reason}. Ask an admin to put it right, "
                "or to choose another with /workspace."
            ) from fault
        return folder

    async def _fetch(
        self, channel: Channel, folder: Path, messages: Sequence[MessageRow]
    ) -> tuple[list[Attachment], dict[PurePosixPath, str]]:
        """Save every file of the turn under its path in the workspace.

        Also why one of a message that is replied to could not be had; the agent is told of that.
        """
        saved: list[Attachment] = []
        missing: dict[PurePosixPath, str] = {}
        for item in prompt.incoming(messages):
            try:
                if not await asyncio.to_thread(inside.holds, folder, item.path):
                    await self._fetch_one(channel, folder, item)
            except FileTooBig as fault:
                if not item.beside:
                    raise Unworkable(wording.too_big(_name(item), fault.limit)) from fault
                missing[item.path] = f"it is larger than {fault.limit // 1_000_000} MB"
                continue
            except SendError as fault:
                log.warning("a file of %s was not fetched: %s", channel.name, fault)
                if not item.beside:
                    raise Unworkable(wording.not_fetched(_name(item))) from fault
                missing[item.path] = "the platform does not hand it out"
                continue
            target = folder / item.path
            mime = item.file.mime or mimetypes.guess_type(target.name)[0] or ""
            saved.append(Attachment(target, mime or "application/octet-stream"))
        return saved, missing

    async def _fetch_one(self, channel: Channel, folder: Path, item: prompt.Incoming) -> None:
        """Download into a folder of our own, then put it into the workspace as a whole."""
        most = channel.limits.file_in
        if item.file.size is not None and item.file.size > most:
            raise FileTooBig(_name(item), most)
        name = _name(item)
        part = self._defaults.home / INCOMING / secrets.token_hex(8)
        try:
            await asyncio.to_thread(inside.private, part.parent)
            await self._download(channel, item, part)
            await asyncio.to_thread(inside.put, folder, item.path, part)
        except inside.NotInside as fault:
            raise Unworkable(
                f"The file {name} could not be saved: in the workspace, “{fault}” is not a folder "
                "but a link or a file. Remove it, then send the file again."
            ) from fault
        except OSError as fault:
            reason = fault.strerror or "the disk refused it"
            raise Unworkable(
                f"The file {name} could not be saved: {reason}. "
                "Ask an admin to look at the workspace's disk, then send the file again."
            ) from fault
        finally:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(part.unlink, missing_ok=True)

    async def _download(self, channel: Channel, item: prompt.Incoming, part: Path) -> None:
        for attempt in range(TRIES):
            try:
                await channel.fetch(item.file, part)
                return
            except SendError as fault:
                hopeless = isinstance(fault, Refused) and item.beside
                if attempt + 1 == TRIES or hopeless or isinstance(fault, FileTooBig):
                    raise
                wait = fault.retry_after if isinstance(fault, RateLimited) else PAUSE * 2**attempt
                if not isinstance(fault, RateLimited | NotSent):
                    log.info("file %s: %s; trying again", _name(item), fault)
                await self._clock.sleep(wait)


def _name(item: prompt.Incoming) -> str:
    return item.file.name or item.path.name


def _session(turn: Turn, stored: SessionRow | None) -> tuple[str, str]:
    """The conversation to go on with, and why the one there was is set aside."""
    if stored is None or stored.epoch != turn.epoch:
        return "", ""
    return ("", stored.quarantined) if stored.quarantined else (stored.session, "")
