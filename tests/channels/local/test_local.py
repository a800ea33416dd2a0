"""The local channel by itself: messages that repeat, files that are kept, and what is shown now."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from channels.local import channel as local
from channels.local.channel import LocalChannel, Shown, message_of, received_file, sent_file
from core.channel import (
    Connection,
    Delete,
    Find,
    Marks,
    Refused,
    Retitle,
    Revise,
    Send,
    SendFile,
)
from core.finding import nonce_of
from core.messages import Address, FileKind, FileRef, Incoming, Message, Part

LANE = Address("local", "main")


class Taking:
    """What the channel hands on."""

    def __init__(self) -> None:
        self.taken: list[Incoming] = []

    async def accept(self, incoming: Sequence[Incoming]) -> None:
        self.taken += incoming

    def glance(self, incoming: Sequence[Incoming]) -> None: ...

    async def marks(self, channel: str) -> Marks:
        return Marks()

    def reached(self, channel: str, at: int) -> None: ...

    def connection(self, channel: str, connection: Connection) -> None: ...


def made(folder: Path | None = None) -> LocalChannel:
    numbers = itertools.count(1)
    times = itertools.count(1_796_000_000_000)
    return LocalChannel(lambda: f"id{next(numbers):06}", lambda: next(times), folder)


async def test_a_send_that_is_repeated_makes_the_same_message() -> None:
    nonce = nonce_of(7, 1_796_000_000_000)
    first = await made().do(Send(LANE, Part("hello"), nonce=nonce))
    again = await made().do(Send(LANE, Part("hello"), nonce=nonce))  # after a crash, say
    assert first.message_id == again.message_id == message_of(nonce)
    assert (await made().do(Find(LANE, nonce, 0))).message_id == "", "so it may be sent again"


async def test_ids_are_in_the_order_in_which_messages_stand() -> None:
    ids = [message_of(nonce_of(n, 1_796_000_000_000 + n // 3)) for n in range(1, 40)]
    assert ids == sorted(ids)
    preview = message_of(nonce_of(40, 1_796_000_000_013, preview=True))
    assert preview > ids[-1]


async def test_what_is_shown_now_is_known_without_the_store() -> None:
    channel, seen = made(), list[Shown]()
    forget = channel.on_shown(seen.append)
    done = await channel.do(Send(LANE, Part("ha"), nonce="1.1"))
    await channel.do(Revise(LANE, done.message_id, Part("half an answer")))
    shown = channel.shown(done.message_id)
    assert shown is not None
    assert (shown.text, shown.lane) == ("half an answer", "main")
    await channel.do(Delete(LANE, done.message_id))
    await channel.do(Retitle(LANE, "A name"))
    forget()
    await channel.do(Send(LANE, Part("unseen"), nonce="2.2"))
    assert [one.kind for one in seen] == ["sent", "revised", "deleted", "titled"]


async def test_what_is_shown_now_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SHOWN_SIGNS", 1000)
    channel = made()
    ids = [
        (await channel.do(Send(LANE, Part("x" * 400), nonce=f"{n:x}.1"))).message_id
        for n in range(1, 6)
    ]
    assert [channel.shown(one) is not None for one in ids] == [False, False, False, True, True]


async def test_a_file_that_was_sent_is_kept_though_its_copy_goes(tmp_path: Path) -> None:
    copy, channel = tmp_path / "copy.txt", made(tmp_path / "files")
    copy.write_text("hello")
    done = await channel.do(SendFile(LANE, copy, "report.txt", nonce="5.1"))
    again = await channel.do(SendFile(LANE, copy, "report.txt", nonce="5.1"))  # after a crash
    assert done == again
    copy.unlink()
    assert (tmp_path / "files" / sent_file(done.message_id)).read_text() == "hello"


async def test_a_file_that_came_by_the_page_is_fetched_and_nothing_else(tmp_path: Path) -> None:
    channel, target = made(tmp_path / "files"), tmp_path / "target"
    (tmp_path / "files").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "files" / received_file("abcdefgh")).write_text("hello")
    await channel.fetch(FileRef("abcdefgh", FileKind.DOCUMENT, "a.txt"), target)
    assert target.read_text() == "hello"
    for ref in ("../secret", "x/../../secret", "", "ijklmnop", "a" * 65):
        with pytest.raises(Refused):
            await channel.fetch(FileRef(ref, FileKind.DOCUMENT, "a.txt"), target)
    with pytest.raises(Refused):
        await made().fetch(FileRef("abcdefgh", FileKind.DOCUMENT, "a.txt"), target)


async def test_who_names_their_message_is_known_by_that_name() -> None:
    channel, taking = made(), Taking()
    channel._intake = taking
    first = await channel.say("main", "web:ana@example.org", "Ana", "hi", ident="say:a:one")
    again = await channel.say("main", "web:ana@example.org", "Ana", "hi", ident="say:a:one")
    other = await channel.say("main", "web:ana@example.org", "Ana", "hi")
    assert first == again == "local:say:a:one"
    assert other not in (first, "")
    ids = [one.message_id for one in taking.taken if isinstance(one, Message)]
    assert ids == sorted(set(ids))
