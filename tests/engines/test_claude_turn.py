"""Turns of Claude Code that behaves, seen through the engine port."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from core.engines.agents import ToolServer
from core.engines.base import (
    ApprovalAsked,
    Approvals,
    Attachment,
    Decision,
    Failure,
    FailureKind,
    Finished,
    SteerSettled,
    ToolStarted,
    Usage,
)
from core.turns import Result
from tests.contracts.engine_contract import until
from tests.contracts.program_contract import TurnContract
from tests.engines.claude_scenes import Make, Scene
from tests.engines.program_scenes import CANCELLED, DONE, Program, questions, running, usages


class TestClaudeTurns(TurnContract):
    works = ('/tool Read {"file_path": "notes.txt"}', "read notes.txt")
    fails = '/fail Read {"file_path": "nothing"}'
    within = "/nested"
    lengthy = "/big-use"
    refusal = "denied: "

    @pytest.fixture
    def program(self, claude: Make) -> Program:
        return claude

    def received(self, scene: Scene) -> list[Any]:
        return scene.prompts()

    def check_once(self, scene: Scene, decision: Decision) -> None:
        (response,) = [entry for entry in scene.log if entry.get("type") == "control_response"]
        assert "updatedPermissions" not in json.dumps(response)


# Costs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--plain",)])
async def test_the_cost_is_that_of_the_turn_although_it_tells_the_sessions_total(
    claude: Make, options: tuple[str, ...]
) -> None:
    scene = claude(*options)
    costs, session = [], ""
    for cost in (0.10, 0.06, 0.24):
        play = await scene.say(f"/cost {cost} 20 7", session=session)
        session = play.started.session
        costs.append(usages(play)[-1])
    assert [usage.cost for usage in costs] == pytest.approx([0.10, 0.06, 0.24])
    assert (costs[-1].tokens_in, costs[-1].tokens_out) == (20, 7)


@pytest.mark.parametrize("options", [(), ("--plain",)])
async def test_a_resumed_session_is_not_charged_with_its_past(
    claude: Make, options: tuple[str, ...]
) -> None:
    first = await claude(*options).say("/cost 4")
    second = await claude(*options).say("/cost 0.5", session=first.started.session)
    assert second.started.resumed
    assert usages(second)[-1].cost == pytest.approx(0.5)


async def test_a_total_that_falls_is_a_new_counter(claude: Make) -> None:
    scene = claude("--plain")
    first = await scene.say("/cost 4")
    second = await scene.say("/total 0\n/cost 0.5", session=first.started.session)
    assert usages(second)[-1].cost == pytest.approx(0.5)


@pytest.mark.parametrize("options", [(), ("--plain",)])
async def test_a_side_answer_pays_for_itself_only(claude: Make, options: tuple[str, ...]) -> None:
    scene = claude(*options)
    first = await scene.say("/cost 4")
    session = first.started.session
    side = await scene.say("/cost 0.5", session=session, read_only=True)
    after = await scene.say("/cost 0.25", session=session)
    assert usages(side)[-1].cost == pytest.approx(0.5)
    assert usages(after)[-1].cost == pytest.approx(0.25)


async def test_tokens_are_told_while_it_works(claude: Make) -> None:
    play = await claude().say("/say one\n/tool Read {}\n/say two\n/tool Read {}\n/cost 0.1 90 40")
    seen = [(usage.tokens_in, usage.tokens_out) for usage in usages(play)]
    # Once more with the same tokens where what it cost so far came in between.
    assert list(dict.fromkeys(seen)) == [(7, 5), (14, 10), (90, 40)]


async def test_the_cost_is_told_while_it_works(claude: Make) -> None:
    scene = claude()
    first = await scene.say("/cost 4")
    session = first.started.session
    await scene.engine.close()
    scene = claude()  # what it has cost before is asked, not remembered
    (scene.home / "engines" / "claude" / "totals").rename(scene.home / "away")
    script = "/cost 0.5\n/say one\n/run make tea\n/cost 0.75\n/say two\n/run drink it"
    play = await scene.say(script, session=session)
    seen = [usage.cost for usage in usages(play)]
    assert list(dict.fromkeys(seen)) == [None, 0.5, 0.75]


# Approvals ----------------------------------------------------------------------------------


async def test_a_question_is_the_same_however_the_agent_words_what_it_is_for(
    claude: Make,
) -> None:
    scene = claude()
    asked = []
    for reason in ("tidy", "clean up"):
        given = json.dumps({"command": "rm -r build", "description": reason})
        play = await scene.say(f"/use Bash {given}")
        asked += questions(play)
    assert (asked[0].tool, asked[0].command) == (asked[1].tool, asked[1].command)


async def test_a_tool_is_told_once_although_it_is_told_twice(claude: Make) -> None:
    play = await claude().say("/run make tea")
    assert len([event for event in play.events if isinstance(event, ToolStarted)]) == 1


async def test_an_input_is_given_back_as_it_came(claude: Make) -> None:
    given = {
        "command": "a \ud83d\ude00 \u0000",
        "timeout": 1.5e300,
        "nested": [None, True, {"x": []}],
    }
    play = await claude().say(f"/use Bash {json.dumps(given)}")
    assert "ran: " in play.text
    (asked,) = questions(play)
    assert asked.command.startswith("a 😀 ␀\n")
    assert '"timeout": 1.5e+300' in asked.command


async def test_a_form_with_questions_becomes_text(claude: Make) -> None:
    questions = [{"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]
    play = await claude().say(f"/use AskUserQuestion {json.dumps({'questions': questions})}")
    assert play.text.startswith("**Which?**\n1. a\n2. b\n\ndenied: The questions were shown")
    assert not play.saw(ApprovalAsked)


def permissions(arguments: list[str]) -> dict[str, Any]:
    settings = json.loads(arguments[arguments.index("--settings") + 1])
    return dict(settings["permissions"])


async def test_asking_is_for_everything_and_the_other_modes_leave_it_to_the_agent(
    claude: Make,
) -> None:
    scene = claude()
    for approvals in Approvals:
        await scene.say("hello", approvals=approvals)
    asked = [permissions(arguments)["ask"] for arguments in scene.starts]
    assert "Bash" in asked[0]
    assert asked[1:] == [[], []]
    for arguments in scene.starts:
        mode = arguments[arguments.index("--permission-mode") + 1]
        assert mode == "default"


async def test_what_is_private_is_on_its_deny_list(claude: Make, tmp_path: Path) -> None:
    scene = claude(private=[(tmp_path / "a [b]", "laneway.db*")])
    await scene.say("hello")
    (arguments,) = scene.starts
    denied = permissions(arguments)["deny"]
    closed = f"/{tmp_path}/a \\[b\\]/laneway.db*"
    assert {f"Read({closed})", f"Edit({closed})"} <= set(denied)
    assert any(".credentials.json" in rule for rule in denied)


# A message while it works -------------------------------------------------------------------


async def test_a_message_is_put_into_what_it_is_doing(claude: Make) -> None:
    scene = claude()
    play = scene.play("/say working\n/run make tea\n/say done", decision=None)
    async with running(play, lambda: play.saw(ApprovalAsked)):
        await play.run.steer(7, "and be quick")
        await until(lambda: "and be quick" in scene.prompts())
        (asked,) = questions(play)
        play.run.answer(asked.id, Decision.ALLOW)
    assert SteerSettled(7, taken=True) in play.events
    assert "steered: and be quick" in play.text
    assert play.last == DONE


async def test_a_message_answered_on_its_own_is_still_of_this_turn(claude: Make) -> None:
    scene = claude()
    play = scene.play("/cost 0.5 20 7\n/say working\n/stream 8 0.05")
    async with running(play, lambda: "w1" in play.text):
        await play.run.steer(7, "/cost 0.25 10 3\n/say and more")
    assert play.text == "workingw0 w1 w2 w3 w4 w5 w6 w7 and more"
    assert SteerSettled(7, taken=True) in play.events
    assert usages(play)[-1] == Usage(30, 10, 0.75)
    assert play.last == DONE
    again = await scene.say("/turns", session=play.started.session)
    assert again.text == "2"


async def test_what_became_of_a_message_and_cannot_be_found_out_counts_as_taken(
    claude: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.engines.claude_run.SETTLING", 0.1)
    scene = claude("--plain", "--forgetful")
    play = scene.play("/say working\n/stream 2 0.1\n/exit-after")
    async with running(play):
        await play.run.steer(7, "and be quick")
    assert SteerSettled(7, taken=True, certain=False) in play.events
    assert play.last == DONE


async def test_a_stop_takes_back_what_was_not_begun(claude: Make) -> None:
    scene = claude()
    play = scene.play("/say working\n/hang")
    async with running(play):
        await play.run.steer(7, "and be quick")
        await until(lambda: "and be quick" in scene.prompts())
        await play.run.stop(2.0)
    assert SteerSettled(7, taken=False) in play.events
    assert play.last == CANCELLED
    assert "quick" not in play.text


async def test_a_command_of_its_own_is_no_message_for_a_running_turn(claude: Make) -> None:
    scene = claude()
    play = scene.play("/say working\n/stream 3 0.05")
    async with running(play):
        await play.run.steer(7, "/config editor=vim")
    assert SteerSettled(7, taken=False) in play.events
    assert len(scene.prompts()) == 1


@pytest.mark.parametrize(("options", "prompt"), [((), "see @/etc/x"), (("--old",), "see @ /etc/x")])
async def test_a_file_that_a_message_only_names_is_not_read(
    claude: Make, options: tuple[str, ...], prompt: str
) -> None:
    scene = claude(*options)
    play = await scene.say("see @/etc/x")
    assert scene.prompts() == [prompt]
    names = json.loads((await scene.say("/env", session=play.started.session)).text)
    assert "CLAUDE_CODE_DISABLE_FILE_MENTIONS" in names


async def test_an_old_version_answers_a_late_message_and_it_counts_as_taken(
    claude: Make,
) -> None:
    scene = claude("--old")
    play = scene.play("/say working\n/stream 3 0.05")
    async with running(play):
        await play.run.steer(7, "/say and @me")
    assert play.text.endswith("w2 and @ me")
    assert SteerSettled(7, taken=True) in play.events
    assert play.last == DONE


async def test_an_old_version_gives_no_side_answers_and_says_so(claude: Make) -> None:
    scene = claude("--old")
    play = await scene.say("hello", read_only=True)
    (event,) = play.events
    assert isinstance(event, Finished)
    assert "too old for that: 2.1.332 or newer is needed" in event.error
    first, *_ = (await scene.engine.check())[1:]
    assert first.ok
    assert "update it" in first.fix


# Sessions and processes ---------------------------------------------------------------------


async def test_the_process_stays_warm_after_a_good_turn(claude: Make) -> None:
    scene = claude()
    first = await scene.say("/pid")
    second = await scene.say("/pid", session=first.started.session)
    assert second.text == first.text
    assert second.started.resumed
    assert len(scene.starts) == 1


@pytest.mark.parametrize(
    "change", [{"model": "haiku"}, {"effort": "high"}, {"approvals": Approvals.FULL}]
)
async def test_another_setting_holds_from_the_next_turn(
    claude: Make, change: dict[str, Any]
) -> None:
    scene = claude()
    first = await scene.say("hello")
    session = first.started.session
    second = await scene.say("/turns", session=session, **change)
    assert second.text == "1"
    assert second.started.resumed
    assert f"--resume={session}" in scene.starts[1]


async def test_a_cap_is_kept_by_the_program_itself_in_a_process_for_that_turn_alone(
    claude: Make,
) -> None:
    scene = claude()
    first = await scene.say("/cost 4")
    capped = await scene.say("/cost 0.3\nmore", session=first.started.session, budget=0.25)
    assert capped.started.resumed
    assert "--max-budget-usd=0.25" in scene.starts[1]
    assert usages(capped)[-1].cost == pytest.approx(0.3)
    end = capped.events[-1]
    assert isinstance(end, Finished)
    assert end.failure == Failure(FailureKind.SPENT)
    assert "spending limit" in end.error
    again = await scene.say("/cost 0.1", session=first.started.session, budget=0.25)
    assert again.events[-1] == DONE
    after = await scene.say("/cost 4", session=first.started.session)
    assert after.events[-1] == DONE
    assert not any("budget" in word for word in scene.starts[3])
    assert len(scene.starts) == 4


async def test_a_model_is_told_by_what_it_stands_for(claude: Make) -> None:
    scene = claude()
    assert (await scene.say("hello")).started.model == "claude-opus-9"
    assert (await scene.say("hello", model="Haiku")).started.model == "claude-haiku-9"
    assert (await scene.say("hello", model="my-own")).started.model == "my-own"


async def test_an_effort_that_the_model_lacks_is_told_before_anything_is_sent(
    claude: Make,
) -> None:
    scene = claude()
    play = await scene.say("hello", model="haiku", effort="max")
    assert play.events == [
        Finished(
            Result.FAILED,
            "The model has no effort “max”; it offers: low, high. "
            "Set another with /effort, or /effort default.",
            Failure(FailureKind.REQUEST),
        )
    ]
    assert scene.prompts() == []


async def test_a_side_answer_runs_beside_the_turn_with_nothing_but_reading(claude: Make) -> None:
    scene = claude()
    first = await scene.say("hello")
    session = first.started.session
    script = "/turns\n/run make tea\n/write x.txt hello\n/use Read {}"
    side = await scene.aside(script, session)
    assert side.text.startswith("1")
    assert "no such tool: Bash no such tool: Write denied: no approval" in side.text.replace(
        "\n\n", ""
    )
    assert not side.saw(ApprovalAsked)
    assert not (scene.folder / "x.txt").exists()
    assert side.started.session != session
    assert not side.started.resumed
    arguments = scene.starts[-1]
    assert {"--fork-session", "--no-session-persistence"} <= set(arguments)
    assert arguments[arguments.index("--tools") + 1] == "Read,Grep,Glob"
    rules = permissions(arguments)["deny"]
    assert any(rule.startswith("Read(") and rule.endswith("/.claude/**)") for rule in rules)
    after = await scene.say("/turns", session=session)
    assert after.text == "2"  # the two of the main session


async def test_even_a_side_answer_that_asks_is_allowed_nothing(claude: Make) -> None:
    scene = claude()
    engine = scene.engine
    plain = engine.arguments
    engine.arguments = lambda request, fresh: tuple(  # type: ignore[method-assign]
        word for word in plain(request, fresh) if word not in ("--permission-prompts", "none")
    )
    side = await scene.say('/use Read {"file_path": "/etc/passwd"}', read_only=True)
    assert "denied: This is not allowed here." in side.text
    assert not side.saw(ApprovalAsked)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [("/clear", "say /new"), ("/config editor=vim", "not handed on"), (" /Model x", "/model")],
)
async def test_commands_that_would_change_more_than_the_conversation_are_not_handed_on(
    claude: Make, prompt: str, words: str
) -> None:
    scene = claude()
    first = await scene.say("hello")
    session = first.started.session
    play = await scene.say(prompt, session=session)
    assert words in play.text
    assert play.last == DONE
    assert scene.prompts() == ["hello"]
    assert (await scene.say("/turns", session=session)).text == "1"
    assert len(scene.starts) == 1


async def test_one_that_forgets_by_itself_is_started_again(
    claude: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.engines.claude_words.FRESH", frozenset())
    monkeypatch.setattr("core.engines.claude_words.NOT_HANDED_ON", frozenset())
    scene = claude()
    first = await scene.say("hello")
    play = await scene.say("/clear", session=first.started.session)
    assert "say /new" in play.text
    await scene.say("hello", session=first.started.session)
    assert len(scene.starts) == 2


async def test_a_session_is_compacted(claude: Make) -> None:
    scene = claude()
    first = await scene.say("hello")
    play = await scene.say("keep the names", session=first.started.session, compact=True)
    assert play.text == "Compacted: 12,000 tokens became 900."
    assert play.last == DONE
    assert scene.prompts()[-1] == "/compact keep the names"


async def test_a_fresh_session_has_nothing_to_compact(claude: Make) -> None:
    play = await claude().say("", compact=True)
    assert play.text == "There is nothing to compact yet."
    assert play.last == DONE


async def test_pictures_and_papers_are_handed_over_and_the_rest_is_named(
    claude: Make, tmp_path: Path
) -> None:
    scene = claude()
    outside, folder = tmp_path / "outside.png", scene.folder
    outside.write_bytes(b"not for the agent")
    (folder / "led.png").symlink_to(outside)
    files = [Attachment(folder / "led.png", "image/png")]
    for name, mime in (("a.png", "image/png"), ("b.pdf", "application/pdf"), ("c.zip", "x/zip")):
        (folder / name).write_bytes(name.encode())
        files.append(Attachment(folder / name, mime))
    (folder / "big.png").write_bytes(b"x" * 4_000_000)
    files.append(Attachment(folder / "big.png", "image/png"))
    files.append(Attachment(folder / "gone.png", "image/png"))
    play = await scene.say("/blocks", attachments=files)
    image, paper, text = json.loads(play.text)
    assert (image["type"], paper["type"]) == ("image", "document")
    assert base64.b64decode(image["source"]["data"]) == b"a.png"
    assert text == {"type": "text", "text": "/blocks"}


async def test_it_is_started_without_settings_of_others_and_without_its_own_clock(
    claude: Make,
) -> None:
    scene = claude()
    await scene.say("hello")
    (arguments,) = scene.starts
    assert {"--setting-sources=", "--strict-mcp-config"} <= set(arguments)
    off = arguments[arguments.index("--disallowedTools") + 1].split(",")
    assert {"CronCreate", "ScheduleWakeup", "SendMessage", "Monitor"} <= set(off)


async def test_an_admin_may_name_the_settings_that_count(claude: Make) -> None:
    scene = claude("--setting-sources=project")
    await scene.say("hello")
    (arguments,) = scene.starts
    assert "--setting-sources=" not in arguments


async def test_a_token_is_in_no_argument_and_its_file_is_gone_when_it_is_read(
    claude: Make,
) -> None:
    server = ToolServer("laneway", "http://127.0.0.1:1/mcp", "hush")
    scene = claude(servers=lambda request: [server])
    first = await scene.say("hello")
    await scene.say("hello", session="00000000-0000-4000-8000-000000000000")
    for arguments in scene.starts:
        assert arguments[arguments.index("--allowedTools") + 1] == "mcp__laneway"
        assert "hush" not in " ".join(arguments)
        assert not Path(arguments[arguments.index("--mcp-config") + 1]).exists()
    assert first.last == DONE


async def test_its_environment_is_what_is_allowed(
    claude: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "ANTHROPIC_API_KEY", "GIVEN"):
        monkeypatch.setenv(name, "1")
    names = json.loads((await claude(env=["GIVEN"]).say("/env")).text)
    assert "GIVEN" in names
    assert not {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "ANTHROPIC_API_KEY"} & set(names)
    assert {"DISABLE_TELEMETRY", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"} <= set(names)
