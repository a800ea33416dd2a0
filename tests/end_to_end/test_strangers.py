"""People who are not allowed: they get nothing, learn nothing and cost nothing."""

from pathlib import Path

import pytest

from tests.end_to_end.looking import in_state, quick, said, sends, turns
from tests.fakes.telegram import ANA, BEN, BOT, FORUM, MAL, SUPERGROUP

TOPIC = f"telegram:{FORUM}:36"
UNKNOWN = -1_001_900_000_999
SPOKEN = [
    "@gw_bot hello", "/status", "/stop", "/skip", "/new", "/pause", "/pause all", "/drop 1",
    "/status@gw_bot", "@gw_bot /stop", "!stop", "/btw what", "/engine demo", "/whoami", "/help",
]  # fmt: skip


async def test_nobody_unknown_moves_anything_in_an_allowed_group(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("@gw_bot /say begun\n/sleep 1\n/say  whole", chat=FORUM, thread=36)
        await in_state(house, TOPIC, "running")
        fake.user_says("/say waits", chat=FORUM, thread=36)
        await fake.until(lambda: said(fake, FORUM, "Waiting: 1", 36))
        bots = next(message for message in fake.shown(FORUM, 36))
        for text in SPOKEN:
            fake.user_says(text, user=MAL, chat=FORUM, thread=36)
        fake.user_sends(b"\x89PNG x", kind="photo", caption="@gw_bot look", user=MAL, chat=FORUM,
                        thread=36)  # fmt: skip
        fake.user_says("and this", user=MAL, chat=FORUM, thread=36, reply_to=bots)
        await fake.until(lambda: fake.texts(FORUM, 36)[-1:] == ["waits"])
        await house.idle(TOPIC)
        assert "begun whole" in fake.texts(FORUM, 36)
        assert [turn["person"] for turn in await turns(house)] == [f"telegram:{ANA}"] * 2
        notices = [t for t in fake.texts(FORUM) if t not in ("begun whole", "waits")]
        assert [text for text in notices if "Waiting" not in text] == []
        assert fake.called("download") == []


@pytest.mark.parametrize("button", ["Drop", "Allow"])
async def test_a_button_pressed_by_a_stranger_changes_nothing(tmp_path: Path, button: str) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("@gw_bot /approve rm x\n/say end", chat=FORUM, thread=36)
        await in_state(house, TOPIC, "asking")
        fake.user_says("/say waits", chat=FORUM, thread=36)
        await fake.until(lambda: said(fake, FORUM, "Waiting: 1", 36))
        press = fake.press(button, user=MAL)
        await fake.until(lambda: fake.queries[press])
        (answer,) = fake.called("answerCallbackQuery")
        assert "rm x" not in str(answer.fields)
        assert said(fake, FORUM, "Waiting: 1", 36)
        fake.press("Deny")
        await fake.until(lambda: fake.texts(FORUM, 36)[-1:] == ["waits"])
        assert said(fake, FORUM, "denied: rm x", 36) == 1


async def test_a_flood_of_a_stranger_is_silence_and_one_log_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        for number in range(50):
            fake.user_says(f"secret words {number}", user=MAL)
        for number in range(5):
            fake.user_says(f"@gw_bot secret {number}", user=MAL, chat=UNKNOWN)
        fake.user_says("/say fine")
        await fake.until(lambda: fake.texts(ANA) == ["fine"])
        assert len(sends(fake)) == 1
        assert len(await turns(house)) == 1
        lines = [r.getMessage() for r in caplog.records if str(MAL) in r.getMessage()]
        assert len(lines) == 1
        assert "secret" not in caplog.text


async def test_a_group_that_is_not_listed_gets_nothing_whoever_writes_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        added = {"status": "member", "user": {"id": BOT, "is_bot": True, "first_name": "gw"}}
        chat = {"id": UNKNOWN, "type": "supergroup", "title": "Elsewhere"}
        change = {"chat": chat, "from": {"id": MAL, "is_bot": False, "first_name": "M"}, "date": 1}
        old = {**added, "status": "left"}
        member = {**change, "old_chat_member": old, "new_chat_member": added}
        fake.push_raw({"update_id": 77, "my_chat_member": member})
        for user in (ANA, BEN):
            fake.user_says("@gw_bot /say no", user=user, chat=UNKNOWN)
        fake.user_says("@gw_bot /say yes", chat=SUPERGROUP)
        await fake.until(lambda: fake.texts(SUPERGROUP) == ["yes"])
        assert fake.texts(UNKNOWN) == []
        assert len(await turns(house)) == 1


async def test_an_unknown_person_learns_in_private_how_to_be_let_in_once_an_hour(
    tmp_path: Path,
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        for text in ("hello", "/whoami", "/whoami", "/status"):
            fake.user_says(text, user=MAL)
        fake.user_says("/say fine")
        await fake.until(lambda: fake.texts(ANA) == ["fine"])
        (told,) = fake.texts(MAL)
        assert f"telegram:{MAL}" in told
        assert await turns(house) != []
        assert len(await turns(house)) == 1
