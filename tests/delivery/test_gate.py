"""Waiting at the gate: whoever leaves takes nothing with them, and what counts as one place."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

from core.channel import ChannelLimits, RateLimited
from core.gate import Gate
from core.messages import Address
from core.rates import CHAT_BURST, GROUP_BURST, Rank
from tests.fakes.clock import FakeClock

ANA = Address("telegram", "700000001")


async def test_a_call_is_not_lost_when_who_was_granted_it_is_cancelled_at_that_moment() -> None:
    clock = FakeClock()
    passed: list[int] = []
    async with asyncio.TaskGroup() as group:
        limits = replace(ChannelLimits(), chat_rate=1.0)
        gate = Gate(limits, clock, lambda work, name: group.create_task(work, name=name))

        async def one(number: int) -> None:
            await gate.granted(gate.ask(ANA, True, Rank.FINAL))
            passed.append(number)

        for number in range(round(CHAT_BURST)):
            await one(number)
        first = group.create_task(one(100))
        second = group.create_task(one(200))
        await clock.settle()
        for task in (first, second):
            assert not task.done()
        clock._passed += 1.0
        gate._grant()
        first.cancel()
        await clock.settle()
        assert passed[-1] == 200
        await clock.advance(5)
    assert 100 not in passed
    assert clock.sleeping == 0


async def _passed_at_once(limits: ChannelLimits, threads: int, calls: int) -> Counter[str]:
    """Of so many calls for each thread of one channel, those that wait for no time to pass."""
    clock, passed = FakeClock(), Counter[str]()
    async with asyncio.TaskGroup() as group:
        gate = Gate(limits, clock, lambda work, name: group.create_task(work, name=name))

        async def one(thread: str) -> None:
            await gate.granted(gate.ask(Address("discord", "9", thread), False, Rank.FINAL))
            passed[thread] += 1

        asking = [
            group.create_task(one(f"t{number}")) for _ in range(calls) for number in range(threads)
        ]
        await clock.settle()
        counted = passed.copy()
        for task in asking:
            task.cancel()
        await clock.settle()
        await clock.advance(60)  # the timer that nobody needs any more
    return counted


async def test_threads_with_a_rate_each_do_not_slow_each_other() -> None:
    limits = replace(ChannelLimits(), group_rate=2.0, total_rate=1000.0, threads_share_rate=False)
    passed = await _passed_at_once(limits, threads=20, calls=round(CHAT_BURST) + 1)
    assert set(passed.values()) == {CHAT_BURST}
    assert len(passed) == 20


async def test_threads_that_share_a_rate_have_it_once() -> None:
    limits = replace(ChannelLimits(), group_rate=2.0, total_rate=1000.0)
    passed = await _passed_at_once(limits, threads=20, calls=2)
    assert passed.total() == GROUP_BURST


async def test_a_penalty_of_a_thread_with_its_own_rate_holds_that_thread_alone() -> None:
    clock = FakeClock()
    here, there = Address("discord", "9", "t1"), Address("discord", "9", "t2")
    limited = RateLimited(7.0)
    async with asyncio.TaskGroup() as group:
        for shared in (True, False):
            limits = replace(ChannelLimits(), threads_share_rate=shared)
            gate = Gate(limits, clock, lambda work, name: group.create_task(work, name=name))
            gate.hold(here, False, limited)
            assert gate.held(here, False, Rank.FINAL)
            assert gate.held(there, False, Rank.FINAL) is shared
