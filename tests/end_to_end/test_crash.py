"""What a killed gateway finds again when it starts: the same home, the same chats."""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.end_to_end.house import ask, process
from tests.fakes.telegram import ANA, FORUM, FakeTelegram

PREVIEW = "SELECT 1 FROM deliveries WHERE kind = 'preview' AND state = 'sent'"


def stored(home: Path, query: str) -> bool:
    """Whether the query finds a row in the database of a running gateway."""
    with closing(sqlite3.connect(home / "laneway.db")) as database:
        return database.execute(query).fetchone() is not None


async def test_a_turn_killed_at_work_is_told_once_and_its_lane_works_again(tmp_path: Path) -> None:
    async with FakeTelegram() as fake:
        async with process(tmp_path / "home", fake) as first:
            fake.user_says("@gw_bot /say half an answer\n/sleep 60", chat=FORUM, thread=36)
            await fake.until(lambda: "half an answer" in "".join(fake.texts(FORUM, 36)))
            await fake.until(lambda: stored(tmp_path / "home", PREVIEW))
            await first.end(signal.SIGKILL)
        for _ in range(2):
            async with process(tmp_path / "home", fake) as again:
                fake.user_says("@gw_bot /say works", chat=FORUM, thread=36)
                await fake.until(lambda: fake.texts(FORUM, 36)[-1:] == ["works"])
                await again.end(signal.SIGTERM)
        texts = fake.texts(FORUM, 36)
        assert sum("cut off" in text for text in texts) == 1, texts
        assert sum("unfinished" in text for text in texts) == 1, texts
        assert fake.texts(FORUM) == texts  # nothing elsewhere in the forum


async def test_a_message_whose_prompt_never_left_runs_again_by_itself(tmp_path: Path) -> None:
    async with FakeTelegram() as fake:
        slow = "--slow-start 60"
        async with process(tmp_path / "home", fake) as first:
            command = first.environ["LANEWAY_ACP_COMMAND"]
        async with process(
            tmp_path / "home", fake, LANEWAY_ACP_COMMAND=f"{command} {slow}"
        ) as down:
            fake.user_says("/say at last")
            while not await ask(tmp_path / "home", "turns"):
                pass
            await down.end(signal.SIGKILL)
        async with process(tmp_path / "home", fake):
            await fake.until(lambda: fake.texts(ANA) == ["at last"])


async def test_a_cut_off_turn_goes_on_by_itself_where_that_is_set_before_what_waits(
    tmp_path: Path,
) -> None:
    home, after_crash = tmp_path / "home", {"LANEWAY_AFTER_CRASH": "continue"}
    async with FakeTelegram() as fake:
        async with process(home, fake, **after_crash) as first:
            fake.user_says("/say working\n/sleep 60")
            await fake.until(lambda: stored(home, PREVIEW))
            fake.user_says("/say what waited")
            await fake.until(lambda: stored(home, "SELECT 1 FROM turns WHERE status = 'waiting'"))
            await first.end(signal.SIGKILL)
        async with process(home, fake, **after_crash) as second:
            await fake.until(lambda: any("I go on" in text for text in fake.texts(ANA)))
            going_on = "SELECT 1 FROM turns WHERE origin = 'continue' AND status = 'running'"
            await fake.until(lambda: stored(home, going_on))
            assert not any("what waited" in text for text in answers(fake))
            await second.end(signal.SIGKILL)
        async with process(home, fake, **after_crash) as third:
            # Once is enough: a turn that is cut off again is told, and what waits goes on.
            await fake.until(lambda: "what waited" in answers(fake))
            await fake.until(lambda: any("Press continue" in text for text in fake.texts(ANA)))
            await third.end(signal.SIGTERM)
        with closing(sqlite3.connect(home / "laneway.db")) as database:
            (count,) = database.execute("SELECT count(*) FROM turns").fetchone()
        assert count == 3


def answers(fake: FakeTelegram) -> list[str]:
    return [text for text in fake.texts(ANA) if not text.startswith(("A restart", "Waiting"))]
