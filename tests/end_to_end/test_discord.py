"""The whole gateway on a Discord server, as a process of its own."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.end_to_end.house import Process, process
from tests.fakes.discord import ANA, BEN, BOT, CHANNEL, MAL, OTHER, FakeDiscord

ME = f"<@{BOT}>"


@asynccontextmanager
async def gateway(home: Path, fake: FakeDiscord) -> AsyncIterator[Process]:
    settings = {
        "LANEWAY_DISCORD_TOKEN": fake.token,
        "LANEWAY_DISCORD_API_BASE": fake.url,
        "LANEWAY_DISCORD_GATEWAY_URL": fake.gateway_url,
        "LANEWAY_ADMINS": f"discord:{ANA}",
        "LANEWAY_MEMBERS": f"discord:{BEN}",
        "LANEWAY_PLACES": f"discord:{CHANNEL}",
    }
    async with process(home, None, **settings) as running:
        yield running


async def test_people_are_answered_where_they_wrote_also_after_a_pause(tmp_path: Path) -> None:
    async with FakeDiscord() as fake:
        dm = fake.direct(ANA)["id"]
        async with gateway(tmp_path / "home", fake) as running:
            await fake.until(lambda: fake.connected and fake.commands)
            fake.user_says("/say hello **there** @everyone")
            root = fake.user_says(f"{ME} /say in a thread", channel=CHANNEL)
            fake.user_says(f"{ME} /say not for strangers", user=MAL, channel=CHANNEL)
            fake.user_says(f"{ME} /say not here", channel=OTHER)
            fake.user_says("/say not for strangers", user=MAL)
            await fake.until(lambda: fake.texts(dm))
            await fake.until(lambda: fake.texts(root["id"]) == ["in a thread"])
            more = fake.user_says("/say more", user=BEN, channel=root["id"])
            await fake.until(lambda: fake.texts(root["id"]) == ["in a thread", "more"])
            asked = fake.command("status", channel=root["id"])
            await fake.until(lambda: fake.answers(asked))
            assert fake.answers(asked)[0]["private"]
            assert "idle" in fake.answers(asked)[0]["content"]
            assert fake.texts(root["id"]) == ["in a thread", "more"]
            lost = fake.command("stop", channel=CHANNEL)
            await fake.until(lambda: fake.answers(lost))
            assert "!stop in its thread" in fake.answers(lost)[0]["content"]
            assert fake.texts(CHANNEL) == fake.texts(OTHER) == []
            assert not any(one["pinged"] for one in fake.shown(dm))
            assert not fake.called("POST", f"/channels/{fake.direct(MAL)['id']}")
            threads = [one["id"] for one in fake.channels.values() if one["type"] == 11]
            assert threads == [root["id"]]
            await fake.until(lambda: not fake.reactions[root["id"], more["id"]])
            assert await running.end(signal.SIGTERM) == 0
        assert fake.token not in "".join(running.lines)

        fake.user_says("/say while down")
        late = fake.user_says(f"{ME} /say a new matter", channel=CHANNEL)
        fake.user_says("/say and in the thread", channel=root["id"], user=BEN)
        async with gateway(tmp_path / "home", fake):
            await fake.until(lambda: "while down" in fake.texts(dm))
            await fake.until(lambda: fake.texts(late["id"]) == ["a new matter"])
            await fake.until(lambda: "and in the thread" in fake.texts(root["id"]))
        assert len(fake.texts(root["id"])) == 3
        assert len(fake.texts(dm)) == 2
