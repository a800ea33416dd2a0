from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.delivery.scene import Scene, scene


@pytest_asyncio.fixture
async def it(tmp_path: Path) -> AsyncIterator[Scene]:
    """A running outbox with two private chats and two topics of one group."""
    async with scene(tmp_path) as running:
        yield running
