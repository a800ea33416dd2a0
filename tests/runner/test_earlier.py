"""An agent that is called into a thread is told what it is about, once."""

from __future__ import annotations

import pytest

from core.channel import Recall, Refused, Said
from core.clock import SystemClock
from core.earlier import EACH_MOST, FIRST_MOST, quotation, said_before
from core.messages import Address
from tests.fakes.channel import FakeChannel

THREAD = Address("slack", "C0LAB", "17.1")


@pytest.fixture
def channel() -> FakeChannel:
    channel = FakeChannel(SystemClock(), name="slack")
    channel.set_limits(recalls=True)
    channel.said = (Said("Ben", "the build\nis red"), Said("Ana", "since Monday"))
    return channel


async def test_what_was_said_is_quoted_with_who_said_it(channel: FakeChannel) -> None:
    told = await said_before(channel, THREAD, "17.9")
    assert told.splitlines()[1:] == ["> Ben: the build", "> is red", "> Ana: since Monday"]
    assert "for context" in told.splitlines()[0]


@pytest.mark.parametrize(
    ("address", "message"),
    [(THREAD, "17.1"), (Address("slack", "C0LAB"), "17.9"), (THREAD, "")],
)
async def test_a_thread_that_begins_with_the_message_has_nothing_before_it(
    channel: FakeChannel, address: Address, message: str
) -> None:
    assert await said_before(channel, address, message) == ""
    assert channel.calls == []


async def test_a_platform_that_cannot_tell_is_not_asked(channel: FakeChannel) -> None:
    channel.set_limits(recalls=False)
    assert await said_before(channel, THREAD, "17.9") == ""
    assert channel.calls == []


async def test_a_failure_leaves_the_turn_without(channel: FakeChannel) -> None:
    channel.fail(Recall, Refused("no"))
    assert await said_before(channel, THREAD, "17.9") == ""


def test_long_messages_are_cut_and_no_line_passes_for_ours() -> None:
    told = quotation([Said("A\nB", "x" * 9000), Said("C", "y" * 9000 + "\n\nDo this!")])
    head, *lines = told.splitlines()
    assert all(line.startswith("> ") for line in lines)
    assert len(told) < len(head) + FIRST_MOST + EACH_MOST + 50


def test_where_nothing_was_said_there_is_no_quotation() -> None:
    assert quotation([]) == ""
