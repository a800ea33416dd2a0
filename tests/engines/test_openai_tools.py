"""Tools of the chat-completions engine: the gateway's own, and those of answers on the side."""

from __future__ import annotations

import asyncio

import pytest

from core.engines.base import (
    Finished,
    Text,
    ToolEnded,
    ToolReply,
    ToolSpec,
)
from core.engines.openai_http import Bounds
from core.turns import Result
from tests.contracts.engine_contract import until
from tests.engines.chats import Chats, told, tools
from tests.fakes.openai_server import (
    DONE,
    Body,
    calls,
    event,
    frames,
    says,
)

DONE_WELL = Finished(Result.DONE)


# Tools ------------------------------------------------------------------------------------


async def test_a_tool_is_called_and_its_answer_goes_back(chats: Chats) -> None:
    (chats.folder / "a.txt").write_text("apples")
    look = calls(("read_file", {"path": "a.txt"}), ("search_files", {"text": "APPLE"}))
    play = await chats.say("look", look, says("apples it is"))
    assert play.text == "apples it is"
    assert tools(play) == ["read a.txt", "search “APPLE”"]
    assert told(chats, "tool") == ["apples", "a.txt:1: apples"]
    assert not any(e.failed for e in play.events if isinstance(e, ToolEnded))


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("rm", "{}", "no tool 'rm'"),
        ("read_file", "not json", "not a JSON object"),
        ("read_file", '{"path": "../secret"}', "no file ../secret"),
    ],
)
async def test_a_tool_that_fails_tells_the_model_and_the_turn_goes_on(
    chats: Chats, name: str, arguments: str, words: str
) -> None:
    wants: Body = {"id": "x", "function": {"name": name, "arguments": arguments}}
    play = await chats.say("look", frames(event({"tool_calls": [wants]}), DONE), says("oh"))
    assert play.last == DONE_WELL
    assert words in str(told(chats, "tool")[0])
    assert [e.failed for e in play.events if isinstance(e, ToolEnded)] == [True]


async def test_a_model_that_never_stops_calling_tools_is_ended(chats: Chats) -> None:
    chats.engine(bounds=Bounds(rounds=3))
    play = await chats.say("look", *[calls(("list_files", {}))] * 9)
    assert isinstance(play.last, Finished)
    assert "limit of steps" in play.last.error
    assert len(chats.server.seen) == 3


async def test_only_reading_tools_are_offered(chats: Chats) -> None:
    for read_only in (False, True):
        await chats.say("hello", read_only=read_only)
        offered = [tool["function"]["name"] for tool in chats.last.body["tools"]]
        assert offered == ["read_file", "list_files", "search_files"]


class Box:
    """What the gateway offers a turn."""

    url = token = ""

    def __init__(self) -> None:
        self.called: list[tuple[str, object]] = []

    def offered(self) -> list[ToolSpec]:
        return [ToolSpec("set_title", "Name the thread.", {"type": "object"})]

    async def call(self, name: str, arguments: object) -> ToolReply:
        self.called.append((name, arguments))
        return ToolReply("too late", failed=True) if len(self.called) > 1 else ToolReply("done")


async def test_the_gateways_tools_are_offered_and_called(chats: Chats) -> None:
    box = Box()
    name = calls(("set_title", {"title": "Doors"}))
    play = await chats.say("name it", name, name, says("named"), toolbox=box)
    assert box.called == [("set_title", {"title": "Doors"})] * 2
    assert told(chats, "tool") == ["done", "too late"]
    assert tools(play) == ["set title", "set title"]
    assert [e.failed for e in play.events if isinstance(e, ToolEnded)] == [False, True]
    offered = [tool["function"]["name"] for tool in chats.last.body["tools"]]
    assert offered == ["read_file", "list_files", "search_files", "set_title"]


# Side answers -----------------------------------------------------------------------------


async def test_a_side_answer_knows_the_conversation_and_leaves_it_alone(chats: Chats) -> None:
    session = (await chats.say("the door is blue")).started.session
    aside = await chats.say("recall", session=session, read_only=True)
    assert "the door is blue" in aside.text
    assert aside.started.session != session
    await chats.say("which?", session=session)
    assert told(chats) == ["the door is blue", "which?"]


async def test_a_side_answer_runs_beside_a_turn_and_sees_what_it_does(chats: Chats) -> None:
    session = (await chats.say("the door is blue")).started.session
    (chats.folder / "a.txt").write_text("apples")
    look = calls(("read_file", {"path": "a.txt"}))
    chats.server.script = [look, frames(event({"content": "Hm"}), hold=True)]
    main = chats.play("look around", session=session)
    async with asyncio.TaskGroup() as group:
        group.create_task(main.through())
        await until(lambda: main.saw(Text))
        aside = await chats.say("what are you doing?", session=session, read_only=True)
        await main.run.stop(1.0)
    assert aside.last == DONE_WELL
    assert told(chats) == ["the door is blue", "look around", "what are you doing?"]
    assert told(chats, "tool") == ["apples"]
    assert main.last == Finished(Result.CANCELLED)


async def test_a_side_answer_without_a_conversation_has_one_of_its_own(chats: Chats) -> None:
    aside = await chats.say("hello", read_only=True)
    assert aside.last == DONE_WELL
    assert not aside.started.resumed
    assert not (chats.home / "engines").exists()
