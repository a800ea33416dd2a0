"""What comes with a message: files, albums, voice notes, quotations, edits."""

import json
from pathlib import Path
from typing import Any

from tests.end_to_end.house import House
from tests.end_to_end.looking import quiet, sends, turns
from tests.fakes.telegram import ANA, BEN, FORUM, GROUP, TOKEN
from tests.fakes.transcriber import Transcriber

LANE = f"telegram:{ANA}"
ANA_USER = {"id": ANA, "is_bot": False, "first_name": "Ana", "username": "ana_t"}


async def prompt(house: House, lane: str = LANE, count: int = 1) -> str:
    """What the agent was given, from its answer to ``/blocks`` or its echo."""
    return str((await house.answered(lane, count))["answer"])


def blocks(answer: str) -> list[dict[str, Any]]:
    """The prompt's blocks, as the agent tells them."""
    found: list[dict[str, Any]]
    found, _ = json.JSONDecoder().raw_decode(answer, answer.index('[{"'))
    return found


async def test_an_album_is_one_turn_and_each_caption_stays_with_its_picture(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_sends_album(["before", "", "after"])
        answer = await prompt(house)
        assert "picture 1: before" in answer
        assert "picture 3: after" in answer
        assert "picture 2: inbox/" in answer
        assert len(await turns(house, LANE)) == 1


async def test_pictures_are_handed_over_and_saved_in_the_workspace(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_sends(b"\x89PNG data", "me.png", kind="photo", caption="//blocks")
        given = blocks(await prompt(house))
        assert [one["type"] for one in given].count("image") == 1
        (saved,) = [path for path in house.home.rglob("inbox/*/*") if path.is_file()]
        assert saved.read_bytes() == b"\x89PNG data"
        text = next(one["text"] for one in given if one["type"] == "text")
        assert str(saved.relative_to(saved.parents[2])) in text


async def test_names_of_files_cannot_lead_out_of_the_workspace(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        for number, name in enumerate(("../../../evil.txt", "..", "a/b\\c\x00.txt", "ok.txt"), 1):
            house.fake.user_sends(b"data", name, caption="look")
            await house.answered(LANE, number)
        saved = [path for path in tmp_path.rglob("*") if path.is_file() and read(path) == b"data"]
        assert len(saved) == 4
        inbox = saved[0].parent
        assert inbox.parent.name == "inbox"
        assert {path.parent for path in saved} == {inbox}


def read(path: Path) -> bytes:
    return path.read_bytes()[:4] if path.stat().st_size == 4 else b""


async def test_a_link_in_the_workspace_leads_no_file_out_of_it(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with House(tmp_path) as house:
        house.fake.user_says("/say works")
        await house.answered(LANE, 1)
        (workspace,) = (house.home / "workspaces").iterdir()
        (workspace / "inbox").symlink_to(elsewhere)
        house.fake.user_sends(b"data", "a.txt", caption="look")
        await house.fake.until(lambda: "“inbox” is not a folder" in house.fake.texts(ANA)[-1])
        assert list(elsewhere.iterdir()) == []
        (workspace / "inbox").unlink()
        house.fake.user_sends(b"data", "a.txt", caption="look")
        await house.fake.until(lambda: list(workspace.rglob("inbox/*/*a.txt")))
        await house.fake.until(lambda: not list((house.home / "incoming").iterdir()))


async def test_a_file_that_telegram_does_not_give_is_told_with_name_and_limit(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.fake.user_sends(b"x", "video.mp4", caption="summarise this", size=45_000_000)
        await house.fake.until(lambda: house.fake.shown(ANA))
        (told,) = house.fake.texts(ANA)
        assert "video.mp4" in told
        assert "20 MB" in told
        house.fake.fail("getFile", 400, "Bad Request: file is too big")
        house.fake.user_sends(b"x", "unsized.bin", caption="and this")  # its size is a lie
        await house.fake.until(lambda: "unsized.bin" in house.fake.texts(ANA)[-1])
        house.fake.user_says("//turns")
        await house.fake.until(lambda: house.fake.texts(ANA)[-1] == "0")  # none reached the agent


async def test_a_file_that_is_gone_is_told_and_nothing_is_started(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.fail("getFile", 400, "Bad Request: wrong file_id or the file is not available")
        house.fake.user_sends(b"x", "notes.txt", caption="read this")
        await house.fake.until(lambda: house.fake.shown(ANA))
        assert "notes.txt" in house.fake.texts(ANA)[0]
        house.fake.user_says("/say works")
        await house.fake.until(lambda: house.fake.texts(ANA)[-1] == "works")


async def test_a_question_about_a_message_is_asked_also_without_the_files_of_that_message(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        film = house.fake.user_sends(b"x", "cat.mp4", kind="video", size=45_000_000, chat=GROUP)
        house.fake.user_says("what is this about?", reply_to={**film, "caption": "my cat"})
        answer = await prompt(house)
        assert "> my cat" in answer
        assert "what is this about?" in answer
        assert "video of the quoted message: could not be taken: it is larger than 20 MB" in answer
        gone = {"photo": [{"file_id": "gone", "file_unique_id": "g", "width": 1, "height": 1}]}
        chat = {"id": -1001900000555, "type": "channel", "title": "Team News"}
        origin = {"origin": {"type": "channel", "chat": chat, "message_id": 9}}
        house.fake.user_says("and this?", external_reply={**origin, **gone})
        answer = await prompt(house, LANE, 2)
        assert "picture of the quoted message: could not be taken: the platform does not" in answer


async def test_a_voice_note_alone_starts_nothing_and_is_told_why_each_time(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        for number in (1, 2):
            house.fake.user_sends(b"ogg", kind="voice", mime="audio/ogg")
            await house.fake.until(lambda n=number: len(house.fake.shown(ANA)) == n)
        assert all("transcription" in text for text in house.fake.texts(ANA))
        assert await turns(house) == []


async def test_the_caption_of_a_voice_note_is_run_with_a_remark(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_sends(b"ogg", kind="voice", mime="audio/ogg", caption="call me back")
        answer = await prompt(house)
        assert "call me back" in answer
        assert "recording could not be read" in answer


async def test_a_voice_note_is_the_message_where_a_service_makes_it_text(tmp_path: Path) -> None:
    async with Transcriber() as service:
        service.script = [(200, '{"text": "book a table"}'), (200, '{"text": " "}')]
        async with House(tmp_path, LANEWAY_TRANSCRIBE_URL=service.url) as house:
            house.fake.user_sends(b"ogg", kind="voice", mime="audio/ogg")
            answer = await prompt(house)
            assert "(voice note, transcribed) book a table" in answer
            assert "could not be read" not in answer
            house.fake.user_sends(b"hush", kind="voice", mime="audio/ogg")
            await house.fake.until(lambda: "no words in it" in house.fake.texts(ANA)[-1])
            assert [row["status"] for row in await turns(house)] == ["done", "failed"]
        assert [one.sound for one in service.asked] == [b"ogg", b"hush"]


async def test_an_empty_message_starts_nothing(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("@gw_bot", chat=FORUM, thread=36)
        await house.fake.until(lambda: house.fake.shown(FORUM, 36))
        assert await turns(house) == []


async def test_a_mention_after_emoji_is_seen_and_taken_out_whole(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        said = {
            "👍👍 @gw_bot status": "👍👍 status",
            "@GW_BOT: 👩‍👩‍👧 now": "👩‍👩‍👧 now",
            "is 🇩🇪 @gw_bot, ok?": "is 🇩🇪 , ok?",
        }
        for number, (written, given) in enumerate(said.items(), 1):
            house.fake.user_says(written, chat=GROUP)
            answer = await prompt(house, f"telegram:{GROUP}", number)
            assert answer.strip().endswith(f"Ana: {given}"), answer
        house.fake.user_says("👍👍 @gw_bots status", chat=GROUP)
        house.fake.user_says("mail to x@gw_bot.example", chat=GROUP)
        house.fake.user_says("@gw_bot last", chat=GROUP)
        await house.answered(f"telegram:{GROUP}", 4)
        assert len(await turns(house)) == 4


async def test_what_a_person_replies_to_is_given_as_a_quotation(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        before = house.fake.user_says(
            "I prefer the blue one because it is small", user=BEN, chat=FORUM
        )
        ask = "@gw_bot what do you think of this?"
        chosen = {"text": "the blue one", "position": 9}
        house.fake.user_says(ask, chat=FORUM, reply_to=before, quote=chosen)
        answer = await prompt(house, f"telegram:{FORUM}:1")
        assert "> the blue one" in answer
        assert "Quotation from Ben" in answer
        assert "what do you think of this?" in answer
        assert "because it is small" not in answer
        house.fake.user_says(ask, chat=FORUM, reply_to=before)  # nothing selected: all of it
        answer = await prompt(house, f"telegram:{FORUM}:1", 2)
        assert "> I prefer the blue one because it is small" in answer


async def test_a_quotation_from_another_chat_names_where_it_was_said(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        channel = {"id": -1001900000555, "type": "channel", "title": "Team News"}
        house.fake.user_says(
            "is this still true?",
            external_reply={"origin": {"type": "channel", "chat": channel, "message_id": 9}},
            quote={"text": "Release is on Friday", "position": 0},
        )
        answer = await prompt(house)
        assert "> Release is on Friday" in answer
        assert "Team News" in answer
        assert "is this still true?" in answer


async def test_forwarded_words_are_marked_as_somebody_elses(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        origin = {"type": "hidden_user", "sender_user_name": "Zoe", "date": 1}
        house.fake.user_says("/stop everything", forward_origin=origin)
        answer = await prompt(house)
        assert "Forwarded from Zoe" in answer
        assert "> /stop everything" in answer


async def test_an_edit_of_what_was_handled_starts_and_says_nothing(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        command = house.fake.user_says("/new")
        await house.fake.until(lambda: house.fake.shown(ANA))
        report = house.fake.user_says("deploy report")
        await house.answered(LANE)
        photo = house.fake.user_sends(b"x", "a.txt", caption="look")
        await house.answered(LANE, 2)
        shown, made = house.fake.texts(ANA), len(sends(house.fake))
        sessions = [row["session"] for row in await house.ask("lanes")]
        house.fake.user_edits(command, "/new")  # the same text is an edit as well
        house.fake.user_edits(command, "/stop")
        house.fake.user_edits(report, "deploy the report")
        house.fake.user_edits(photo, "/new", caption="/new")
        await house.fake.until(lambda: not house.fake.updates)
        await quiet(0.3)
        assert house.fake.texts(ANA) == shown
        assert len(sends(house.fake)) == made
        assert len(await turns(house)) == 2
        assert [row["session"] for row in await house.ask("lanes")] == sessions


async def test_an_edit_of_a_waiting_message_is_what_the_agent_reads(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/sleep 0.8")
        await house.fake.until(lambda: house.fake.called("sendChatAction", ANA))
        waiting = house.fake.user_says("deploy the raport")
        await house.fake.until(lambda: len(house.fake.shown(ANA)) == 1)  # the waiting notice
        house.fake.user_edits(waiting, "deploy the report")
        answer = await prompt(house, LANE, 2)
        assert "deploy the report" in answer


async def test_files_of_the_agent_arrive_and_others_do_not_leave(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/file result.txt all is well\n/say here it is")
        await house.answered(LANE)
        (sent,) = house.fake.called("sendDocument", ANA)
        assert [data for _, data in sent.files.values()] == [b"all is well"]
        house.fake.user_says("/file ../../laneway.txt secret\n/say here it is")
        await house.answered(LANE, 2)
        await house.fake.until(lambda: "not sent" in " ".join(house.fake.texts(ANA)))
        assert len(house.fake.called("sendDocument", ANA)) == 1


async def test_a_download_that_fails_at_first_is_tried_again_and_hides_the_token(
    tmp_path: Path, caplog: Any
) -> None:
    async with House(tmp_path) as house:
        house.fake.fail("getFile", 500, "Internal Server Error")
        house.fake.user_sends(b"words", "notes.txt", caption="//blocks")
        assert "notes.txt" in await prompt(house)
        assert TOKEN not in caplog.text
