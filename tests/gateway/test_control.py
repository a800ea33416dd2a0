"""The local socket: what a terminal does or leaves undone costs nobody else anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from gateway.control import Control, listening

# Somewhat less than a socket takes at once, up to far more: with some of them a little is left to
# be sent when all is written.
SIZES = (*range(150_000, 300_000, 4_000), 3_000_000)


async def big(request: Mapping[str, Any]) -> str:
    return "x" * int(request["size"])


async def asked(path: Path, size: int) -> Any:
    """The answer, read when the gateway has written all that the socket takes."""
    reader, writer = await asyncio.open_unix_connection(path, limit=size + 1000)
    writer.transport.pause_reading()
    writer.write(b'{"do": "big", "size": %d}\n' % size)
    await asyncio.sleep(0.005)
    writer.transport.resume_reading()
    answer = json.loads(await reader.readline())
    writer.close()
    return len(answer["result"])


async def test_a_long_answer_read_late_or_not_at_all_ends_with_its_terminal(tmp_path: Path) -> None:
    nothing = cast(Any, None)
    control = Control(nothing, nothing, nothing, nothing, nothing, {"big": big})
    path = tmp_path / "socket"
    with listening(path) as listener:
        serving = asyncio.create_task(control.serve(listener))
        for size in SIZES:
            assert await asked(path, size) == size
        _, writer = await asyncio.open_unix_connection(path)
        writer.write(b'{"do": "big", "size": 3000000}\n')
        await asyncio.sleep(0.01)
        writer.transport.abort()  # it goes without reading
        assert await asked(path, 10) == 10
        assert not serving.done()
        serving.cancel()
        await asyncio.wait((serving,))
        assert serving.cancelled()
