"""The real timer: it rings at the instant and stops when nothing is left to wait for."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from core import alarm
from core.alarm import SchedulerAlarm


def soon(seconds: float) -> int:
    return time.time_ns() // 1_000_000 + round(seconds * 1000)


async def test_it_rings_at_the_instant_that_was_set_last() -> None:
    made, rung = SchedulerAlarm(), asyncio.Event()
    await made.set(soon(3600), rung.set)
    at = soon(0.05)
    await made.set(at, rung.set)
    async with asyncio.timeout(30):
        await rung.wait()
    assert soon(0) >= at
    made.close()


async def test_an_instant_that_has_passed_rings_at_once_however_long_ago() -> None:
    made, rung = SchedulerAlarm(), asyncio.Event()
    await made.set(soon(-86_400), rung.set)
    async with asyncio.timeout(30):
        await rung.wait()
    made.close()


async def test_it_ticks_in_between_so_that_a_step_of_the_clock_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(alarm, "TICK", 0.02)
    made, rings = SchedulerAlarm(), []
    enough = asyncio.Event()

    def ring() -> None:
        rings.append(time.monotonic())
        if len(rings) >= 3:
            enough.set()

    await made.set(soon(3600), ring)
    async with asyncio.timeout(30):
        await enough.wait()
    await made.set(None, ring)
    await asyncio.sleep(0)
    after = len(rings)
    await asyncio.sleep(0.06)
    assert len(rings) <= after + 1  # one may have been on its way


async def test_nothing_is_loaded_while_there_is_nothing_to_wait_for() -> None:
    made = SchedulerAlarm()
    await made.set(None, lambda: None)
    assert made._scheduler is None
    made.close()


async def test_a_tick_is_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "laneway")
    made, rung = SchedulerAlarm(), asyncio.Event()
    await made.set(soon(0), rung.set)
    async with asyncio.timeout(30):
        await rung.wait()
    made.close()
    assert not [one for one in caplog.records if one.name.startswith("apscheduler")]
