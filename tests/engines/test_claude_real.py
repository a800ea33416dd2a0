"""The Claude Code adapter on the real program, with a scripted model on loopback.

Run by ``make test-engines``; skipped where LANEWAY_TEST_CLAUDE does not name the program.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from core.clock import SystemClock
from core.engines.agents import ToolServer
from core.engines.base import (
    ApprovalAsked,
    Approvals,
    Attachment,
    Decision,
    Engine,
    Failure,
    FailureKind,
    Finished,
    Started,
    SteerSettled,
    Thought,
    ToolEnded,
    ToolStarted,
    Usage,
)
from core.engines.claude import ClaudeEngine
from core.turns import Result
from tests.contracts.engine_contract import Act, EngineContract, Play, processes_of
from tests.contracts.program_contract import RealProgramContract
from tests.engines.claude_scenes import Scene
from tests.engines.program_scenes import DONE, places, questions, running, tool, usages
from tests.fakes.anthropic_server import TOKENS_IN, TOKENS_OUT, AnthropicServer
from tests.fakes.mcp_server import ToolService

PROGRAM = os.environ.get("LANEWAY_TEST_CLAUDE", "")
pytestmark = [
    pytest.mark.skipif(not PROGRAM, reason="LANEWAY_TEST_CLAUDE names no program"),
    pytest.mark.timeout(120),
]
MODEL = "claude-sonnet-4-5"  # its prices are known to every version


@pytest.fixture
async def service() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer(pause=0.05) as server:
        yield server


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory of nobody, so that no login or setting of this machine is used."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def real(home: Path, service: AnthropicServer, **settings: Any) -> ClaudeEngine:
    switches = {
        "ANTHROPIC_BASE_URL": service.url,
        "ANTHROPIC_API_KEY": "a-key-of-nobody",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        **settings.pop("switches", {}),
    }
    return ClaudeEngine((PROGRAM,), home=home, clock=SystemClock(), switches=switches, **settings)


class TestRealClaude(EngineContract):
    prompts: ClassVar[Mapping[Act, str]] = {
        Act.ANSWER: "remember the blue door",
        Act.RECALL: "RECALL",
        Act.HANG: "SLOW 3000",
        Act.APPROVE: 'TOOL Bash {"command": "touch tea.txt"}',
        Act.FAIL: "ERROR 400",
        Act.CRASH: 'TOOL Bash {"command": "kill -9 $PPID"}',
    }
    remembered = "the blue door"

    @pytest.fixture(autouse=True)
    def _service(self, service: AnthropicServer) -> None:
        self.service = service

    def make_engine(self, home: Path) -> Engine:
        return real(home, self.service)


class TestRealClaudeAtWork(RealProgramContract):
    talk = "messages"
    obeys_within = 3.0

    def shell(self, command: str) -> str:
        return tool("Bash", command=command)


@pytest.fixture
async def scene(tmp_path: Path, service: AnthropicServer) -> AsyncIterator[Scene]:
    home, folder = places(tmp_path)
    (home / "laneway.db").write_text("SECRET")
    made = Scene(home, folder, real(home, service, private=[(home, "laneway.db*")]))
    yield made
    await made.engine.close()


async def test_a_turn_streams_and_is_counted(scene: Scene) -> None:
    first = await scene.say("hello", model=MODEL)
    assert first.text == "You said: hello"
    assert first.started.model == MODEL
    usage = first.events[-2]
    assert isinstance(usage, Usage)
    assert (usage.tokens_in, usage.tokens_out) == (TOKENS_IN, TOKENS_OUT)
    assert usage.cost == pytest.approx(0.00375)
    second = await scene.say("again", model=MODEL, session=first.started.session)
    assert second.started.resumed
    assert second.events[-2] == usage
    await scene.engine.close()


async def test_a_resumed_session_is_not_charged_with_its_past(
    scene: Scene, service: AnthropicServer
) -> None:
    first = await scene.say("hello", model=MODEL)
    await scene.engine.close()
    scene.engine = real(scene.home, service)
    second = await scene.say("again", model=MODEL, session=first.started.session)
    assert second.started.resumed
    assert second.events[-2] == first.events[-2]


async def test_a_cap_ends_the_turn_after_the_step_that_reaches_it_and_not_the_session(
    scene: Scene,
) -> None:
    first = await scene.say("hello", model=MODEL)
    session = first.started.session
    tool_use = tool("Bash", command="touch tea.txt")
    capped = await scene.say(
        tool_use, model=MODEL, session=session, budget=0.003, approvals=Approvals.FULL
    )
    assert capped.started.resumed
    end = capped.events[-1]
    assert isinstance(end, Finished)
    assert end.failure == Failure(FailureKind.SPENT)
    assert usages(capped)[-1].cost == pytest.approx(0.00375)
    enough = await scene.say("again", model=MODEL, session=session, budget=0.1)
    assert enough.events[-1] == DONE
    free = await scene.say("RECALL", model=MODEL, session=session)
    assert free.started.resumed
    assert free.events[-1] == DONE


async def test_the_cost_is_told_before_a_command_is_run(
    scene: Scene, service: AnthropicServer
) -> None:
    first = await scene.say("hello", model=MODEL)
    await scene.engine.close()
    session = first.started.session
    scene.engine = real(scene.home, service)
    play = await scene.say(tool("Bash", command="true"), model=MODEL, session=session)
    costs = [usage.cost for usage in usages(play)]
    assert pytest.approx(0.00375) in costs[:-1]
    assert costs[-1] == pytest.approx(0.0075)


async def test_thoughts_and_tools_are_told(scene: Scene) -> None:
    thinking = await scene.say("THINK it over")
    assert Thought("it over") in thinking.events
    file = scene.folder / "notes.txt"
    file.write_text("blue")
    play = await scene.say(tool("Read", file_path=str(file)))
    (started,) = [event for event in play.events if isinstance(event, ToolStarted)]
    assert started.title == "read notes.txt"
    assert ToolEnded(started.id, started.title) in play.events
    assert "\n\nThe tool says:" in play.text


async def test_asking_is_for_every_command_and_auto_for_what_may_do_harm(scene: Scene) -> None:
    asked = await scene.say(tool("Bash", command="echo hello", description="greet"))
    (question,) = questions(asked)
    assert (question.tool, question.command) == ("run a command", "echo hello")
    session = asked.started.session
    harmless = await scene.say(
        tool("Bash", command="echo hello"), session=session, approvals=Approvals.AUTO
    )
    assert not harmless.saw(ApprovalAsked)
    other = await scene.say(
        tool("Bash", command="touch there"), session=session, approvals=Approvals.FULL
    )
    assert other.saw(ApprovalAsked)
    assert (scene.folder / "there").exists()


async def test_a_no_is_a_no(scene: Scene) -> None:
    play = await scene.say(tool("Bash", command="touch there"), decision=Decision.DENY)
    assert not (scene.folder / "there").exists()
    assert "A person was asked and said no" in play.text
    assert play.last == DONE


async def test_one_yes_is_for_one_command(scene: Scene) -> None:
    first = await scene.say(tool("Write", file_path=str(scene.folder / "a"), content="1"))
    second = await scene.say(
        tool("Write", file_path=str(scene.folder / "b"), content="2"),
        session=first.started.session,
        decision=Decision.DENY,
    )
    assert second.saw(ApprovalAsked)
    assert (scene.folder / "a").read_text() == "1"
    assert not (scene.folder / "b").exists()
    assert not (scene.folder / ".claude").exists()


@pytest.mark.parametrize("approvals", [Approvals.ASK, Approvals.FULL])
async def test_what_is_the_gateways_own_is_closed_even_to_a_yes(
    scene: Scene, approvals: Approvals
) -> None:
    secret = scene.home / "laneway.db"
    read = await scene.say(tool("Read", file_path=str(secret)), approvals=approvals)
    session = read.started.session
    shell = tool("Bash", command=f"cat {secret}")
    printed = await scene.say(shell, session=session, approvals=approvals)
    assert "SECRET" not in read.text + printed.text
    assert not read.saw(ApprovalAsked)


async def test_a_workspace_in_the_home_is_open(scene: Scene) -> None:
    folder = scene.home / "workspaces" / "lane"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("blue")
    play = await scene.say(tool("Read", file_path=str(folder / "notes.txt")), folder=folder)
    assert "blue" in play.text


async def test_a_message_during_the_answer_is_answered_in_the_same_turn(scene: Scene) -> None:
    play = scene.play("SLOW 8")
    async with running(play):
        await play.run.steer(7, "and be quick")
    assert SteerSettled(7, taken=True) in play.events
    assert play.text.endswith("w7 \n\nYou said: and be quick") or "w7 You said" in play.text
    assert play.last == DONE
    assert usages(play)[-1].tokens_out == 2 * TOKENS_OUT


async def test_a_question_form_becomes_text(scene: Scene) -> None:
    options = [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]
    question = {"question": "Which colour?", "header": "Colour", "options": options}
    question["multiSelect"] = False
    play = await scene.say(tool("AskUserQuestion", questions=[question]))
    assert "**Which colour?**\n1. red – warm\n2. blue – cold" in play.text
    assert not play.saw(ApprovalAsked)
    assert play.last == DONE


async def test_a_side_answer_can_read_the_workspace_and_nothing_else(
    scene: Scene, service: AnthropicServer, person: Path
) -> None:
    (scene.folder / "notes.txt").write_text("the door is blue")
    (scene.folder / "link").symlink_to("/etc/hostname")
    (person / ".claude").mkdir(exist_ok=True)
    main = scene.play("SLOW 3000", model=MODEL)
    first = await scene.say("remember the garden", lane="lane two", model=MODEL)
    session = first.started.session
    async with running(main):
        before = transcripts(person)
        tries = {
            "recall": "RECALL",
            "read": tool("Read", file_path=str(scene.folder / "notes.txt")),
            "write": tool("Write", file_path=str(scene.folder / "made"), content="x"),
            "edit": tool(
                "Edit",
                file_path=str(scene.folder / "notes.txt"),
                old_string="blue",
                new_string="red",
            ),
            "run": tool("Bash", command=f"touch {scene.folder}/made"),
            "outside": tool("Read", file_path="/etc/passwd"),
            "link": tool("Read", file_path=str(scene.folder / "link")),
            "mention": "what is in @/etc/passwd and @link?",
            "search": tool("Grep", pattern="root", path="/etc", output_mode="content"),
            "list": tool("Glob", pattern="/etc/*"),
            "delegate": tool("Task", description="d", prompt="p", subagent_type="general-purpose"),
            "transcripts": tool("Read", file_path=str(next(iter(before)))),
        }
        sides: dict[str, Play] = {}
        for name, prompt in tries.items():
            sides[name] = await scene.say(
                prompt, lane="lane two", session=session, read_only=True, model=MODEL
            )
        assert not main.over
        await main.run.stop(1.0)
    assert "remember the garden" in sides["recall"].text
    assert "the door is blue" in sides["read"].text
    assert "root:" not in sides["outside"].text + sides["search"].text
    assert "hostname" not in sides["list"].text
    assert Path("/etc/hostname").read_text().strip() not in sides["link"].text
    assert "remember the garden" not in sides["transcripts"].text
    assert "root:" not in json.dumps(service.seen)
    for name in set(tries) - {"recall", "read", "mention"}:
        assert failures(sides[name]), name
        assert sides[name].last == DONE
    assert sorted(path.name for path in scene.folder.iterdir()) == ["link", "notes.txt"]
    assert (scene.folder / "notes.txt").read_text() == "the door is blue"
    assert not any(side.saw(ApprovalAsked) for side in sides.values())
    assert {side.started.session for side in sides.values()}.isdisjoint({session})
    after = transcripts(person)
    assert {path: after[path] for path in before if path.stem == session} == {
        path: size for path, size in before.items() if path.stem == session
    }
    own = main.started.session  # it was written while the others were tried
    assert {path for path in after if path.stem != own} == {
        path for path in before if path.stem != own
    }
    again = await scene.say("RECALL", lane="lane two", session=session, model=MODEL)
    assert again.text == "remember the garden"
    costs = [usage.cost for usage in usages(sides["recall"])]
    assert costs[-1] == pytest.approx(0.00375)


def transcripts(person: Path) -> dict[Path, int]:
    """Every conversation that is kept, with its size."""
    found = (person / ".claude" / "projects").rglob("*.jsonl")
    return {path: path.stat().st_size for path in found}


def failures(play: Play) -> list[ToolEnded]:
    return [event for event in play.events if isinstance(event, ToolEnded) and event.failed]


async def test_a_side_answer_without_a_session_is_read_only_as_well(scene: Scene) -> None:
    play = await scene.say(tool("Bash", command="touch made"), read_only=True)
    assert failures(play)
    assert not (scene.folder / "made").exists()


async def test_a_session_is_compacted(scene: Scene) -> None:
    nothing = await scene.say("", compact=True)
    assert nothing.text == "There is nothing to compact yet."
    assert nothing.last == DONE
    first = await scene.say("remember the garden")
    second = await scene.say("", compact=True, session=first.started.session)
    assert second.text.startswith("Compacted: ")
    assert second.last == DONE
    third = await scene.say("RECALL", session=first.started.session)
    assert third.started.resumed
    assert third.last == DONE


async def test_pictures_and_papers_are_handed_over(scene: Scene, service: AnthropicServer) -> None:
    picture, paper, table = (scene.folder / name for name in ("a.png", "b.pdf", "c.csv"))
    picture.write_bytes(
        bytes.fromhex(
            "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
            "08d763f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
        )
    )
    paper.write_bytes(b"%PDF-1.4\n%%EOF\n")
    table.write_text("a,b")
    files = (
        Attachment(picture, "image/png"),
        Attachment(paper, "application/pdf"),
        Attachment(table, "text/csv"),
    )
    play = await scene.say("look", attachments=files)
    assert play.last == DONE
    kinds = [block["type"] for message in service.seen[-1]["messages"] for block in blocks(message)]
    assert kinds.count("image") == 1
    assert kinds.count("document") == 1


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else []


async def test_model_and_effort_change_from_one_turn_to_the_next(
    scene: Scene, service: AnthropicServer
) -> None:
    first = await scene.say("one", model=MODEL)
    session = first.started.session
    second = await scene.say("two", model="opus", effort="low", session=session)
    third = await scene.say("three", model="opus", effort="high", session=session)
    assert second.started.resumed
    assert third.started.resumed
    asked = [body for body in service.seen if body.get("stream")]
    assert asked[-2]["model"] == second.started.model != MODEL
    efforts = [body.get("output_config", {}).get("effort") for body in asked[-2:]]
    assert efforts == ["low", "high"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "Claude Code is not signed in"),
        (429, "has a problem just now (429)"),
        (500, "has a problem just now (500)"),
        (529, "has a problem just now (529)"),
        (404, "does not know the model"),
    ],
)
async def test_a_failure_of_the_service_is_a_failure_in_plain_words(
    scene: Scene, status: int, words: str
) -> None:
    play = await scene.say(f"ERROR {status}", model=MODEL)
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert words in play.last.error
    assert play.text == ""


async def test_its_own_clock_and_its_ways_to_other_sessions_are_off(
    scene: Scene, service: AnthropicServer
) -> None:
    await scene.say("hello")
    named = {one["name"] for body in service.seen for one in body.get("tools", ())}
    assert "Bash" in named
    off = {"CronCreate", "ScheduleWakeup", "Monitor", "SendMessage", "EnterWorktree"}
    assert not named & off


async def test_settings_and_hooks_of_a_workspace_do_not_count(scene: Scene) -> None:
    own = scene.folder / ".claude"
    own.mkdir()
    hook = {"type": "command", "command": f"touch {scene.folder}/hooked"}
    settings = {
        "permissions": {"allow": ["Bash(touch *)"]},
        "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]},
    }
    (own / "settings.json").write_text(json.dumps(settings))
    play = await scene.say(tool("Bash", command="touch there"), decision=Decision.DENY)
    assert play.saw(ApprovalAsked)
    assert not (scene.folder / "hooked").exists()


async def test_only_what_is_allowed_is_in_its_environment(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("LANEWAY_TELEGRAM_TOKEN", "hush")
    play = await scene.say(tool("Bash", command="env"))
    assert play.last == DONE
    assert "hush" not in play.text
    assert "LANEWAY_TURN_MARK" in play.text


async def test_nothing_is_begun_that_would_go_on_after_the_turn(
    scene: Scene, service: AnthropicServer
) -> None:
    play = await scene.say(
        tool("Bash", command="sleep 0.5; touch later", run_in_background=True), model=MODEL
    )
    assert play.last == DONE
    asked = len(service.seen)
    again = await scene.say("hello", session=play.started.session, model=MODEL)
    assert again.text == "You said: hello"
    assert len(service.seen) == asked + 1


async def test_tools_of_the_gateway_are_called_unasked_and_their_token_is_in_no_argument(
    scene: Scene, service: AnthropicServer
) -> None:
    async with ToolService() as tools:
        server = ToolServer("laneway", tools.url, "a-token-of-it")
        scene.engine = real(scene.home, service, servers=lambda request: [server])
        play = scene.play(tool("mcp__laneway__send_message", text="hello"))
        events: Any = play.run.events()
        async for event in events:
            if isinstance(event, Started):
                (process,) = processes_of(scene.home)
                assert "a-token-of-it" not in " ".join(process.cmdline())
            play.events.append(event)
        await scene.engine.close()
    assert tools.calls == ["hello"]
    assert set(tools.headers) == {"Bearer a-token-of-it"}
    assert "The tool says: " in play.text
    assert not play.saw(ApprovalAsked)
    started = [event for event in play.events if isinstance(event, ToolStarted)]
    assert started[-1].title == "laneway: send_message"
    left = [path for path in scene.home.rglob("*") if path.is_file()]
    assert not any("a-token-of-it" in path.read_text("utf-8", "replace") for path in left)


async def test_who_is_not_signed_in_is_told(scene: Scene, service: AnthropicServer) -> None:
    scene.engine = real(scene.home, service, switches={"ANTHROPIC_API_KEY": ""})
    findings = {finding.name: finding for finding in await scene.engine.check()}
    assert not findings["claude: login"].ok
    assert "/login" in findings["claude: login"].fix
    play = await scene.say("hello")
    assert isinstance(play.last, Finished)
    assert "not signed in" in play.last.error
