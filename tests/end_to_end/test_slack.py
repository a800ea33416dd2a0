"""The whole gateway on a Slack workspace, beside Telegram."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.end_to_end.house import House, process
from tests.fakes.slack import ANA, ANA_DM, BEN, LAB, MAL, MAL_DM, FakeSlack
from tests.fakes.slack_rules import shown_text

ME = "<@UBOT>"


def settings_of(fake: FakeSlack) -> dict[str, str]:
    return {
        "LANEWAY_SLACK_BOT_TOKEN": fake.bot_token,
        "LANEWAY_SLACK_APP_TOKEN": fake.app_token,
        "LANEWAY_SLACK_API_BASE": fake.url,
        "LANEWAY_ADMINS": f"slack:{ANA}",
        "LANEWAY_MEMBERS": f"slack:{BEN}",
        "LANEWAY_PLACES": f"slack:{LAB}",
    }


@asynccontextmanager
async def workspace(tmp_path: Path) -> AsyncIterator[tuple[House, FakeSlack]]:
    async with FakeSlack() as fake:
        house = House(tmp_path, **settings_of(fake))
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


async def test_who_is_called_into_a_thread_knows_what_it_is_about(tmp_path: Path) -> None:
    async with workspace(tmp_path) as (_, fake):
        root = fake.user_says("The build is *red*", user=BEN, channel=LAB)
        thread = {"channel": LAB, "thread": root["ts"]}
        fake.user_says("since Monday", user=MAL, **thread)
        fake.user_says(f"{ME} why?", **thread)
        await fake.until(lambda: "why?" in "".join(fake.texts(LAB, root["ts"])))
        (first,) = fake.texts(LAB, root["ts"])
        assert "Ben: The build is red" in first
        assert first.index("since Monday") < first.index("why?")
        fake.user_says(f"{ME} and now?", **thread)
        await fake.until(lambda: len(fake.texts(LAB, root["ts"])) == 2)
        assert "Monday" not in fake.texts(LAB, root["ts"])[1]


async def test_in_a_thread_of_direct_messages_words_come_as_a_stream(tmp_path: Path) -> None:
    async with workspace(tmp_path) as (_, fake):
        root = fake.user_says("/say begun")
        await fake.until(lambda: fake.texts(ANA_DM) == ["begun"])
        fake.user_says("/say one\n/sleep 2\n/say two", thread=root["ts"])
        await fake.until(lambda: any(m.get("streaming") for m in fake.shown(ANA_DM)))
        await fake.until(lambda: not any(m.get("streaming") for m in fake.shown(ANA_DM)))
        await fake.until(lambda: "two" in "".join(fake.texts(ANA_DM, root["ts"])))
        assert len(fake.texts(ANA_DM, root["ts"])) == 1
        assert len(fake.called("chat.startStream")) == 1


async def test_a_stream_that_a_kill_cut_off_is_finished_after_the_restart(tmp_path: Path) -> None:
    async with FakeSlack() as fake:
        settings = settings_of(fake)
        async with process(tmp_path / "home", None, **settings) as running:
            await fake.until(lambda: fake.sockets)
            root = fake.user_says("a root", delivered=False)
            words = "/say half\n/sleep 1\n/say an answer\n/sleep 1\n/say  and more\n/sleep 60"
            fake.user_says(words, thread=root["ts"])
            await fake.until(lambda: fake.shown(ANA_DM, root["ts"]))
            (message,) = fake.shown(ANA_DM, root["ts"])
            # What was shown last may not be stored yet; what was shown before it is.
            await fake.until(lambda: "and more" in shown_text(message))
            await running.end(signal.SIGKILL)
        assert message["streaming"]
        async with process(tmp_path / "home", None, **settings):
            await fake.until(lambda: not message["streaming"])
            await fake.until(lambda: "unfinished" in shown_text(message))
            assert "an answer" in shown_text(message)
