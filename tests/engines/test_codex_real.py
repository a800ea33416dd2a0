"""The Codex adapter on the real program, with a scripted model on loopback.

Run by ``make test-engines``; skipped where LANEWAY_TEST_CODEX does not name the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import struct
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from zlib import compress, crc32

import psutil
import pytest

from core.clock import SystemClock
from core.engines.agents import ToolServer
from core.engines.base import (
    ApprovalAsked,
    Approvals,
    Attachment,
    Decision,
    Engine,
    Finished,
    Started,
    SteerSettled,
    Thought,
    ToolEnded,
    ToolStarted,
    Usage,
)
from core.engines.codex import CodexEngine
from core.turns import Result
from tests.contracts.engine_contract import Act, EngineContract, Play, processes_of
from tests.contracts.program_contract import RealProgramContract
from tests.engines.codex_scenes import Scene
from tests.engines.program_scenes import DONE, places, questions, running, tool, usages
from tests.fakes.mcp_server import ToolService
from tests.fakes.responses_server import TOKENS_IN, TOKENS_OUT, ResponsesServer

PROGRAM = os.environ.get("LANEWAY_TEST_CODEX", "")
pytestmark = [
    pytest.mark.skipif(not PROGRAM, reason="LANEWAY_TEST_CODEX names no program"),
    pytest.mark.timeout(120),
]
MODEL = "gpt-5.5"  # it has every tool under its plain name

CONFIG = """
model = "{model}"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}"
wire_api = "responses"
env_key = "A_KEY_OF_NOBODY"
request_max_retries = 0
stream_max_retries = 0
"""


@pytest.fixture
async def service() -> AsyncIterator[ResponsesServer]:
    async with ResponsesServer(pause=0.05) as server:
        yield server


@pytest.fixture
def person(service: ResponsesServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home directory of nobody, so that no login or setting of this machine is used.

    It does not lie in the usual temporary folder, where Codex puts no helpers of its own.
    """
    home = Path(tempfile.mkdtemp(prefix=".laneway-test-", dir=Path.home()))
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(CONFIG.format(model=MODEL, url=service.url))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.setenv("A_KEY_OF_NOBODY", "sk-a-key-of-nobody")
    yield home
    shutil.rmtree(home)


def real(home: Path, **settings: Any) -> CodexEngine:
    env = ("A_KEY_OF_NOBODY",)
    return CodexEngine((PROGRAM,), home=home, clock=SystemClock(), env=env, **settings)


class TestRealCodex(EngineContract):
    prompts: ClassVar[Mapping[Act, str]] = {
        Act.ANSWER: "remember the blue door",
        Act.RECALL: "RECALL",
        Act.HANG: "SLOW 3000",
        Act.APPROVE: 'TOOL exec_command {"cmd": "touch tea.txt"}',
        Act.FAIL: "ERROR 400",
        Act.CRASH: 'TOOL exec_command {"cmd": "kill -9 $PPID", "sandbox_permissions": '
        '"require_escalated"}',
    }
    remembered = "the blue door"

    @pytest.fixture(autouse=True)
    def _person(self, person: Path) -> None:
        self.person = person

    def make_engine(self, home: Path) -> Engine:
        return real(home)


class TestRealCodexAtWork(RealProgramContract):
    talk = "input"
    obeys_within = 1.0

    def shell(self, command: str) -> str:
        return run(command)


@pytest.fixture
async def scene(tmp_path: Path, person: Path) -> AsyncIterator[Scene]:
    home, folder = places(tmp_path)
    (home / "laneway.db").write_text("SECRET")
    made = Scene(home, folder, real(home, private=[home]))
    yield made
    await made.engine.close()


def run(command: str, **given: Any) -> str:
    return tool("exec_command", cmd=command, **given)


def patch(*lines: str) -> str:
    return "\n".join(["PATCH *** Begin Patch", *lines, "*** End Patch"])


def answers(service: ResponsesServer) -> str:
    """Everything that tools have answered to the model."""
    found = [one for body in service.seen for one in body["input"] if "output" in one]
    return json.dumps(found)


