"""The command line's way to the running gateway, or to its database while it is down.

What only the database needs is imported then: most commands find the gateway running.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.store.errors import Locked, StoreError
from gateway.cli.border import plain
from gateway.config import Settings
from gateway.paths import DATABASE
from gateway.socket_path import LONGEST_LINE, socket_path
from gateway.trouble import Trouble

if TYPE_CHECKING:
    from core.people import People
    from core.store.store import Store


class Talk:
    """One request to the gateway and what comes back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, message: dict[str, Any]) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def answers(self) -> AsyncIterator[dict[str, Any]]:
        """Every line the gateway writes, until it is done; Trouble when it refuses."""
        while line := await self._reader.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise Trouble(str(answer["error"]))
            yield answer


@asynccontextmanager
async def talk(home: Path) -> AsyncIterator[Talk | None]:
    """A connection to the running gateway of this home; None when it is down."""
    try:
        reader, writer = await asyncio.open_unix_connection(socket_path(home), limit=LONGEST_LINE)
    except (FileNotFoundError, ConnectionRefusedError):
        yield None
        return
    try:
        yield Talk(reader, writer)
    finally:
        writer.close()


PATIENCE = 10.0  # seconds until a home that is in use is a trouble
Down = Callable[["Store", "People"], Awaitable[Any]]
_MAKING = ("job_add", "signin")  # what works before the first start


async def ask(settings: Settings, request: dict[str, Any], down: Down) -> Any:
    """What the gateway answers; while it is down, what ``down`` finds in the database."""
    end = time.monotonic() + PATIENCE
    while True:
        async with talk(settings.home) as gateway:
            if gateway is not None:
                gateway.send(request)
                async for answer in gateway.answers():
                    return answer["result"]
                raise Trouble("the gateway ended before it answered; try again")
        try:
            return await _look(settings, down, str(request["do"]))
        except Locked as fault:
            # Another command looks at the home, or a gateway starts or ends: both pass.
            if time.monotonic() > end:
                raise Trouble(str(fault)) from fault
        except StoreError as fault:
            raise Trouble(str(fault)) from fault
        await asyncio.sleep(0.1)


async def _look(settings: Settings, down: Down, asked: str) -> Any:
    """In the database itself, which nobody else uses meanwhile.

    A home without one knows nothing: that is said beside the answer, and only what would make
    something makes a database there.
    """
    from core.clock import SystemClock
    from core.people import People
    from core.store.store import Store
    from gateway.channel_parts import lists

    with ExitStack() as stack:
        path = settings.home / DATABASE
        if not path.exists() and asked not in _MAKING:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="laneway-"))
            hint = f"there is no database in {settings.home} yet; start with: laneway run"
            print(plain(hint), file=sys.stderr)
            path = Path(folder) / DATABASE
        async with Store.open(path, SystemClock()) as store:
            people = People(lists(settings))
            await people.load(store)
            return await down(store, people)
