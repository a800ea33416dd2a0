"""What an agent reads back of its thread: what is stored, and what the platform can tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import reading
from core.channel import Recall, Refused, Said
from core.messages import Address
from core.reading import ALL, DIRECT, NOTHING, STORED, UNTOLD, read_back
from core.store import rows
from core.store.records import MessageRow
from core.store.store import Store
from core.turns import Kind, Origin, Status, Turn
from tests.fakes.channel import FakeChannel
from tests.fakes.clock import FakeClock, QuickClock

LANE = "slack:C0LAB:17.1"
THREAD = Address("slack", "C0LAB", "17.1")
RUNNING = 2


def turn(number: int, status: Status = Status.DONE) -> Turn:
    return Turn(number, LANE, "slack:U0ANA", Origin.PERSON, Kind.MAIN, number, status=status)


def stored(number: int, text: str, at: int, of: int = 1) -> MessageRow:
    name = f"slack:{number}"
    return MessageRow(number, name, LANE, of, "slack:U0ANA", "Ana", f"17.{number}", text, at)


class Thread:
    """A thread with one turn that is over, one that runs, and a platform that may know more."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.channel = FakeChannel(QuickClock(100), name="slack")
        self.channel.set_limits(recalls=True)

    async def begin(self, address: Address = THREAD, *, direct: bool = False) -> None:
        await self.store.save(
            rows.new_lane(LANE, address, direct, "", 1),
            rows.turn(turn(1)),
            rows.message(stored(20, "@laneway and now?", 2_000)),
            rows.turn_result(1, 4_000, "it is done", ""),
            rows.turn(turn(RUNNING, Status.RUNNING)),
            rows.message(stored(50, "@laneway what did Ben say?", 5_000, RUNNING)),
        )

    async def read(self, limit: int = 20) -> list[str]:
        """The head, and each message without its time."""
        told = await read_back(self.store, lambda _: self.channel, turn(RUNNING), limit)
        return [part.partition("UTC] ")[2] or part for part in told.split("\n\n")]


@pytest.fixture
async def thread(tmp_path: Path):  # type: ignore[no-untyped-def]
    async with Store.open(tmp_path / "laneway.db", FakeClock()) as store:
        yield Thread(store)


async def test_what_people_said_among_themselves_stands_between_what_is_stored(
    thread: Thread,
) -> None:
    await thread.begin()
    thread.channel.said = (
        Said("Ben", "the build is red", "17.1", 1_000),
        Said("Ana", "@laneway and now?", "17.20", 2_000),
        Said("Ben  B\n", "leave it", "17.30", 3_000),
        Said("Ben", "", "17.31", 3_100),
        Said("Ana", "@laneway what did Ben say?", "17.50", 5_000),
    )
    assert await thread.read() == [
        ALL,
        "Ben: the build is red",
        "Ana: @laneway and now?",
        "Ben B: leave it",
        "agent: it is done",
    ]
    (call,) = thread.channel.of(Recall)
    assert call.action == Recall(THREAD, "", 20)


async def test_only_the_newest_are_told(thread: Thread) -> None:
    await thread.begin()
    thread.channel.said = (Said("Ben", "first", "17.1", 1_000), Said("Ben", "x", "17.3", 3_000))
    assert await thread.read(2) == [ALL, "Ben: x", "agent: it is done"]


@pytest.mark.parametrize(
    ("address", "direct", "recalls", "head"),
    [
        (Address("slack", "D0ANA", "17.1"), True, False, DIRECT),
        (Address("slack", "C0LAB"), False, True, STORED),
        (THREAD, False, False, STORED),
    ],
)
async def test_where_nobody_can_tell_more_the_answer_says_that_it_is_what_is_stored(
    thread: Thread, address: Address, direct: bool, recalls: bool, head: str
) -> None:
    thread.channel.set_limits(recalls=recalls)
    thread.channel.said = (Said("Ben", "unheard", "17.1", 1_000),)
    await thread.begin(address, direct=direct)
    assert await thread.read() == [head, "Ana: @laneway and now?", "agent: it is done"]
    assert not thread.channel.of(Recall)


async def test_a_platform_that_does_not_answer_leaves_what_is_stored_and_that_is_said(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    await thread.begin()
    thread.channel.fail(Recall, Refused("no"))
    assert (await thread.read())[0] == UNTOLD
    monkeypatch.setattr(reading, "PATIENCE", 0.02)
    thread.channel.seconds = 60 * 100
    assert await thread.read() == [UNTOLD, "Ana: @laneway and now?", "agent: it is done"]


async def test_of_a_thread_in_which_nothing_was_said_that_is_said(thread: Thread) -> None:
    await thread.store.save(
        rows.new_lane(LANE, THREAD, False, "", 1), rows.turn(turn(RUNNING, Status.RUNNING))
    )
    assert await thread.read() == [ALL, NOTHING]


async def test_a_long_message_is_cut_and_its_length_told(thread: Thread) -> None:
    await thread.begin()
    thread.channel.said = (Said("Ben", "x" * 9_000, "17.1", 4_500),)
    (line,) = (await thread.read(1))[1:]
    assert line.endswith("x… (9005 characters)")
    assert len(line) < 2_100
