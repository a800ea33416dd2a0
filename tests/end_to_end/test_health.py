"""What supervisors see: alive always, ready only while the gateway can do its work."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.house import House
from tests.fakes.ports import free_port
from tests.fakes.telegram import ANA, TOKEN

Answer = tuple[int, dict[str, Any]]


class Supervisor:
    """Looks at a gateway from outside, over HTTP."""

    def __init__(self) -> None:
        self.port = free_port()

    async def look(self, path: str = "/readyz") -> Answer:
        async with httpx.AsyncClient(verify=False, trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{self.port}{path}")
            return answer.status_code, answer.json()

    async def until(self, wanted: Callable[[Answer], bool]) -> dict[str, Any]:
        """Look until it is so; then it is alive as well."""
        async with asyncio.timeout(30):
            while True:
                try:
                    found = await self.look()
                except httpx.ConnectError:
                    found = (0, {})
                if wanted(found):
                    assert await self.look("/healthz") == (200, {"status": "ok"})
                    return found[1]
                await asyncio.sleep(0.05)

    async def ready(self) -> None:
        body = await self.until(lambda found: found[0] == 200)
        assert body == {"status": "ready", "reasons": []}

    async def unready(self, words: str) -> None:
        """503, and a reason with these words."""
        body = await self.until(lambda found: found[0] == 503 and words in str(found[1]))
        assert body["status"] == "not ready"
        assert TOKEN not in str(body)


async def test_readiness_follows_telegram_down_and_back(tmp_path: Path) -> None:
    supervisor = Supervisor()
    async with House(tmp_path, LANEWAY_WEB_PORT=str(supervisor.port)) as house:
        await supervisor.ready()
        await house.fake.stop()
        await supervisor.unready("Telegram")
        await house.fake.start(house.fake.port)
        house.fake.user_says("/say back again")
        await house.fake.until(lambda: house.fake.texts(ANA) == ["back again"])
        await supervisor.ready()
        house.fake.fail("getUpdates", 500, "Internal Server Error", times=0)
        house.fake.user_says("/say late")
        await supervisor.unready("Telegram")
        house.fake.heal()
        await house.fake.until(lambda: house.fake.texts(ANA)[-1] == "late")
        await supervisor.ready()


async def test_a_token_that_is_refused_is_the_reason_and_this_machine_still_works(
    tmp_path: Path,
) -> None:
    supervisor = Supervisor()
    async with House(tmp_path, LANEWAY_WEB_PORT=str(supervisor.port)) as house:
        await supervisor.ready()
        house.fake.revoke("800000001:another")
        await supervisor.unready("token")
        assert await house.ask("lanes") == []
        await house.stop_gateway()
        await house.start_gateway(LANEWAY_TELEGRAM_TOKEN="800000001:another")
        await supervisor.ready()


async def test_a_store_that_cannot_write_holds_everything_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.store.store.BUSY_SECONDS", 0.3)
    supervisor = Supervisor()
    async with House(tmp_path, LANEWAY_WEB_PORT=str(supervisor.port)) as house:
        await supervisor.ready()
        with closing(sqlite3.connect(house.home / "laneway.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            house.fake.user_says("/say kept")
            await supervisor.unready("database")
            assert house.fake.shown(ANA) == []
            other.execute("ROLLBACK")
        await house.fake.until(lambda: house.fake.texts(ANA) == ["kept"])
        await supervisor.ready()


async def test_other_addresses_and_methods_are_refused(tmp_path: Path) -> None:
    supervisor = Supervisor()
    async with House(tmp_path, LANEWAY_WEB_PORT=str(supervisor.port)):
        await supervisor.ready()
        url = f"http://127.0.0.1:{supervisor.port}"
        async with httpx.AsyncClient(base_url=url, verify=False, trust_env=False) as client:
            assert (await client.get("/nothing")).status_code == 404
            assert (await client.post("/readyz")).status_code == 405
            assert (await client.get("/../../etc/passwd")).status_code == 404
