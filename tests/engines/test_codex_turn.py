"""Turns of Codex that behaves, seen through the engine port."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.engines.agents import ToolServer
from core.engines.base import (
    ApprovalAsked,
    Approvals,
    Attachment,
    Choices,
    Decision,
    Finished,
    SteerSettled,
    ToolEnded,
    ToolStarted,
    Usage,
)
from core.turns import Result
from tests.contracts.program_contract import TurnContract
from tests.engines.codex_scenes import Make, Scene
from tests.engines.program_scenes import DONE, Program, questions, running, usages


class TestCodexTurns(TurnContract):
    works = ("/quiet ls -la", "ls -la")
    fails = "/fail make"
    within = "/other"
    lengthy = "/big-run"
    refusal = "denied"

    @pytest.fixture
    def program(self, codex: Make) -> Program:
        return codex

    def received(self, scene: Scene) -> list[Any]:
        return [*scene.prompts(), *scene.asked("turn/steer")]

    def check_once(self, scene: Scene, decision: Decision) -> None:
        given = "accept" if decision is Decision.ALLOW else "decline"
        assert {"decision": given} in [entry.get("result") for entry in scene.log]


# Tokens -------------------------------------------------------------------------------------


async def test_the_tokens_are_those_of_the_turn_although_it_tells_the_threads_total(
    codex: Make,
) -> None:
    scene, session, counts = codex(), "", []
    for tokens in ("100 7", "60 5", "240 9"):
        play = await scene.say(f"/tokens {tokens}", session=session)
        session = play.started.session
        counts.append(usages(play)[-1])
    assert counts == [Usage(100, 7), Usage(60, 5), Usage(240, 9)]
    assert counts[0].cost is None


async def test_a_resumed_thread_is_not_charged_with_its_past(codex: Make) -> None:
    first = await codex().say("/tokens 4000 100")
    second = await codex().say("/tokens 50 6", session=first.started.session)
    assert second.started.resumed
    assert usages(second)[-1] == Usage(50, 6)


async def test_a_total_that_falls_is_a_new_counter(codex: Make) -> None:
    play = await codex().say("/tokens 400 40\n/total 0 0\n/tokens 50 6")
    assert usages(play)[-1] == Usage(450, 46)


async def test_a_side_answer_pays_for_itself_only(codex: Make) -> None:
    scene = codex()
    first = await scene.say("/tokens 4000 100")
    session = first.started.session
    side = await scene.say("/tokens 50 6", session=session, read_only=True)
    after = await scene.say("/tokens 20 3", session=session)
    assert usages(side)[-1] == Usage(50, 6)
    assert usages(after)[-1] == Usage(20, 3)


# Approvals ----------------------------------------------------------------------------------


async def test_all_of_a_command_is_shown_and_nothing_that_is_worded_anew_each_time(
    codex: Make,
) -> None:
    more = {
        "cwd": "/elsewhere",
        "reason": "I have to",
        "additionalPermissions": {"network": {"enabled": True}},
        "networkApprovalContext": {"host": "example.org", "protocol": "https"},
        "proposedExecpolicyAmendment": ["make"],
        "somethingNew": {"x": [1]},
    }
    play = await codex().say(f"/more {json.dumps(more)}")
    (asked,) = questions(play)
    assert asked.command.startswith("make tea\n(in /elsewhere)\n")
    for told in ('"enabled": true', '"host": "example.org"', '"somethingNew"'):
        assert told in asked.command
    assert "I have to" not in asked.command
    assert "make tea" in play.text


async def test_what_is_typed_into_a_running_program_is_shown_as_that(codex: Make) -> None:
    play = await codex().say('/more {"kind": "writeStdin", "command": "yes"}')
    assert questions(play)[0].command == "type into a running program (writeStdin):\nyes"


async def test_a_change_of_files_is_shown_in_full(codex: Make) -> None:
    changes = [
        {"path": "/w/new", "kind": {"type": "add"}, "diff": "a\nb\n"},
        {"path": "/w/old", "kind": {"type": "update", "move_path": "/w/x"}, "diff": "@@\n-a\n+b"},
        {"path": "/w/gone", "kind": {"type": "delete"}, "diff": "bye\n"},
    ]
    play = await codex().say(f"/patch {json.dumps(changes)}")
    (asked,) = questions(play)
    assert asked.tool == "change files"
    assert asked.command == (
        "write /w/new\n+ a\n+ b\n"
        "change /w/old, then move it to /w/x\n@@\n-a\n+b\n"
        "delete /w/gone\n- bye"
    )
    assert [event.title for event in play.events if isinstance(event, ToolStarted)] == [
        "change /w/new, /w/old, /w/gone"
    ]


async def test_a_change_is_made_only_after_a_yes(codex: Make) -> None:
    scene = codex()
    await scene.say("/write a.txt hello")
    await scene.say("/write b.txt hello", decision=Decision.DENY)
    assert [path.name for path in scene.folder.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("script", ["/unseen", "/grant /"])
async def test_a_change_that_cannot_be_shown_or_wants_more_is_declined_unasked(
    codex: Make, script: str
) -> None:
    play = await codex().say(script)
    assert not play.saw(ApprovalAsked)
    assert "decline" in play.text or "denied" in play.text


@pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.DENY])
async def test_permissions_are_given_as_they_were_shown_and_for_one_turn(
    codex: Make, decision: Decision
) -> None:
    wanted = {"network": {"enabled": True}, "fileSystem": {"write": ["/srv"]}}
    play = await codex().say(f"/permissions {json.dumps(wanted)}", decision=decision)
    (asked,) = questions(play)
    assert asked.tool == "more permissions"
    assert "/srv" in asked.command
    granted = wanted if decision is Decision.ALLOW else {}
    assert json.loads(play.text) == {"permissions": granted, "scope": "turn"}


async def test_a_servers_tool_is_asked_about_and_the_gateways_own_are_not(codex: Make) -> None:
    scene = codex()
    play = await scene.say("/mcp other send")
    (asked,) = questions(play)
    assert asked.tool == "call a tool"
    assert asked.command.startswith('other: Allow the other MCP server to run tool "send"?')
    assert '"a": 1' in asked.command
    assert "called send" in play.text
    denied = await scene.say("/mcp other send", decision=Decision.DENY)
    assert "denied" in denied.text
    own = await scene.say("/mcp laneway send")
    assert not own.saw(ApprovalAsked)
    assert "called send" in own.text


async def test_a_servers_own_question_is_declined(codex: Make) -> None:
    play = await codex().say("/form")
    assert not play.saw(ApprovalAsked)
    assert play.text == "decline"


async def test_questions_for_the_person_become_text(codex: Make) -> None:
    asked = [
        {
            "id": "q1",
            "question": "Which?",
            "options": [{"label": "a", "description": "one"}, {"label": "b"}],
        }
    ]
    play = await codex().say(f"/ask {json.dumps(asked)}")
    assert play.text.startswith("**Which?**\n1. a – one\n2. b\n\n")
    assert "were shown to the person as text" in play.text
    later = [{"title": "And then?", "options": ["c", "d"]}]
    play = await codex().say(f"/later {json.dumps(later)}")
    assert play.text == "**And then?**\n1. c\n2. d"


async def test_asking_auto_and_full_are_what_it_is_started_with(codex: Make) -> None:
    scene = codex()
    for approvals in Approvals:
        await scene.say("hello", approvals=approvals)
    policies = [told["approvalPolicy"] for told in scene.asked("turn/start")]
    assert policies == ["untrusted", "on-request", "untrusted"]
    assert {told["permissions"] for told in scene.asked("thread/start")} == {"laneway"}
    assert ['web_search="disabled"' in arguments for arguments in scene.starts] == [
        *(True, False, False)
    ]


# A message while it works -------------------------------------------------------------------


async def test_a_message_is_put_into_what_it_is_doing(codex: Make) -> None:
    scene = codex()
    play = scene.play("/say half of it\n/hang")
    async with running(play):
        await play.run.steer(7, "/say and quickly")
    assert SteerSettled(7, taken=True) in play.events
    assert play.text == "half of it\n\nand quickly"  # what was said stays, as a message of its own
    assert play.last == DONE
    (told,) = scene.asked("turn/steer")
    assert told["threadId"] == play.started.session


@pytest.mark.parametrize(
    ("options", "settled"),
    [
        (["--no-steer"], SteerSettled(7, taken=False)),
        (["--forgetful"], SteerSettled(7, taken=True, certain=False)),
    ],
)
async def test_what_becomes_of_a_message_is_settled_before_the_end(
    codex: Make, options: list[str], settled: SteerSettled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.engines.codex_run.SETTLING", 0.1)
    scene = codex(*options)
    play = scene.play("/say working\n/sleep 0.1")
    async with running(play):
        await play.run.steer(7, "/say quick")
    assert settled in play.events
    assert play.last == DONE


# Threads and processes ----------------------------------------------------------------------


async def test_the_process_stays_warm_after_a_good_turn_and_takes_every_setting(
    codex: Make,
) -> None:
    scene = codex()
    first = await scene.say("/pid")
    session = first.started.session
    second = await scene.say("/pid", session=session, model="gpt-9-mini", effort="low")
    third = await scene.say("/pid", session=session)
    assert first.text == second.text == third.text
    assert second.started.resumed
    assert len(scene.starts) == 1
    told = [(one["model"], one["effort"]) for one in scene.asked("turn/start")]
    assert told == [("gpt-9", "medium"), ("gpt-9-mini", "low"), ("gpt-9", "medium")]


async def test_another_way_of_asking_is_another_process_with_the_same_thread(
    codex: Make,
) -> None:
    scene = codex()
    first = await scene.say("hello")
    session = first.started.session
    second = await scene.say("/turns", session=session, approvals=Approvals.AUTO)
    assert (second.text, second.started.resumed) == ("1", True)
    assert len(scene.starts) == 2


async def test_an_effort_that_the_model_lacks_is_told_before_anything_is_sent(
    codex: Make,
) -> None:
    scene = codex()
    play = await scene.say("hello", model="gpt-9-mini", effort="high")
    assert isinstance(play.last, Finished)
    assert play.last.error == (
        "The model has no effort “high”; it offers: low, medium. "
        "Set another with /effort, or /effort default."
    )
    assert scene.prompts() == []
    first = await scene.say("hello")
    session = first.started.session
    warm = await scene.say("hello", session=session, model="gpt-9-mini", effort="high")
    assert warm.last == play.last
    assert (await scene.say("/turns", session=session)).text == "1"


async def test_it_tells_what_it_can_be_set_to_once_it_was_started(codex: Make) -> None:
    scene = codex()
    assert await scene.engine.choices() == Choices()
    await scene.say("hello")
    assert await scene.engine.choices() == Choices(
        ["gpt-9", "gpt-9-mini"], ("low", "medium", "high"), open=True
    )
    assert (await scene.engine.choices("gpt-9-mini")).efforts == ("low", "medium")


async def test_a_model_it_does_not_list_is_handed_on(codex: Make) -> None:
    scene = codex()
    play = await scene.say("hello", model="my-own", effort="strange")
    assert play.started.model == "my-own"
    assert scene.asked("turn/start")[0]["effort"] == "strange"


async def test_it_is_started_so_that_nothing_goes_round_the_gateway(
    codex: Make, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    scene = codex(private=[secret, tmp_path / "not there"])
    await scene.say("hello")
    (arguments,) = scene.starts
    told = "\n".join(arguments)
    for off in ("hooks", "plugins", "apps", "multi_agent", "goals", "memories"):
        assert f"features.{off}=false" in told
    assert "agents.enabled=false" in told
    for place in (scene.folder, scene.folder.parent):
        assert f'"{place}" = {{"trust_level" = "untrusted"}}' in told
    assert f'"{secret}" = "deny"' in told
    assert "not there" not in told
    assert '"include_only" = ["HOME", "PATH"' in told
    assert "LANEWAY_TURN_MARK" in told


async def test_its_environment_is_what_is_allowed(
    codex: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDECODE", "CODEX_SANDBOX", "OPENAI_API_KEY", "GIVEN"):
        monkeypatch.setenv(name, "1")
    names = json.loads((await codex(env=["GIVEN"]).say("/env")).text)
    assert "GIVEN" in names
    assert not {"CLAUDECODE", "CODEX_SANDBOX", "OPENAI_API_KEY"} & set(names)


@pytest.mark.parametrize("more", [{}, {"read_only": True}])
async def test_tools_of_the_gateway_are_told_to_the_thread_and_in_no_argument(
    codex: Make, more: dict[str, Any]
) -> None:
    server = ToolServer("laneway", "http://127.0.0.1:9/mcp", "hush")
    scene = codex(servers=lambda request: [server])
    await scene.say("hello", **more)
    (told,) = scene.asked("thread/start")
    laneway = told["config"]["mcp_servers"]["laneway"]
    assert laneway["http_headers"] == {"Authorization": "Bearer hush"}
    assert "hush" not in json.dumps(scene.starts)


async def test_a_thread_is_compacted(codex: Make) -> None:
    scene = codex()
    nothing = await scene.say("", compact=True)
    assert (nothing.text, nothing.last) == ("There is nothing to compact yet.", DONE)
    first = await scene.say("hello")
    play = await scene.say("", session=first.started.session, compact=True)
    assert (play.text, play.last) == ("The conversation was compacted.", DONE)
    wish = await scene.say("keep names", session=first.started.session, compact=True)
    assert "takes no wishes" in wish.text
    assert scene.asked("thread/compact/start")[-1] == {"threadId": first.started.session}


async def test_pictures_are_handed_over_by_their_path(codex: Make, tmp_path: Path) -> None:
    files = []
    for name, mime in (("a.png", "image/png"), ("b.pdf", "application/pdf")):
        (tmp_path / name).write_bytes(name.encode())
        files.append(Attachment(tmp_path / name, mime))
    files.append(Attachment(tmp_path / "gone.png", "image/png"))
    scene = codex()
    await scene.say("look", attachments=files)
    (told,) = scene.asked("turn/start")
    assert told["input"] == [
        {"type": "localImage", "path": str(tmp_path / "a.png")},
        {"type": "text", "text": "look"},
    ]


# Answers on the side --------------------------------------------------------------------------


async def test_a_side_answer_runs_beside_the_turn_with_nothing_but_reading(codex: Make) -> None:
    scene = codex()
    (scene.folder / "notes.txt").write_text("the door is blue")
    first = await scene.say("hello")
    session = first.started.session
    script = '/turns\n/run make tea\n/write x.txt hello\n/read read_file {"path": "notes.txt"}'
    side = await scene.aside(script, session)
    assert (
        side.text
        == "1unsupported call: exec_command unsupported call: apply_patch the door is blue"
    )
    assert not side.saw(ApprovalAsked)
    assert [path.name for path in scene.folder.iterdir()] == ["notes.txt"]
    assert side.started.session != session
    assert not side.started.resumed
    arguments = scene.starts[-1]
    assert {"features.shell_tool=false", 'web_search="disabled"'} <= set(arguments)
    (fork,) = scene.asked("thread/fork")
    assert (fork["sandbox"], fork["approvalPolicy"], fork["ephemeral"]) == (
        *("read-only", "never", True),
    )
    assert fork["config"]["mcp_servers"] == {"own": {"enabled": False}}
    assert scene.asked("turn/start")[-1]["environments"] == []
    after = await scene.say("/turns", session=session)
    assert after.text == "1"  # what the main thread had, and nothing of the side


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "link"])
async def test_a_side_answer_reads_nothing_outside_of_the_workspace(codex: Make, path: str) -> None:
    scene = codex()
    (scene.folder / "link").symlink_to("/etc/passwd")
    script = f"/read read_file {json.dumps({'path': path})}"
    side = await scene.say(script, read_only=True)
    assert side.text.startswith("There is no file")
    assert any(isinstance(event, ToolEnded) and event.failed for event in side.events)


async def test_a_side_answer_that_runs_something_all_the_same_is_ended_and_the_last_one(
    codex: Make,
) -> None:
    scene = codex("--disobedient")
    assert scene.engine.abilities.side
    side = await scene.say("/say x\n/run make tea\n/sleep 60", read_only=True)
    assert isinstance(side.last, Finished)
    assert side.last.result is Result.FAILED
    assert "may not do" in side.last.error
    assert not scene.engine.abilities.side


async def test_a_program_that_does_not_say_that_commands_are_off_gives_no_side_answers(
    codex: Make,
) -> None:
    scene = codex("--no-features")
    side = await scene.say("hello", read_only=True)
    assert isinstance(side.last, Finished)
    assert "cannot be held to reading only" in side.last.error
    assert scene.prompts() == []
    assert not scene.engine.abilities.side
    findings = {finding.name: finding for finding in await scene.engine.check()}
    assert not findings["codex: side answers"].ok
