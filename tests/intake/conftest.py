"""One scene for a test that needs no settings of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.clock import FakeClock
from tests.intake.scene import Scene, opened


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def scene(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Scene]:
    async with opened(tmp_path, clock) as made:
        yield made
