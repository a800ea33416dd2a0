"""Waiting at the gate: whoever leaves takes nothing with them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from core.channel import ChannelLimits
from core.gate import Gate
from core.messages import Address
from core.rates import CHAT_BURST, Rank
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