def command_lines(home: Path) -> list[list[str]]:
    """Of every process that lives; some do only for a moment."""
    found = []
    for process in processes_of(home):
        with contextlib.suppress(psutil.Error):
            found.append(process.cmdline())
    return found


async def test_a_turn_streams_and_its_tokens_are_counted(scene: Scene) -> None:
    first = await scene.say("hello")
    assert first.text == "You said: hello"
    assert first.started.model == MODEL
    assert usages(first)[-1] == Usage(TOKENS_IN, TOKENS_OUT)
    second = await scene.say(run("true"), session=first.started.session)
    assert second.started.resumed
    assert usages(second)[-1] == Usage(2 * TOKENS_IN, 2 * TOKENS_OUT)


async def test_a_resumed_thread_is_not_charged_with_its_past(scene: Scene) -> None:
    first = await scene.say("hello")
    await scene.engine.close()
    scene.engine = real(scene.home)
    second = await scene.say("again", session=first.started.session)
    assert second.started.resumed
    assert usages(second)[-1] == Usage(TOKENS_IN, TOKENS_OUT)


async def test_thoughts_and_tools_are_told(scene: Scene) -> None:
    thinking = await scene.say("THINK it over")
    assert Thought("it over") in thinking.events
    play = await scene.say(run("echo hello"))
    (started,) = [event for event in play.events if isinstance(event, ToolStarted)]
    assert started.title == "echo hello"
    assert ToolEnded(started.id, started.title) in play.events
    assert "\n\nThe tool says:" in play.text
    failed = await scene.say(run("false"))
    assert any(isinstance(event, ToolEnded) and event.failed for event in failed.events)


async def test_asking_is_for_every_command_and_auto_for_leaving_the_sandbox(scene: Scene) -> None:
    asked = await scene.say(run("ls"))
    assert [(one.tool, one.command) for one in questions(asked)] == [("run a command", "ls")]
    session = asked.started.session
    auto: dict[str, Any] = {"session": session, "approvals": Approvals.AUTO}
    inside = await scene.say(run("touch there"), **auto)
    assert not inside.saw(ApprovalAsked)
    assert (scene.folder / "there").exists()
    outside = scene.home.parent / "outside"
    out = run(f"touch {outside}", sandbox_permissions="require_escalated", justification="j")
    left = await scene.say(out, **auto)
    assert [one.command for one in questions(left)] == [f"touch {outside}"]
    assert outside.exists()
    again = await scene.say(run("ls"), session=session)
    assert again.saw(ApprovalAsked)
    full = await scene.say(run("touch more"), session=session, approvals=Approvals.FULL)
    assert full.saw(ApprovalAsked)


async def test_a_no_is_a_no_and_the_turn_goes_on(scene: Scene) -> None:
    play = await scene.say(run("touch there"), decision=Decision.DENY)
    assert not (scene.folder / "there").exists()
    assert "rejected by user" in play.text
    assert play.last == DONE
    other = await scene.say(
        patch("*** Add File: made", "+x"), session=play.started.session, decision=Decision.DENY
    )
    assert other.last == DONE
    assert not (scene.folder / "made").exists()


async def test_one_yes_is_for_one_command(scene: Scene) -> None:
    first = await scene.say(run("touch a"))
    again = await scene.say(run("touch a"), session=first.started.session, decision=Decision.DENY)
    assert again.saw(ApprovalAsked)


async def test_a_change_of_files_is_shown_in_full_before_it_is_made(scene: Scene) -> None:
    (scene.folder / "old").write_text("one\ntwo\n")
    (scene.folder / "gone").write_text("bye\n")
    play = await scene.say(
        patch(
            *("*** Add File: new", "+hello", "+there"),
            *("*** Update File: old", "*** Move to: older", "@@", " one", "-two", "+three"),
            "*** Delete File: gone",
        )
    )
    (asked,) = questions(play)
    assert asked.tool == "change files"
    assert f"write {scene.folder}/new\n+ hello\n+ there" in asked.command
    assert f"change {scene.folder}/old, then move it to {scene.folder}/older" in asked.command
    assert "-two\n+three" in asked.command
    assert f"delete {scene.folder}/gone\n- bye" in asked.command
    assert (scene.folder / "new").read_text() == "hello\nthere\n"
    assert (scene.folder / "older").read_text() == "one\nthree\n"
    started = [event.title for event in play.events if isinstance(event, ToolStarted)]
    assert started == ["change gone, new, old"] or set(started[0][7:].split(", ")) == {
        *("gone", "new", "old")
    }


