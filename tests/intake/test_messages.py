"""From a message to a turn: who is heard, where, and what is stored."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from core.messages import Address, Edit, FileKind, FileRef, Message, Part, Titled, Unreadable
from core.people import Lists
from core.store import reads
from core.store.records import LaneRow
from core.turns import Status
from core.wording import NOT_TAKEN, PRESS_BROKE
from tests.fakes.clock import FakeClock
from tests.intake.scene import ANA, BEN, LAB, MAL, Scene, opened

BOT = "telegram:930000002"


async def test_a_direct_message_becomes_a_turn_that_starts(scene: Scene) -> None:
    await scene.say("fix the tests please")
    (turn,) = await scene.turns()
    assert (turn.person, turn.status, turn.label) == (ANA, Status.STARTING, "fix the tests please")
    assert await scene.prompts() == ["fix the tests please"]


async def test_the_same_message_delivered_twice_makes_one_turn(scene: Scene) -> None:
    message = scene.message("once please")
    await scene.intake.accept([message])
    await scene.intake.accept([message, message])
    assert len(await scene.turns()) == 1


async def test_the_messages_of_one_batch_are_stored_together_and_in_order(scene: Scene) -> None:
    batch = [scene.message(text) for text in ("m1", "m2", "m3")]
    await scene.intake.accept(batch)
    assert await scene.prompts() == ["m1", "m2", "m3"]
    assert scene.rules.batches == [3]


async def test_an_unknown_person_gets_silence_and_leaves_nothing_stored(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            await scene.say("secret plan", MAL)
    assert await scene.turns() == []
    assert scene.said == []
    assert await reads.lane_at(scene.store, Address("telegram", "700000009")) is None
    lines = [record.getMessage() for record in caplog.records]
    assert lines == [f"not allowed: {MAL} in telegram:700000009, 1 attempt"]


async def test_an_unknown_persons_attempts_are_counted_by_the_hour(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.say("one", MAL)
    await scene.say("two", MAL)
    await scene.clock.advance(3601)
    caplog.clear()
    await scene.say("three", MAL)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].endswith("1 more attempts in an hour")
    assert len(lines) == 2


async def test_an_unknown_person_in_a_listed_group_changes_nothing(scene: Scene) -> None:
    await scene.mention("work")
    for text in ("do it", "/status", "/stop", "/new"):
        await scene.mention(text, MAL)
    await scene.mention("", MAL, files=(FileRef("f", FileKind.IMAGE, "a.jpg"),))
    (turn,) = await scene.turns()
    assert turn.person == ANA
    assert scene.said == []
    assert scene.rules.cancelled == []


async def test_a_group_message_without_a_mention_is_nothing(scene: Scene) -> None:
    message = await scene.say("just talking", BEN, chat=LAB)
    assert await scene.turns() == []
    assert not await reads.seen(scene.store, message.identity)


async def test_what_the_mention_rule_dropped_counts_when_it_comes_again_with_a_mention(
    scene: Scene,
) -> None:
    message = await scene.say("hi", chat=LAB)
    await scene.intake.accept([replace(message, addressed=True)])
    assert len(await scene.turns()) == 1


async def test_an_engaged_thread_goes_on_without_mentions_for_everybody_allowed(
    scene: Scene,
) -> None:
    await scene.mention("start here", thread="36", engages=True)
    await scene.say("and for last week?", BEN, chat=LAB, thread="36", engages=True)
    turns = await scene.turns()
    assert [turn.person for turn in turns] == [ANA, BEN]
    assert len({turn.lane for turn in turns}) == 1


async def test_an_engaged_thread_needs_a_mention_again_after_seven_silent_days(
    scene: Scene,
) -> None:
    await scene.mention("start", thread="36", engages=True)
    await scene.clock.advance(7 * 86400 + 1)
    await scene.say("still there?", chat=LAB, thread="36", engages=True)
    assert len(await scene.turns()) == 1


async def test_general_never_becomes_engaged(scene: Scene) -> None:
    await scene.mention("hello general")
    await scene.say("more", chat=LAB)
    assert len(await scene.turns()) == 1


async def test_a_place_outside_the_list_gets_nothing_even_for_an_admin(scene: Scene) -> None:
    await scene.say("hello", chat="-100777", addressed=True)
    await scene.say("/status", chat="-100777", addressed=True)
    assert await scene.turns() == []
    assert scene.said == []


async def test_other_bots_are_not_answered_by_default(scene: Scene) -> None:
    await scene.mention("start", thread="36", engages=True)
    for _ in range(10):
        await scene.say("beep", BOT, chat=LAB, thread="36", engages=True, from_bot=True)
    assert len(await scene.turns()) == 1


async def test_a_listed_bot_is_answered_so_many_times_a_minute_and_then_logged_once(
    tmp_path: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    lists = Lists(bots=frozenset({BOT}), places=frozenset({f"telegram:{LAB}"}))
    async with opened(tmp_path, clock, lists=lists) as scene:
        for _ in range(30):
            await scene.mention("beep", BOT, from_bot=True)
        assert len(await scene.turns()) == 5
        warned = [one for one in caplog.records if "not answered" in one.getMessage()]
        assert len(warned) == 1
        await clock.advance(61)
        await scene.mention("beep", BOT, from_bot=True)
        assert len(await scene.turns()) == 6


async def test_a_voice_note_alone_starts_nothing_and_its_sender_is_told_why(scene: Scene) -> None:
    voice = FileRef("V1", FileKind.VOICE, "voice.ogg", "audio/ogg")
    message = await scene.say(files=(voice,))
    assert await scene.turns() == []
    (text,) = scene.said
    assert "transcription" in text
    assert scene.rules.deliveries[0].reply_to == message.message_id


async def test_a_voice_note_with_a_caption_keeps_the_caption_and_says_what_is_missing(
    scene: Scene,
) -> None:
    await scene.say("call me back", files=(FileRef("V1", FileKind.VOICE, "voice.ogg"),))
    (prompt,) = await scene.prompts()
    assert "call me back" in prompt
    assert "could not be read" in prompt


async def test_a_file_that_is_too_large_is_refused_by_name_and_its_caption_is_not_run(
    scene: Scene,
) -> None:
    big = FileRef("BIG1", FileKind.DOCUMENT, "video.mp4", size=45_000_000)
    await scene.say("summarise this", files=(big,))
    assert await scene.turns() == []
    (text,) = scene.said
    assert "video.mp4" in text
    assert "20 MB" in text


async def test_a_mention_without_a_word_is_answered_with_what_to_do(scene: Scene) -> None:
    await scene.mention("")
    assert await scene.turns() == []
    assert "what I should do" in scene.said[0]


async def test_text_that_no_store_can_hold_is_cleaned(scene: Scene) -> None:
    await scene.say("a\0b\ud800c")
    assert await scene.prompts() == ["ab\ufffdc"]


async def test_a_thread_keeps_its_title(scene: Scene) -> None:
    await scene.mention("go", thread="36", engages=True, title="Release")
    address = Address("telegram", LAB, "36")
    await scene.intake.accept([Titled("t1", address, "Release 2")])
    lane = await reads.lane_at(scene.store, address)
    assert lane is not None
    assert lane.title == "Release 2"


async def test_an_update_that_cannot_be_read_is_kept_aside_and_the_next_one_counts(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    bad = Unreadable("telegram:update:230", "telegram", '{"message":{}}', "no chat", (BEN,))
    await scene.intake.accept([bad, scene.message("still here?")])
    assert await scene.prompts() == ["still here?"]
    assert len(await scene.stored("unreadable.list", limit=10)) == 1
    assert [one.getMessage() for one in caplog.records if "230" in one.getMessage()] == [
        "set aside telegram:update:230: no chat"
    ]


@pytest.mark.parametrize("about", [(), (MAL,), ("telegram:-100777", MAL)])
async def test_an_unreadable_update_of_strangers_leaves_a_line_in_the_log_alone(
    scene: Scene, caplog: pytest.LogCaptureFixture, about: tuple[str, ...]
) -> None:
    await scene.intake.accept([Unreadable("t:u1", "telegram", "secret", "no chat", about)])
    assert await scene.stored("unreadable.list", limit=10) == []
    assert not await reads.seen(scene.store, "t:u1")
    assert "dropped t:u1" in caplog.text
    assert "secret" not in caplog.text


async def test_an_unreadable_update_of_a_place_that_is_listed_is_kept(scene: Scene) -> None:
    about = (MAL, f"telegram:{LAB}")
    await scene.intake.accept([Unreadable("t:u1", "telegram", "{}", "no text", about)])
    assert len(await scene.stored("unreadable.list", limit=10)) == 1


# What breaks whoever looks at it


async def test_one_that_breaks_intake_costs_no_other_and_is_not_tried_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.say("before")
    told = scene.intake._arriving.told

    def breaking(message: Message, lane: LaneRow) -> str:
        if message.text == "bad":
            raise RuntimeError("a bug")
        return told(message, lane)

    monkeypatch.setattr(scene.intake._arriving.__class__, "told", lambda _, *more: breaking(*more))
    batch = [scene.message("good"), scene.message("bad"), scene.message("after")]
    await scene.intake.accept(batch)
    assert [turn.label for turn in await scene.turns()] == ["before", "good", "after"]
    assert scene.said == [NOT_TAKEN]
    ((identity, _, error),) = await reads.set_aside(scene.store, 10)
    assert (identity, error) == (batch[1].identity, "RuntimeError: a bug")
    assert "a bug" in caplog.text
    monkeypatch.undo()
    await scene.intake.accept(batch)
    assert len(await scene.turns()) == 3


async def test_a_press_that_breaks_intake_is_answered(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.say("runs")

    async def breaking(*_: object, **__: object) -> str:
        raise RuntimeError("a bug")

    monkeypatch.setattr(scene.decisions, "decide", breaking)
    button = await scene.button(ANA, "approval", 1, of=7, choice="allow")
    assert await scene.press(button) == PRESS_BROKE


async def test_who_breaks_it_without_being_known_is_told_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.say("hello", MAL)
    monkeypatch.setattr(scene.intake._door.__class__, "knock", None)
    await scene.say("hello again", MAL)
    assert scene.said == []


async def test_a_message_that_cannot_be_stored_is_told_to_its_own_thread_alone(
    scene: Scene,
) -> None:
    known = await scene.mention("known")
    await scene.say("hello")
    bad = replace(scene.message("bad"), at=2**70)  # no database can hold this instant
    await scene.intake.accept([known, bad])
    assert [(one.lane, one.part) for one in scene.rules.deliveries] == [(ANA, Part(NOT_TAKEN))]


# Edits


async def test_an_edit_replaces_the_text_of_a_message_that_waits(scene: Scene) -> None:
    await scene.say("first")
    waiting = await scene.say("secnd")
    edit = Edit(f"{waiting.identity}:e1", waiting.identity, waiting.address, ANA, "second")
    await scene.intake.accept([edit])
    assert await scene.prompts() == ["first", "second"]
    assert (await scene.turns())[1].label == "second"


async def test_an_edit_to_nothing_leaves_what_was_asked(scene: Scene) -> None:
    await scene.say("first")
    waiting = await scene.say("second")
    edit = Edit(f"{waiting.identity}:e", waiting.identity, waiting.address, ANA, " \n")
    await scene.intake.accept([edit])
    assert await scene.prompts() == ["first", "second"]


async def test_an_edit_of_a_message_that_runs_or_ran_changes_nothing(scene: Scene) -> None:
    done = await scene.say("deploy report")
    for text in ("deploy the report", "/stop", "/new"):
        edit = Edit(f"{done.identity}:{text}", done.identity, done.address, ANA, text)
        await scene.intake.accept([edit])
    assert await scene.prompts() == ["deploy report"]
    assert scene.said == []
    assert scene.rules.cancelled == []


async def test_an_edit_to_a_command_is_a_text_and_no_command(scene: Scene) -> None:
    await scene.say("first")
    waiting = await scene.say("second")
    edit = Edit(f"{waiting.identity}:e", waiting.identity, waiting.address, ANA, "/stop")
    await scene.intake.accept([edit])
    assert await scene.prompts() == ["first", "/stop"]
    assert scene.told == []


async def test_a_double_slash_hands_a_slash_command_to_the_engine(scene: Scene) -> None:
    await scene.say("//compact now")
    assert await scene.prompts() == ["/compact now"]
