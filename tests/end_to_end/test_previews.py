"""The preview of a running turn and the answer that takes its place."""

import json
from pathlib import Path

from tests.end_to_end.house import TIMES, House
from tests.end_to_end.looking import refused, sends
from tests.fakes.telegram import ANA, BEN, FORUM, FakeTelegram

LINES = 400  # of an answer that needs several messages
LANE = f"telegram:{ANA}"
GROWING = "/say begun\n/sleep 1.5\n/say  and done"


def edits(fake: FakeTelegram, chat: int = ANA) -> list[float]:
    """When messages of a chat were edited."""
    return [call.at for call in fake.called("editMessageText", chat)]


async def previewed(house: House, chat: int = ANA, thread: int | None = None) -> None:
    """Wait until the running turn shows a preview."""
    await house.fake.until(lambda: house.fake.shown(chat, thread))


async def test_the_answer_takes_the_place_of_the_preview(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/stream 80 0.02")
        await previewed(house)
        preview = house.fake.shown(ANA)[0]["message_id"]
        await house.answered(LANE)
        (shown,) = house.fake.shown(ANA)
        assert shown["text"] == " ".join(f"w{number}" for number in range(80))
        assert shown["message_id"] == preview
        assert len(sends(house.fake)) == 1


async def test_pieces_of_blanks_and_refused_edits_without_change_are_no_failure(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.fake.fail("editMessageText", 400, "Bad Request: message is not modified", times=0)
        house.fake.user_says("/say Hello\n/say   \n/sleep 1.2\n/say   \n/say world\n/sleep 1.2")
        await previewed(house)
        await house.answered(LANE)
        house.fake.heal()
        assert len(sends(house.fake)) == 1  # the refused edit is not made up for by a new message
        house.fake.user_says("/say next")
        await house.fake.until(lambda: house.fake.texts(ANA)[1:] == ["next"])


async def test_an_edit_that_changes_nothing_is_never_asked_for(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/say Hello\n/sleep 1.4\n/say   \n/sleep 1.1\n/say \n/sleep 0.2")
        await previewed(house)
        await house.answered(LANE)
        assert house.fake.texts(ANA) == ["Hello"]
        assert refused(house.fake) == []


async def test_a_quick_answer_is_one_message_and_nothing_else(tmp_path: Path) -> None:
    scripts = {"/say Yep.": "Yep.", "/say No\n/say  problem": "No problem", "/say 0": "0"}
    async with House(tmp_path) as house:
        for number, script in enumerate(scripts, 1):
            house.fake.user_says(script)
            await house.answered(LANE, number)
        assert house.fake.texts(ANA) == list(scripts.values())
        assert len(sends(house.fake)) == len(scripts)
        assert edits(house.fake) == []


async def test_a_long_answer_is_shown_once_in_all_its_messages(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says(f"/lines {LINES}")
        await house.answered(LANE)
        joined = " ".join(" ".join(house.fake.texts(ANA)).split())
        lines = [f"line {number:04d} of a long answer" for number in range(LINES)]
        assert joined == " ".join(lines)
        assert refused(house.fake) == []


async def test_a_limit_on_edits_stops_edits_for_its_time_and_the_answer_is_whole(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/stream 45 0.04")
        await house.fake.until(lambda: len(edits(house.fake)) == 1)
        house.fake.fail(
            "editMessageText", 429, "Too Many Requests: retry after 2", retry_after=2, chat=ANA
        )
        await house.fake.until(lambda: len(edits(house.fake)) == 2)
        limited = edits(house.fake)[1]
        house.fake.user_says("hello")  # a second lane's work is not held up by it
        await house.answered(LANE)
        later = [at for at in edits(house.fake) if at > limited]
        assert later
        assert (min(later) - limited) * TIMES >= 2.0
        assert house.fake.texts(ANA)[0] == " ".join(f"w{number}" for number in range(45))
        assert len(edits(house.fake)) <= 7  # one a second at most


async def test_an_answer_whose_preview_is_gone_is_sent_once_anew(tmp_path: Path) -> None:
    gone = {
        ANA: "message to edit not found",
        BEN: "message can't be edited",
        FORUM: "MESSAGE_ID_INVALID",
    }
    async with House(tmp_path) as house:
        house.fake.user_says(GROWING)
        house.fake.user_says(GROWING, user=BEN)
        house.fake.user_says(f"@gw_bot {GROWING}", chat=FORUM)
        for chat in gone:
            await previewed(house, chat)
        previews = {chat: house.fake.shown(chat)[0]["message_id"] for chat in gone}
        for chat, words in gone.items():
            house.fake.fail("editMessageText", 400, f"Bad Request: {words}", chat=chat, times=0)
        for lane in (LANE, f"telegram:{BEN}", f"telegram:{FORUM}:1"):
            await house.answered(lane)
        for chat, preview in previews.items():
            assert house.fake.texts(chat)[-1:] == ["begun and done"]
            assert len(sends(house.fake, chat)) == 2
            lost = [call.fields for call in house.fake.called("editMessageText", chat)]
            assert [int(fields["message_id"]) for fields in lost] == [preview]
        # What is there and cannot be changed makes room.
        await house.fake.until(lambda: house.fake.texts(BEN) == ["begun and done"])


MARKED = (
    'Start **bold text** and `x < y` then\n\n```python\nprint("<ok>")\n```\nend'
    " with [a link](https://example.org/?a=1&b=2) and ~~old~~ *news*"
)


async def test_half_written_markup_is_never_refused_and_the_answer_has_all_of_it(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says(f"/letters 0.018 {json.dumps(MARKED)}")
        await previewed(house)
        await house.answered(LANE)
        assert refused(house.fake) == []
        (shown,) = house.fake.shown(ANA)
        kinds = {entity["type"] for entity in shown["entities"]}
        assert kinds >= {"bold", "code", "pre", "text_link", "strikethrough", "italic"}
        assert 'print("<ok>")' in shown["text"]


FRAGMENT = "Use `a<b && c>d` **now** & then. "
PLAIN = "Use a<b && c>d now & then."


async def test_many_code_and_bold_spans_survive_the_cuts_between_messages(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says(f"/repeat 240 {FRAGMENT}")
        await house.answered(LANE)
        assert refused(house.fake) == []
        shown = house.fake.shown(ANA)
        joined = "".join("".join(message["text"] for message in shown).split())
        assert joined == "".join(PLAIN.split()) * 240
        for kind in ("code", "bold"):
            spans = [one for message in shown for one in message["entities"] if one["type"] == kind]
            assert len(spans) >= 240


async def test_nothing_is_shown_before_the_end_without_previews(tmp_path: Path) -> None:
    async with House(tmp_path, LANEWAY_PREVIEW="off") as house:
        house.fake.user_says(GROWING)
        await house.fake.until(lambda: house.fake.called("sendChatAction", ANA))
        await house.answered(LANE)
        assert house.fake.texts(ANA) == ["begun and done"]
        assert len(sends(house.fake)) == 1
        assert edits(house.fake) == []
