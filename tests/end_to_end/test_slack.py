"""The whole gateway on a Slack workspace, as a process of its own."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.end_to_end.house import Process, process
from tests.fakes.slack import ANA, ANA_DM, APP_TOKEN, BEN, BOT_TOKEN, LAB, MAL, MAL_DM, FakeSlack

ME = "<@UBOT>"


@asynccontextmanager
async def gateway(home: Path, fake: FakeSlack) -> AsyncIterator[Process]:
    settings = {
        "LANEWAY_SLACK_BOT_TOKEN": fake.bot_token,
        "LANEWAY_SLACK_APP_TOKEN": fake.app_token,
        "LANEWAY_SLACK_API_BASE": fake.url,
        "LANEWAY_ADMINS": f"slack:{ANA}",
        "LANEWAY_MEMBERS": f"slack:{BEN}",
        "LANEWAY_PLACES": f"slack:{LAB}",
    }
    async with process(home, None, **settings) as running:
        yield running


async def test_people_are_answered_where_they_wrote_also_after_a_pause(tmp_path: Path) -> None:
    async with FakeSlack() as fake:
        async with gateway(tmp_path / "home", fake) as running:
            await fake.until(lambda: fake.sockets)
            fake.user_says("/say hello *there* & <@U0BEN>")
            root = fake.user_says(f"{ME} /say in a thread", channel=LAB)
            fake.user_says("/say not for strangers", user=MAL, channel=MAL_DM)
            await fake.until(lambda: fake.texts(ANA_DM) == ["hello there & @Ben"])
            await fake.until(lambda: fake.texts(LAB, root["ts"]) == ["in a thread"])
            more = fake.user_says("/say more", user=BEN, channel=LAB, thread=root["ts"])
            await fake.until(lambda: fake.texts(LAB, root["ts"]) == ["in a thread", "more"])
            command = fake.slash("/laneway", "status")
            await fake.until(lambda: "idle" in fake.texts(ANA_DM)[-1])
            await fake.until(lambda: fake.ephemerals)
            assert command.acked is not None
            assert fake.texts(LAB, "") == []
            assert fake.texts(MAL_DM) == []
            assert all(one.acked_after < 3 for one in fake.envelopes)
            await fake.until(lambda: not fake.reacted(more))
            assert await running.end(signal.SIGTERM) == 0
        log = "".join(running.lines)
        assert BOT_TOKEN not in log
        assert APP_TOKEN not in log
        assert "ticket=" not in log

        fake.user_says("/say while down")
        late = fake.user_says(f"{ME} /say a new matter", channel=LAB)
        async with gateway(tmp_path / "home", fake):
            await fake.until(lambda: "while down" in fake.texts(ANA_DM))
            await fake.until(lambda: fake.texts(LAB, late["ts"]) == ["a new matter"])
            assert fake.texts(LAB, root["ts"]) == ["in a thread", "more"]
