"""The whole gateway on a Slack workspace, beside Telegram."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.end_to_end.house import House
from tests.fakes.slack import ANA, ANA_DM, BEN, LAB, MAL, MAL_DM, FakeSlack
from tests.fakes.slack_rules import shown_text

ME = "<@UBOT>"


@asynccontextmanager
async def workspace(tmp_path: Path) -> AsyncIterator[tuple[House, FakeSlack]]:
    async with FakeSlack() as fake:
        house = House(
            tmp_path,
            LANEWAY_SLACK_BOT_TOKEN=fake.bot_token,
            LANEWAY_SLACK_APP_TOKEN=fake.app_token,
            LANEWAY_SLACK_API_BASE=fake.url,
            LANEWAY_ADMINS=f"slack:{ANA}",
            LANEWAY_MEMBERS=f"slack:{BEN}",
            LANEWAY_PLACES=f"slack:{LAB}",
        )
        async with house:
            await fake.until(lambda: fake.sockets)
            yield house, fake


async def test_people_are_answered_where_they_wrote(tmp_path: Path) -> None:
    async with workspace(tmp_path) as (_, fake):
        fake.user_says("/say hello *there* &amp; <@U0BEN>")
        root = fake.user_says(f"{ME} /say in a thread", channel=LAB)
        fake.user_says("/say not for strangers", user=MAL, channel=MAL_DM)
        await fake.until(lambda: fake.texts(ANA_DM) == ["hello there & @Ben"])
        await fake.until(lambda: fake.texts(LAB, root["ts"]) == ["in a thread"])
        fake.user_says("/say for Ben too", user=BEN, channel=LAB, thread=root["ts"])
        await fake.until(lambda: fake.texts(LAB, root["ts"]) == ["in a thread", "for Ben too"])
        command = fake.slash("/laneway", "status")
        await fake.until(lambda: fake.ephemerals and command.acked)
        assert "idle" in shown_text(fake.ephemerals[-1])
        fake.slash("/laneway", "stop", channel=LAB)
        await fake.until(lambda: len(fake.ephemerals) == 2)
        assert "!stop in its thread" in shown_text(fake.ephemerals[-1])
        assert fake.texts(ANA_DM) == ["hello there & @Ben"]
        assert fake.texts(LAB, "") == []
        assert fake.texts(MAL_DM) == []
        assert all(one.acked_after < 3 for one in fake.envelopes)


async def test_what_was_said_while_the_gateway_was_down_is_answered_once(tmp_path: Path) -> None:
    async with workspace(tmp_path) as (house, fake):
        root = fake.user_says(f"{ME} /say begun", channel=LAB)
        fake.user_says("/say before")
        await fake.until(lambda: fake.texts(ANA_DM) == ["before"])
        await fake.until(lambda: fake.texts(LAB, root["ts"]) == ["begun"])
        await house.stop_gateway()
        fake.user_says("/say while down", delivered=False)
        late = fake.user_says(f"{ME} /say a new matter", channel=LAB, delivered=False)
        fake.user_says("/say and more", channel=LAB, thread=root["ts"], delivered=False)
        await house.start_gateway()
        await fake.until(lambda: fake.texts(ANA_DM) == ["before", "while down"])
        await fake.until(lambda: fake.texts(LAB, late["ts"]) == ["a new matter"])
        await fake.until(lambda: fake.texts(LAB, root["ts"]) == ["begun", "and more"])


async def test_a_preview_has_a_stop_button_and_stays_as_what_was_said(tmp_path: Path) -> None:
    async with workspace(tmp_path) as (_, fake):
        asked = fake.user_says(f"{ME} /say working on it\n/sleep 30", channel=LAB)
        await fake.until(lambda: fake.texts(LAB, asked["ts"]))
        (preview,) = fake.shown(LAB, asked["ts"])
        assert fake.buttons(preview) == ["Stop"]
        fake.press("Stop")
        await fake.until(lambda: not fake.buttons(preview))
        assert fake.texts(LAB, asked["ts"])[0].startswith("working on it")
        assert fake.ephemerals[-1]["thread_ts"] == asked["ts"]


async def test_an_answer_of_unknown_fate_is_shown_once(tmp_path: Path) -> None:
    async with workspace(tmp_path) as (_, fake):
        fake.drop("chat.postMessage", after=True)
        fake.user_says("/say once")
        await fake.until(lambda: fake.called("conversations.history"))
        fake.user_says("/say next")
        await fake.until(lambda: fake.texts(ANA_DM) == ["once", "next"])
