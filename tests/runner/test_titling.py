"""A thread without a name gets one after its first answer, and never a second one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from core.channel import ChannelLimits
from core.messages import Address
from core.store import reads, rows
from core.store.records import MessageRow
from core.store.store import Store
from core.titling import Titling
from core.turns import Kind, Origin, Status, Turn
from tests.fakes.channel import FakeChannel
from tests.fakes.clock import FakeClock

THREAD = "telegram:-100:36"


@dataclass
class Set:
    titles: list[tuple[str, str]] = field(default_factory=list)
    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def said(self, lane: str) -> None:
        await self.open.wait()

    def retitle(self, lane: str, title: str) -> None:
        self.titles.append((lane, title))


@dataclass
class Scene:
    store: Store
    clock: FakeClock
    channel: FakeChannel
    set: Set
    titling: Titling

    async def lane(self, thread: str = "36", direct: bool = False, title: str = "") -> str:
        lane = f"telegram:-100:{thread}" if thread else "telegram:-100"
        address = Address("telegram", "-100", thread)
        await self.store.save(rows.new_lane(lane, address, direct, title, self.clock.now()))
        return lane

    async def answered(self, text: str, lane: str = THREAD, **changes: Any) -> None:
        """A turn that has just ended, and all that follows from it."""
        ids = self.store.ids
        given = {"status": Status.DONE, "origin": Origin.PERSON, "kind": Kind.MAIN, **changes}
        turn = Turn(ids.turn(), lane, "telegram:1", arrived=self.clock.now(), **given)
        said = MessageRow(
            ids.message(), f"m{turn.id}", lane, turn.id, "telegram:1", "Ana", "41", text, 5
        )
        await self.store.save(rows.turn(turn), rows.message(said))
        self.titling.over(turn)
        await self.clock.settle()

    async def title(self, lane: str = THREAD) -> str:
        row = await reads.lane(self.store, lane)
        assert row is not None
        return row.title


@asynccontextmanager
async def opened(home: Path, *, closed: bool = False, **limits: Any) -> AsyncIterator[Scene]:
    clock = FakeClock()
    async with Store.open(home / "laneway.db", clock) as store, asyncio.TaskGroup() as group:
        channel = FakeChannel(clock, limits=ChannelLimits(**{"titles": True, **limits}))
        set_ = Set()
        if not closed:
            set_.open.set()
        titling = Titling(store, set_, lambda lane: channel)
        clock.watch(lambda: store.busy)
        running = group.create_task(titling.run())
        await clock.settle()
        yield Scene(store, clock, channel, set_, titling)
        running.cancel()


async def test_a_thread_is_named_after_its_first_answer(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.lane()
        await scene.answered("**fix** the tests")
        assert scene.set.titles == [(THREAD, "fix the tests")]
        assert await scene.title() == "fix the tests"


async def test_it_is_named_once_also_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.lane()
        await scene.answered("first")
        await scene.answered("second")
        assert scene.set.titles == [(THREAD, "first")]
    async with opened(tmp_path) as scene:
        await scene.answered("third")
        assert scene.set.titles == []


async def test_the_answer_comes_first(tmp_path: Path) -> None:
    async with opened(tmp_path, closed=True) as scene:
        await scene.lane()
        await scene.answered("first")
        await scene.answered("second")
        assert (scene.set.titles, await scene.title()) == ([], "")
        scene.set.open.set()
        await scene.clock.settle()
        assert scene.set.titles == [(THREAD, "first")]


async def test_a_name_that_somebody_gave_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.lane(title="Release")
        await scene.answered("fix the tests")
        assert (scene.set.titles, await scene.title()) == ([], "Release")


async def test_also_one_that_was_given_meanwhile(tmp_path: Path) -> None:
    async with opened(tmp_path, closed=True) as scene:
        await scene.lane()
        await scene.answered("fix the tests")
        await scene.store.save(rows.lane_setting(THREAD, "title", "Release"))
        scene.set.open.set()
        await scene.clock.settle()
        assert (scene.set.titles, await scene.title()) == ([], "Release")


@pytest.mark.parametrize(
    "changes",
    [
        {"status": Status.FAILED},
        {"status": Status.STOPPED},
        {"kind": Kind.SIDE},
    ],
)
async def test_only_an_answer_names_it(tmp_path: Path, changes: dict[str, Any]) -> None:
    async with opened(tmp_path) as scene:
        await scene.lane()
        await scene.answered("fix the tests", **changes)
        assert scene.set.titles == []


async def test_a_message_without_words_leaves_it_to_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.lane()
        await scene.answered("\U0001f44d")
        await scene.answered("fix the tests")
        assert scene.set.titles == [(THREAD, "fix the tests")]


async def test_a_chats_main_timeline_is_not_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        lane = await scene.lane(thread="")
        await scene.answered("fix the tests", lane)
        assert scene.set.titles == []


async def test_where_there_are_no_titles_nothing_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path, titles=False) as scene:
        await scene.lane()
        await scene.answered("fix the tests")
        assert await scene.title() == ""


@pytest.mark.parametrize(("direct", "named"), [(True, 1), (False, 0)])
async def test_where_group_threads_always_have_names_only_direct_ones_get_one(
    tmp_path: Path, direct: bool, named: int
) -> None:
    async with opened(tmp_path, named_threads=True) as scene:
        await scene.lane(direct=direct)
        await scene.answered("fix the tests")
        assert len(scene.set.titles) == named
