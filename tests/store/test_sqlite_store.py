"""The SQLite store keeps the contract of every store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from core.store.store import Store
from tests.contracts.store_contract import StoreContract
from tests.fakes.clock import FakeClock


class TestSqliteStore(StoreContract):
    def opened(self, home: Path, clock: FakeClock) -> AbstractAsyncContextManager[Store]:
        return Store.open(home / "home" / "laneway.db", clock)

    @asynccontextmanager
    async def failing(self, store: Store) -> AsyncIterator[None]:
        """SQLite's own limit of pages answers exactly as a full disk does."""
        writing = store._writer._connection
        async with writing.execute("PRAGMA page_count") as cursor:
            row = await cursor.fetchone()
        assert row is not None
        await writing.execute(f"PRAGMA max_page_count = {row[0]}")
        yield
        await writing.execute("PRAGMA max_page_count = 1000000000")