@pytest.mark.parametrize(
    ("approvals", "place"),
    [
        (Approvals.ASK, "home/workspaces/lane"),
        (Approvals.AUTO, "home/workspaces/lane"),  # inside of what is closed
        (Approvals.FULL, "."),  # above it
    ],
)
async def test_no_command_reads_what_is_the_gateways_own(
    scene: Scene, person: Path, service: ResponsesServer, approvals: Approvals, place: str
) -> None:
    (person / ".codex" / "auth.json").write_text('{"OPENAI_API_KEY": "SECRET"}')
    scene.folder = scene.home.parent / place
    scene.folder.mkdir(parents=True, exist_ok=True)
    look = f"cat {scene.home}/laneway.db {person}/.codex/auth.json; touch $TMPDIR/t made; env"
    await scene.say(run(look), approvals=approvals)
    assert "SECRET" not in answers(service)
    assert "Permission denied" in answers(service) or "No such file" in answers(service)
    assert "a-key-of-nobody" not in answers(service)
    assert "LANEWAY_TURN_MARK=" in answers(service)
    assert (scene.folder / "made").exists()


async def test_settings_and_instructions_of_a_workspace_do_not_count(
    scene: Scene, person: Path, service: ResponsesServer
) -> None:
    (scene.folder / ".codex" / "rules").mkdir(parents=True)
    made = scene.home / "evil"
    settings = f'model = "evil"\n[mcp_servers.evil]\ncommand = "touch"\nargs = ["{made}"]\n'
    (scene.folder / ".codex" / "config.toml").write_text(settings)
    allow = 'prefix_rule(pattern=["touch"], decision="allow")\n'
    (scene.folder / ".codex" / "rules" / "x.rules").write_text(allow)
    (scene.folder / "AGENTS.md").write_text("Be kind to doors.")
    before = (person / ".codex" / "config.toml").read_text()
    for _ in range(2):
        play = await scene.say(run("touch there"), decision=Decision.DENY)
        assert play.saw(ApprovalAsked)
        assert play.started.model == MODEL
        await scene.engine.close()
        scene.engine = real(scene.home)
    assert not made.exists()
    assert (person / ".codex" / "config.toml").read_text() == before
    assert "Be kind to doors." not in json.dumps(service.seen)


async def test_commands_reach_the_network_where_somebody_is_asked_and_else_ask_for_it(
    scene: Scene, service: ResponsesServer
) -> None:
    port = service.url.split(":")[2].partition("/")[0]
    connect = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"
    reach = f"{connect} && echo REACHED"
    more = {"network": {"enabled": True}}
    extra = {"sandbox_permissions": "with_additional_permissions", "justification": "j"}
    asked = await scene.say(run(reach))
    assert "\nREACHED" in asked.text
    auto: dict[str, Any] = {"session": asked.started.session, "approvals": Approvals.AUTO}
    alone = await scene.say(run(reach), **auto)
    assert "\nREACHED" not in alone.text
    play = await scene.say(run(reach, additional_permissions=more, **extra), **auto)
    (question,) = questions(play)
    assert question.command.startswith(reach)
    assert '"enabled": true' in question.command
    assert "\nREACHED" in play.text
    assert "SECRET" not in (await scene.say(run(f"cat {scene.home}/laneway.db"), **auto)).text


