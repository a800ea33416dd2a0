"""Who is told of what a platform refused for good: once of an answer, and of each file by name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from core.channel import Refused, SendError, ThreadGone
from core.items import Item
from core.messages import Part
from core.store import rows
from core.store.records import Delivery, DeliveryKind, FilePart
from core.undelivered import Undelivered
from tests.delivery.scene import ANA, TOPIC, Scene

ANSWER, FILE = DeliveryKind.ANSWER, DeliveryKind.FILE


async def told(it: Scene, failed: Sequence[tuple[Part | FilePart, SendError]]) -> list[Delivery]:
    """What is said when these deliveries of one turn failed."""
    turn = await it.turn(TOPIC)
    await it.store.save(rows.lane_setting(ANA, "person", ANA))
    undelivered = Undelivered(it.store, lambda lane: it.channel, it.clock)
    said: list[Delivery] = []

    async def take(*items: Item) -> list[bool]:
        for item in items:
            said.extend(item.deliveries)
            if any("the end" in text_of(one) for one in item.deliveries):
                ended.set()
        return [True] * len(items)

    ended = asyncio.Event()
    last = await it.turn(TOPIC)
    for of, (part, error) in [*((turn, one) for one in failed), (last, THE_END)]:
        kind = FILE if isinstance(part, FilePart) else ANSWER
        ident = it.store.ids.delivery()
        undelivered.failed(Delivery(ident, TOPIC, of, kind, part), error)
    running = asyncio.create_task(undelivered.run(take), name="undelivered")
    async with asyncio.timeout(10):
        await ended.wait()
    running.cancel()
    return said[:-1]


THE_END = (FilePart("e", "the end"), Refused("no"))


def text_of(one: Delivery) -> str:
    return one.part.text if isinstance(one.part, Part) else ""


async def test_each_file_that_is_refused_is_named_once(it: Scene) -> None:
    no = Refused("it takes no such files")
    files = [FilePart(name, name) for name in ("a.exe", "b.exe", "a.exe")]
    said = await told(it, [(one, no) for one in files])
    assert [name for one in said for name in ("a.exe", "b.exe") if name in text_of(one)] == [
        "a.exe",
        "b.exe",
    ]


async def test_of_a_thread_that_is_gone_is_told_once_whatever_should_have_stood_there(
    it: Scene,
) -> None:
    gone = ThreadGone("deleted")
    [said] = await told(it, [(Part("words"), gone), (FilePart("a", "a.txt"), gone)])
    assert said.lane == ANA


@pytest.mark.parametrize("parts", [1, 3])
async def test_of_an_answer_is_told_once_however_many_parts_it_has(it: Scene, parts: int) -> None:
    [said] = await told(it, [(Part("words"), Refused("no"))] * parts)
    assert "The answer to" in text_of(said)
