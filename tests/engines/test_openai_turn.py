"""Turns of the chat-completions engine: its history, stops, pictures, compactions, the doctor."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.engines.base import (
    Attachment,
    Failure,
    FailureKind,
    Finished,
    Started,
    SteerSettled,
    Text,
    Thought,
    Unsent,
)
from core.engines.openai_http import Bounds, ChatEngine
from core.engines.openai_http_history import Histories, Said
from core.engines.workspace_tools import Tool
from core.turns import Result
from tests.contracts.engine_contract import Play, until
from tests.engines.chats import Chats, told
from tests.fakes.openai_server import (
    MODEL,
    calls,
    event,
    frames,
    refuses,
    says,
    whole,
)

DONE_WELL = Finished(Result.DONE)
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


# The history ------------------------------------------------------------------------------


async def test_what_was_said_is_sent_along(chats: Chats) -> None:
    session = (await chats.say("the door is blue")).started.session
    await chats.say("which colour?", session=session)
    assert chats.last.messages[1:] == [
        {"role": "user", "content": "the door is blue"},
        {"role": "assistant", "content": "Noted: the door is blue"},
        {"role": "user", "content": "which colour?"},
    ]


async def test_it_is_known_to_another_process(chats: Chats) -> None:
    session = (await chats.say("the door is blue")).started.session
    chats.engine()
    play = await chats.say("recall", session=session)
    assert play.started == Started(session, MODEL, resumed=True)
    assert "the door is blue" in play.text


async def test_what_was_asked_is_kept_before_an_answer_comes(chats: Chats) -> None:
    """So a kill in the middle of a turn loses nothing that a person said."""
    chats.server.script = [frames(event({"content": "I be"}), hold=True)]
    play = chats.play("the door is blue")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(play.through())
        await until(lambda: play.saw(Text))
        kept = Histories(chats.home / "engines" / "openai" / "sessions").read(play.started.session)
        task.cancel()
    assert kept == [Said(1, {"role": "user", "content": "the door is blue"})]
    chats.engine()
    await chats.say("and now?", session=play.started.session)
    assert told(chats) == ["the door is blue", "and now?"]
    assert told(chats, "assistant") == ["I be"]


async def test_a_line_that_a_kill_cut_off_costs_itself_only(chats: Chats) -> None:
    session = (await chats.say("the door is blue")).started.session
    (file,) = (chats.home / "engines" / "openai" / "sessions").iterdir()
    with file.open("ab") as torn:
        torn.write(b'{"turn": 2, "role": "user", "conte')
    await chats.say("and now?", session=session)
    assert told(chats) == ["the door is blue", "and now?"]
    await chats.say("and then?", session=session)
    assert told(chats) == ["the door is blue", "and now?", "and then?"]


async def test_a_turn_that_runs_again_begins_anew(chats: Chats) -> None:
    session = (await chats.say("the door is blue")).started.session
    chats.server.script = [refuses(400, "no"), refuses(400, "no")]
    await chats.say("which?", turn=7, session=session)
    await chats.say("which?", turn=7, session=session)
    assert told(chats) == ["the door is blue", "which?"]


async def test_a_question_without_an_answer_gets_a_note_in_its_place(chats: Chats) -> None:
    """Some models refuse two messages of the same side in a row."""
    session = (await chats.say("one", refuses(401))).started.session
    await chats.say("two", session=session)
    roles = [message["role"] for message in chats.last.messages]
    assert roles == ["system", "user", "assistant", "user"]


async def test_tool_calls_that_a_kill_left_open_are_closed(chats: Chats) -> None:
    histories = Histories(chats.home / "engines" / "openai" / "sessions")
    session = histories.begin()
    wants = [
        {"id": id, "type": "function", "function": {"name": "list_files", "arguments": "{}"}}
        for id in ("a", "b")
    ]
    histories.append(
        session,
        [
            Said(1, {"role": "user", "content": "look"}),
            Said(1, {"role": "assistant", "content": "", "tool_calls": wants}),
            Said(1, {"role": "tool", "tool_call_id": "a", "content": "nothing"}),
        ],
    )
    chats.turns = 1
    await chats.say("and?", session=session)
    roles = [message["role"] for message in chats.last.messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    assert [m["tool_call_id"] for m in chats.last.messages if m["role"] == "tool"] == ["a", "b"]


async def test_the_oldest_turns_go_first_and_whole(chats: Chats) -> None:
    chats.engine(bounds=Bounds(context=500))
    session = ""
    for number in range(1, 5):
        (chats.folder / "a.txt").write_text("apples " * 40)
        look = calls(("read_file", {"path": "a.txt"}))
        play = await chats.say(f"look {number}", look, says("seen"), session=session)
        session = play.started.session
    assert told(chats) == ["look 3", "look 4"]
    roles = [message["role"] for message in chats.last.messages]
    assert roles[1] == "user", "no answer stands without its question"
    assert roles.count("tool") == roles.count("user")


async def test_a_turn_that_is_too_long_by_itself_loses_its_oldest_tool_answers(
    chats: Chats,
) -> None:
    (chats.folder / "a.txt").write_text("apples " * 300)
    chats.engine(bounds=Bounds(context=1500))
    look = calls(("read_file", {"path": "a.txt"}))
    play = await chats.say("look", look, look, look, says("seen"))
    assert play.last == DONE_WELL
    answers = [str(answer)[:8] for answer in told(chats, "tool")]
    assert answers == ["(Left ou", "(Left ou", "apples a"]


async def test_a_server_that_finds_a_single_turn_too_long_gets_less_of_its_tools(
    chats: Chats,
) -> None:
    (chats.folder / "a.txt").write_text("apples " * 300)
    look = calls(("read_file", {"path": "a.txt"}))
    play = await chats.say("look", look, look, refuses(413), says("seen"))
    assert play.last == DONE_WELL
    assert "left out" in play.text
    assert [str(answer)[:8] for answer in told(chats, "tool")] == ["(Left ou", "apples a"]


async def test_a_history_does_not_grow_for_ever(chats: Chats) -> None:
    chats.engine(bounds=Bounds(context=1000))
    session = ""
    for number in range(12):
        play = await chats.say(f"{number} " + "word " * 200, session=session)
        session = play.started.session
    (file,) = (chats.home / "engines" / "openai" / "sessions").iterdir()
    assert file.stat().st_size < 12_000
    assert str(told(chats)[-1]).startswith("11 ")
    assert len(told(chats)) < 4


async def test_an_id_that_is_no_session_reads_no_file(chats: Chats) -> None:
    (chats.home / "engines" / "openai" / "sessions").mkdir(parents=True)
    (chats.home / "secret.jsonl").write_text('{"turn": 1, "role": "user", "content": "x"}\n')
    play = await chats.say("hello", session="../../../secret")
    assert not play.started.resumed
    assert told(chats) == ["hello"]


async def test_histories_are_for_the_gateway_alone(chats: Chats) -> None:
    await chats.say("hello")
    folder = chats.home / "engines" / "openai" / "sessions"
    assert folder.stat().st_mode & 0o077 == 0
    assert [file.stat().st_mode & 0o077 for file in folder.iterdir()] == [0]


async def test_a_disk_that_refuses_is_told_and_costs_no_answer(
    chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats.engine()

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    session = (await chats.say("one")).started.session
    monkeypatch.setattr(os, "fsync", full)
    play = await chats.say("two", session=session)
    assert play.last == DONE_WELL
    assert play.text.startswith("Noted: two")
    assert "No space left on device" in play.text
    fresh = await chats.say("three")
    assert isinstance(fresh.last, Finished)
    assert "No space left on device" in fresh.last.error


async def test_one_turn_at_a_time_in_a_lane(chats: Chats) -> None:
    chats.server.script = [frames(event({"content": "a"}), hold=True)]
    first = chats.play("one")
    async with asyncio.TaskGroup() as group:
        group.create_task(first.through())
        await until(lambda: first.saw(Text))
        second = await chats.say("two")
        await first.run.stop(1.0)
    assert isinstance(second.last, Unsent)


# Stop -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "silent_at", ["before the answer", "in the answer", "at a pause", "in a tool"]
)
async def test_a_stop_is_quick_wherever_the_turn_is(chats: Chats, silent_at: str) -> None:
    chats.clock = SystemClock()
    match silent_at:
        case "before the answer":
            chats.server.script = [frames(hold=True)]
        case "in the answer":
            chats.server.script = [frames(event({"content": "a"}), hold=True)]
        case "at a pause":
            chats.server.script = [refuses(503, headers={"Retry-After": "100"})]
        case "in a tool":
            chats.server.script = [calls(("wait", {}))]

    async def forever(_: object) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    waiting = Tool("wait", "waits", {"type": "object"}, lambda _: "wait", forever)
    chats.engine(tools=lambda request: [waiting])
    play = chats.play("hello")
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: chats.server.seen)
        if silent_at == "in the answer":
            await until(lambda: play.saw(Text))
        begun = time.monotonic()
        await play.run.stop(40.0)
    assert time.monotonic() - begun < 20.0
    assert play.last == Finished(Result.CANCELLED)


async def test_a_stop_closes_the_connection(chats: Chats) -> None:
    chats.server.script = [frames(event({"content": "a"}), hold=True)]
    play = chats.play("hello")
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(Text))
        await play.run.stop(1.0)
    await until(lambda: chats.server.left == 1)


async def test_what_a_stop_left_is_part_of_the_conversation(chats: Chats) -> None:
    chats.server.script = [frames(event({"content": "Once upon"}), hold=True)]
    play = chats.play("tell me")
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(Text))
        await play.run.stop(1.0)
    await chats.say("go on", session=play.started.session)
    assert told(chats, "assistant") == ["Once upon"]


async def test_an_offered_message_is_not_taken(chats: Chats) -> None:
    chats.server.script = [frames(event({"content": "a"}), hold=True)]
    play = chats.play("hello")
    async with asyncio.TaskGroup() as group:
        group.create_task(play.through())
        await until(lambda: play.saw(Text))
        await play.run.steer(9, "and be quick")
        await play.run.stop(1.0)
    assert play.events[-2:] == [SteerSettled(9, taken=False), Finished(Result.CANCELLED)]


# Pictures ---------------------------------------------------------------------------------


def picture(chats: Chats, name: str = "inbox/cat.png", data: bytes = PNG) -> Attachment:
    path = chats.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return Attachment(path, "image/png")


def shown(content: object) -> list[str]:
    parts = content if isinstance(content, list) else []
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


async def test_a_picture_is_shown_to_the_model(chats: Chats) -> None:
    play = await chats.say("look: inbox/cat.png", attachments=[picture(chats)])
    address = "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert shown(told(chats)[0]) == [address]
    (file,) = (chats.home / "engines" / "openai" / "sessions").iterdir()
    assert len(file.read_bytes()) < 500, "the history names it only"
    await chats.say("and?", session=play.started.session)
    assert shown(told(chats)[0]) == [address]


async def test_pictures_of_long_ago_are_not_sent_again(chats: Chats) -> None:
    session = (await chats.say("look", attachments=[picture(chats)])).started.session
    for word in ("one", "two", "three"):
        await chats.say(word, session=session)
    assert told(chats)[0] == "look"


async def test_a_model_that_sees_nothing_gets_the_text(chats: Chats) -> None:
    blind = refuses(400, "this model does not support image input")
    play = await chats.say("look: inbox/cat.png", blind, says("fine"), attachments=[picture(chats)])
    assert play.last == DONE_WELL
    assert told(chats) == ["look: inbox/cat.png"]
    await chats.say("this?", attachments=[picture(chats)])
    assert told(chats) == ["this?"]
    assert len(chats.server.seen) == 3


@pytest.mark.parametrize("trouble", ["gone", "a link", "too large", "another kind", "elsewhere"])
async def test_what_cannot_be_shown_is_only_named(
    chats: Chats, tmp_path: Path, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = picture(chats)
    match trouble:
        case "gone":
            file.path.unlink()
        case "a link":
            (tmp_path / "secret").write_bytes(b"secret")
            file.path.unlink()
            file.path.symlink_to(tmp_path / "secret")
        case "too large":
            monkeypatch.setattr("core.engines.openai_http_prompt.PICTURE_MOST", 10)
        case "another kind":
            file = Attachment(file.path, "application/pdf")
        case "elsewhere":
            file = Attachment(tmp_path / "cat.png", "image/png")
    await chats.say("look: inbox/cat.png", attachments=[file])
    assert told(chats) == ["look: inbox/cat.png"]


# Compact ----------------------------------------------------------------------------------


async def test_compacting_keeps_a_summary_in_place_of_the_conversation(chats: Chats) -> None:
    session = ""
    for word in ("the door is blue " * 50, "the key is red " * 50):
        session = (await chats.say(word, session=session)).started.session
    play = await chats.say("/compact", says("Blue door, red key."), session=session)
    assert play.last == DONE_WELL
    assert "tokens of conversation are now" in play.text
    assert "Blue door" not in play.text
    assert play.saw(Thought)
    assert "tools" not in chats.last.body
    assert "summary" in chats.last.last
    await chats.say("which?", session=session)
    assert told(chats, "assistant") == ["Blue door, red key."]
    assert told(chats)[-1] == "which?"
    assert len(told(chats)) == 2


async def test_a_person_can_say_what_the_summary_must_keep(chats: Chats) -> None:
    session = (await chats.say("the door is blue")).started.session
    play = await chats.say("the colours", says("Blue."), session=session, compact=True)
    assert play.last == DONE_WELL
    assert chats.last.last.endswith("must keep: the colours")
    await chats.say("which?", session=session)
    assert told(chats, "assistant") == ["Blue."]


async def test_there_is_nothing_to_compact_in_a_fresh_conversation(chats: Chats) -> None:
    play = await chats.say("/compact")
    assert play.text == "There is nothing to compact yet."
    assert chats.server.seen == []


@pytest.mark.parametrize("answer", [says(""), says("half", finish="length"), refuses(401)])
async def test_a_summary_that_is_not_whole_changes_nothing(chats: Chats, answer: object) -> None:
    session = (await chats.say("the door is blue")).started.session
    play = await chats.say("/compact", answer, session=session)  # type: ignore[arg-type]
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    await chats.say("which?", session=session)
    assert told(chats) == ["the door is blue", "which?"]


# The doctor -------------------------------------------------------------------------------


async def findings(chats: Chats, **more: object) -> list[tuple[str, bool]]:
    return [(f.name, f.ok) for f in await chats.engine(**more).check()]


async def test_the_doctor_finds_server_key_and_model(chats: Chats) -> None:
    assert await findings(chats) == [
        ("openai: server", True), ("openai: key", True), ("openai: model", True)
    ]  # fmt: skip
    assert chats.server.seen == [], "no model was called"


async def test_the_doctor_finds_a_wrong_key(chats: Chats) -> None:
    chats.server.models = refuses(401, "invalid key")
    found = await chats.engine().check()
    assert [(f.name, f.ok) for f in found] == [("openai: server", True), ("openai: key", False)]
    assert "LANEWAY_OPENAI_API_KEY" in found[-1].fix


async def test_the_doctor_names_models_when_the_one_set_is_not_there(chats: Chats) -> None:
    (*_, last) = await chats.engine(model="smal-1").check()
    assert not last.ok
    assert "small-1, large-1" in last.fix


async def test_the_doctor_believes_a_server_that_lists_no_models(chats: Chats) -> None:
    chats.server.models = refuses(404)
    assert await findings(chats) == [("openai: server", True), ("openai: model", True)]


@pytest.mark.parametrize("models", [refuses(500), refuses(301), frames(b"<html>"), None])
async def test_the_doctor_finds_that_there_is_no_such_server(chats: Chats, models: object) -> None:
    chats.server.models = models  # type: ignore[assignment]
    url = chats.server.base_url if models else "http://127.0.0.1:9/v1"
    found = await chats.engine(base_url=url).check()
    assert [(f.name, f.ok) for f in found] == [("openai: server", False)]
    assert "LANEWAY_OPENAI_BASE_URL" in found[0].fix


async def test_other_lists_of_models_are_read_too(chats: Chats) -> None:
    chats.server.models = whole(models=[{"name": MODEL}])
    assert (await findings(chats))[-1] == ("openai: model", True)


# Beside the turns -------------------------------------------------------------------------


async def test_nothing_is_connected_before_the_first_turn(chats: Chats) -> None:
    engine = ChatEngine("openai", "not an address", home=chats.home, clock=SystemClock())
    await engine.close()
    assert not chats.home.exists()


async def test_after_close_no_turn_begins(chats: Chats) -> None:
    engine = chats.engine()
    await engine.close()
    play: Play = await chats.say("hello")
    assert isinstance(play.last, Unsent)


async def test_the_prompt_is_sent_as_it_was_given(chats: Chats) -> None:
    prompt = "“Zoë”\n\t🜁 <b>&amp;</b> \\n " + json.dumps({"a": 1})
    await chats.say(prompt)
    assert told(chats) == [prompt]


async def test_what_the_server_would_not_have_is_carried_into_no_later_turn(chats: Chats) -> None:
    session = (await chats.say("the blue door")).started.session
    no = refuses(400, "not allowed")  # also with less
    refused = await chats.say("a poisoned one", no, no, session=session)
    last = refused.events[-1]
    assert isinstance(last, Finished)
    assert last.failure == Failure(FailureKind.SESSION)
    after = await chats.say("recall", session=session)
    assert after.text == "You said: the blue door"


async def test_a_refusal_in_the_first_turn_leaves_a_conversation_that_can_begin(
    chats: Chats,
) -> None:
    no = refuses(422, "not allowed")
    refused = await chats.say("a poisoned one", no, no)
    after = await chats.say("recall", session=refused.started.session)
    assert (after.started.session, after.text) == (refused.started.session, "You said: ")