@pytest.mark.parametrize("trusted", ["folder", "above"])
async def test_a_folder_that_the_person_trusts_is_not_trusted_here(
    scene: Scene, person: Path, service: ResponsesServer, trusted: str
) -> None:
    above = scene.folder.parent / "repository"
    scene.folder = above / "inner"
    made = scene.home / "evil"
    for place in (above, scene.folder):
        (place / ".codex").mkdir(parents=True)
        evil = f'model = "evil"\n[mcp_servers.evil]\ncommand = "touch"\nargs = ["{made}"]\n'
        (place / ".codex" / "config.toml").write_text(evil)
    (above / ".git").mkdir()
    (above / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    config = person / ".codex" / "config.toml"
    place = scene.folder if trusted == "folder" else above
    config.write_text(config.read_text() + f'[projects."{place}"]\ntrust_level = "trusted"\n')
    play = await scene.say("hello")
    assert play.started.model == MODEL
    assert service.seen[-1]["model"] == MODEL
    assert not made.exists()


async def test_settings_of_a_person_do_not_open_more_than_was_asked_for(
    scene: Scene, person: Path
) -> None:
    config = person / ".codex" / "config.toml"
    open_wide = 'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
    config.write_text(open_wide + config.read_text())
    play = await scene.say(run(f"cat {scene.home}/laneway.db"))
    assert play.saw(ApprovalAsked)
    assert "SECRET" not in play.text


async def test_a_message_is_taken_into_the_running_turn(
    scene: Scene, service: ResponsesServer
) -> None:
    play = scene.play("SLOW 3000")
    async with running(play):
        await play.run.steer(7, "and be quick")
    assert SteerSettled(7, taken=True) in play.events
    assert play.text.startswith("w0 ")
    assert play.text.endswith(" You said: and be quick")
    assert play.last == DONE
    after = await scene.say("RECALL", session=play.started.session)
    assert "and be quick" in after.text


async def test_a_session_is_compacted(scene: Scene, service: ResponsesServer) -> None:
    first = await scene.say("remember the garden")
    second = await scene.say("", compact=True, session=first.started.session)
    assert second.text == "The conversation was compacted."
    assert second.last == DONE
    third = await scene.say("hello", session=first.started.session)
    assert third.started.resumed
    assert third.last == DONE
    nothing = await scene.say("", compact=True)
    assert (nothing.text, nothing.last) == ("There is nothing to compact yet.", DONE)


def png() -> bytes:
    """A picture of one point."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    points = chunk(b"IDAT", compress(b"\0\xff\0\0"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + points + chunk(b"IEND", b"")


async def test_pictures_are_handed_over(scene: Scene, service: ResponsesServer) -> None:
    picture, table = scene.folder / "a.png", scene.folder / "c.csv"
    picture.write_bytes(png())
    table.write_text("a,b")
    files = (Attachment(picture, "image/png"), Attachment(table, "text/csv"))
    play = await scene.say("look", attachments=files)
    assert play.last == DONE
    assert "data:image/png;base64," in json.dumps(service.seen[-1]["input"])


async def test_model_and_effort_hold_from_the_next_turn_and_can_be_taken_back(
    scene: Scene, service: ResponsesServer
) -> None:
    session, told = "", []
    for settings in ({}, {"model": "gpt-5.6-luna", "effort": "high"}, {}):
        play = await scene.say("hello", session=session, **settings)
        session, body = play.started.session, service.seen[-1]
        told.append((body["model"], body["reasoning"]["effort"]))
    assert told == [(MODEL, "medium"), ("gpt-5.6-luna", "high"), (MODEL, "medium")]
    assert len({process.pid for process in processes_of(scene.home)}) == 1


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (401, {}, "Codex is not signed in"),
        (429, {}, "takes no more requests just now"),
        (429, {"type": "usage_limit_reached", "resets_in_seconds": 7200}, "limit of use"),
        (500, {}, "has a problem just now"),
        (404, {}, "cannot use the model"),
        (400, {"message": "the ink is out"}, "the ink is out"),
    ],
)
async def test_a_failure_of_the_service_is_a_failure_in_plain_words(
    scene: Scene, service: ResponsesServer, status: int, error: dict[str, Any], words: str
) -> None:
    service.error = error
    play = await scene.say(f"ERROR {status}")
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    assert words in play.last.error
    assert play.text == ""


async def test_what_would_go_round_the_gateway_is_off(
    scene: Scene, service: ResponsesServer
) -> None:
    for model in (MODEL, "gpt-6.1-sol"):
        await scene.say("hello", model=model)
        offered = service.tools()
        assert offered & {"exec_command", "exec"}
        assert not offered & {"spawn_agent", "create_goal", "web_search", "sleep"}


async def test_only_what_is_allowed_is_in_its_environment(
    scene: Scene, service: ResponsesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "1")
    monkeypatch.setenv("LANEWAY_TELEGRAM_TOKEN", "hush")
    await scene.say(run("env", sandbox_permissions="require_escalated"))
    assert "hush" not in answers(service)
    assert "a-key-of-nobody" not in answers(service)


async def test_who_is_not_signed_in_is_told(scene: Scene, person: Path) -> None:
    (person / ".codex" / "config.toml").write_text("")
    findings = {finding.name: finding for finding in await scene.engine.check()}
    assert not findings["codex: login"].ok
    assert "codex login" in findings["codex: login"].fix


async def test_a_service_out_of_reach_is_given_up(scene: Scene, person: Path) -> None:
    config = person / ".codex" / "config.toml"
    config.write_text(
        re.sub(r'base_url = ".*"', 'base_url = "http://127.0.0.1:9/v1"', config.read_text())
    )
    play = await scene.say("hello")
    assert isinstance(play.last, Finished)
    assert "could not reach its service" in play.last.error


# Answers on the side --------------------------------------------------------------------------


def threads(person: Path) -> dict[Path, int]:
    """Every conversation that is kept, with its size."""
    found = (person / ".codex" / "sessions").rglob("*.jsonl")
    return {path: path.stat().st_size for path in found}


@pytest.mark.parametrize("model", [MODEL, "gpt-6.1-sol"])
async def test_a_side_answer_can_read_the_workspace_and_nothing_else(
    scene: Scene, service: ResponsesServer, person: Path, model: str
) -> None:
    (scene.folder / "notes.txt").write_text("the door is blue")
    (scene.folder / "link").symlink_to("/etc/passwd")
    first = await scene.say("remember the garden", model=model)
    session = first.started.session
    main = scene.play("SLOW 3000", session=session, model=model)
    direct = {
        "recall": "RECALL",
        "read": tool("read_file", path="notes.txt"),
        "list": tool("list_files"),
        "run": run(f"touch {scene.folder}/made", sandbox_permissions="require_escalated"),
        "type": tool("write_stdin", session_id=1, chars="touch made\n"),
        "shell": tool("shell", command=["touch", "made"]),
        "shell command": tool("shell_command", command="touch made"),
        "patch": patch("*** Add File: made", "+x"),
        "patch again": tool("apply_patch", input="*** Begin Patch\n*** Add File: made\n+x"),
        "outside": tool("read_file", path="/etc/passwd"),
        "above": tool("read_file", path="../../../../../../etc/passwd"),
        "link": tool("read_file", path="link"),
        "image": tool("view_image", path="/etc/passwd"),
        "delegate": tool("collaboration/spawn_agent", task_name="t", message="touch made"),
        "permissions": tool("request_permissions", permissions={"network": {"enabled": True}}),
        "search": tool("search_files", text="root:", path="/etc"),
    }
    in_code = {
        "code": "SCRIPT text(Object.keys(tools).sort().join(' '))",
        "code reads": "SCRIPT text(await tools.read_file({path: 'notes.txt'}))",
        "code runs": f"SCRIPT text(await tools.exec_command({{cmd: 'touch {scene.folder}/made'}}))",
        "code changes": "SCRIPT text(await tools.apply_patch('*** Begin Patch'))",
        "code imports": "SCRIPT text((await import('fs')).readFileSync('/etc/passwd'))",
    }
    sides: dict[str, Play] = {}
    async with running(main):
        before, asked = threads(person), len(service.seen)
        for number, prompt in {**direct, **(in_code if model != MODEL else {})}.items():
            sides[number] = await scene.say(prompt, session=session, read_only=True, model=model)
        assert not main.over
        await main.run.stop(1.0)
    assert all(side.last == DONE for side in sides.values()), sides
    assert not any(side.saw(ApprovalAsked) for side in sides.values())
    assert {side.started.session for side in sides.values()}.isdisjoint({session})
    assert "remember the garden" in sides["recall"].text
    reads = "code reads" if model != MODEL else "read"
    assert "the door is blue" in sides[reads].text
    assert "root:x" not in json.dumps(service.seen)
    assert sorted(path.name for path in scene.folder.iterdir()) == ["link", "notes.txt"]
    offered = set().union(*(service.tools(at) for at in range(asked, len(service.seen))))
    known = {*("read_file", "list_files", "search_files"), "request_user_input"}
    known.add("apply_patch")  # newer ones offer it, and have no machine to use it on
    for patched in ("patch", "patch again"):
        refused = ("No usable execution environment", "unsupported c", "aborted")
        assert any(words in sides[patched].text for words in refused), sides[patched].text
    coded = {*("exec", "wait", "functions", "request_user_input_async", "clock", "curr_time")}
    assert offered <= known | (coded if model != MODEL else set()), offered
    if model != MODEL:
        inner = {*("clock__curr_time", "list_files", "read_file", "search_files")}
        inner |= {
            "apply_patch",
            *("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
        }
        told = sides["code"].text.replace('"', " ").replace("}", " ").split()
        assert {word for word in told if "_" in word and word[0].islower()} - inner <= {
            "input_text"
        }
    assert threads(person).keys() == before.keys()
    again = await scene.say("RECALL", session=session, model=model)
    assert again.started.resumed
    assert again.text == "remember the garden | SLOW 3000"
    usage = usages(sides["recall"])[-1]
    assert usage == Usage(TOKENS_IN, TOKENS_OUT)


async def test_a_side_answer_uses_no_server_of_the_persons_own(
    scene: Scene, service: ResponsesServer, person: Path
) -> None:
    made = scene.home / "started"
    config = person / ".codex" / "config.toml"
    config.write_text(
        config.read_text() + f'[mcp_servers.own]\ncommand = "touch"\nargs = ["{made}"]\n'
    )
    first = await scene.say("remember the garden")
    assert made.exists()
    made.unlink()
    side = await scene.say("RECALL", session=first.started.session, read_only=True)
    assert side.text == "remember the garden"
    assert not made.exists()


async def test_a_side_answer_without_a_session_is_read_only_as_well(scene: Scene) -> None:
    play = await scene.say(run("touch made"), read_only=True)
    assert play.last == DONE
    assert not (scene.folder / "made").exists()


# Tools of the gateway -------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"read_only": True}, {"approvals": Approvals.FULL}])
async def test_tools_of_the_gateway_are_called_unasked_and_their_token_is_in_no_argument(
    scene: Scene, person: Path, more: dict[str, Any]
) -> None:
    async with ToolService() as tools:
        server = ToolServer("laneway", tools.url, "a-token-of-it")
        scene.engine = real(scene.home, servers=lambda request: [server])
        play = scene.play(tool("mcp__laneway/send_message", text="hello"), **more)
        events: Any = play.run.events()
        async for event in events:
            if isinstance(event, Started):
                assert "a-token-of-it" not in str(command_lines(scene.home))
            play.events.append(event)
        await scene.engine.close()
    assert tools.calls == ["hello"]
    assert set(tools.headers) == {"Bearer a-token-of-it"}
    assert not play.saw(ApprovalAsked)
    started = [event for event in play.events if isinstance(event, ToolStarted)]
    assert started[-1].title == "laneway: send_message"
    left = [path for path in (*scene.home.rglob("*"), *person.rglob("*")) if path.is_file()]
    assert not any(b"a-token-of-it" in path.read_bytes() for path in left)


async def test_what_a_command_left_running_lives_and_dies_with_the_program(scene: Scene) -> None:
    scene.engine = real(scene.home)  # where nothing is closed, Codex lets it live
    left = run("setsid -f sleep 611; touch begun", sandbox_permissions="require_escalated")
    play = await scene.say(left)
    assert play.last == DONE
    assert ["sleep", "611"] in command_lines(scene.home)
    await scene.engine.close()
    assert processes_of(scene.home) == []
