"""What every engine that drives an agent program does: with one that behaves, and with one that
crashes, hangs, floods and lies.

Subclass them, give them a scripted program that knows the directives of
``tests/fakes/scripted.py``; the last one is for the real program, with a scripted model.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

import pytest

from core.engines.asking import COMMAND_MOST
from core.engines.base import (
    ApprovalAsked,
    ApprovalWithdrawn,
    Decision,
    Finished,
    Started,
    SteerSettled,
    Thought,
    ToolEnded,
    ToolStarted,
    Unsent,
)
from core.turns import Result
from tests.contracts.engine_contract import Play, processes_of
from tests.engines.program_scenes import (
    CANCELLED,
    DONE,
    Program,
    ProgramScene,
    questions,
    running,
)

AnyScene = ProgramScene[Any]


def failure(play: Play) -> str:
    assert isinstance(play.last, Finished)
    assert play.last.result is Result.FAILED
    return play.last.error


class TurnContract:
    """A turn that goes well."""

    works: ClassVar[tuple[str, str]]  # the directive for a tool that needs no yes, and its title
    fails: ClassVar[str]  # for a tool that fails
    within: ClassVar[str]  # for what is said inside of the agent, to nobody else
    lengthy: ClassVar[str]  # for a command of so many characters
    refusal: ClassVar[str]  # what the agent says of a no

    @pytest.fixture
    def program(self) -> Program:
        raise NotImplementedError

    def received(self, scene: AnyScene) -> list[Any]:
        """Every message of a person that it was handed, at its beginning or later."""
        raise NotImplementedError

    def check_once(self, scene: AnyScene, decision: Decision) -> None:
        """Nothing that it was answered holds for more than this once."""
        raise NotImplementedError

    async def test_what_it_does_becomes_events(self, program: Program) -> None:
        directive, title = self.works
        play = await program().say(f"/think well\n/say Looking.\n{directive}\n/say Found it.")
        tools = [event for event in play.events if isinstance(event, ToolStarted | ToolEnded)]
        assert Thought("well") in play.events
        assert play.text == "Looking.\n\nFound it."  # two messages of the agent, not one sentence
        assert [tool.title for tool in tools] == [title, title]
        assert play.last == DONE

    async def test_a_failed_tool_is_told_as_failed(self, program: Program) -> None:
        play = await program().say(self.fails)
        (ended,) = [event for event in play.events if isinstance(event, ToolEnded)]
        assert ended.failed

    async def test_text_that_was_not_streamed_is_text_all_the_same_and_once(
        self, program: Program
    ) -> None:
        play = await program().say("/say streamed\n/whole at once")
        assert play.text == "streamed\n\nat once"

    async def test_what_is_said_inside_of_the_agent_is_no_answer(self, program: Program) -> None:
        """To the agent that started it, or in another of its conversations."""
        play = await program().say(f"{self.within} inner words\n/say outer words")
        assert play.text == "outer words"

    async def test_every_sign_of_life_is_told(self, program: Program) -> None:
        play = await program().say("/retry\n/say here")
        assert Thought() in play.events
        assert play.last == DONE

    @pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.DENY])
    async def test_a_decision_reaches_it_and_is_for_this_once(
        self, program: Program, decision: Decision
    ) -> None:
        scene = program()
        play = await scene.say("/run rm -r build\n/say and on", decision=decision)
        (asked,) = questions(play)
        assert (asked.tool, asked.command, asked.safe) == ("run a command", "rm -r build", False)
        assert ("ran: rm -r build" if decision is Decision.ALLOW else self.refusal) in play.text
        assert play.text.endswith("and on")
        self.check_once(scene, decision)
        assert play.last == DONE

    async def test_a_command_too_long_to_be_shown_is_declined_unasked(
        self, program: Program
    ) -> None:
        play = await program().say(f"{self.lengthy} {COMMAND_MOST + 1}")
        assert not play.saw(ApprovalAsked)
        assert self.refusal in play.text
        assert play.last == DONE

    async def test_a_question_that_is_taken_back_is_withdrawn(self, program: Program) -> None:
        play = await program().say("/withdraw rm -r build\n/say on", decision=None)
        (asked,) = questions(play)
        assert ApprovalWithdrawn(asked.id) in play.events
        assert play.text == "on"

    async def test_a_message_before_the_prompt_or_after_the_end_is_not_taken(
        self, program: Program
    ) -> None:
        scene = program()
        play = scene.play("hello")
        await play.run.steer(7, "early")
        await play.through()
        assert SteerSettled(7, taken=False) in play.events
        await play.run.steer(8, "late")
        assert self.received(scene) == ["hello"]


class ProgramContract:
    """The turn ends with words, and the lane is free."""

    broken: ClassVar[str]  # the directive that lets a turn fail with words of the agent's own

    @pytest.fixture
    def program(self) -> Program:
        raise NotImplementedError

    # Its end --------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("script", "words"),
        [
            ("/say half\n/crash 3", "ended in the middle of its work (exit code 3)."),
            ("/say half\n/kill", "ended in the middle of its work (ended by SIGKILL)."),
            ("/say half\n/halfline", "ended in the middle of its work (exit code 0)."),
        ],
    )
    async def test_an_end_in_the_middle_is_told_and_the_session_goes_on(
        self, program: Program, script: str, words: str
    ) -> None:
        scene = program()
        before = await scene.say("hello")
        session = before.started.session
        play = await scene.say(script, session=session)
        assert failure(play).endswith(words)
        assert play.text == "half"
        after = await scene.say("/turns", session=session)
        assert after.started.resumed
        assert after.text == "1"

    async def test_a_program_that_ends_after_its_answer_is_started_again(
        self, program: Program
    ) -> None:
        scene = program()
        first = await scene.say("/say x\n/exit-after 1")
        assert first.last == DONE
        second = await scene.say("/turns", session=first.started.session)
        assert second.started.resumed
        assert (second.text, second.last) == ("1", DONE)

    async def test_an_end_before_it_is_ready_may_work_the_next_time(self, program: Program) -> None:
        play = await program("--crash-start", "7").say("hello")
        (event,) = play.events
        assert isinstance(event, Unsent)
        assert "exit code 7" in event.error
        assert "laneway doctor" in event.error

    async def test_one_that_never_gets_ready_is_told_and_ended(self, program: Program) -> None:
        scene = program("--hang-start", handshake=0.3, grace=0.4)
        assert "did not open a session within" in failure(await scene.say("hello"))
        assert processes_of(scene.home) == []

    async def test_the_end_of_a_turn_is_the_end_although_the_program_stays(
        self, program: Program
    ) -> None:
        scene = program("--stay", grace=0.4)
        async with asyncio.timeout(30):
            play = await scene.say("hello")
        assert play.last == DONE

    async def test_a_lost_session_is_told_and_one_process_is_left(self, program: Program) -> None:
        scene = program()
        play = await scene.say("/turns", session="00000000-0000-4000-8000-000000000000")
        assert not play.started.resumed
        assert (play.text, play.last) == ("0", DONE)
        assert len(processes_of(scene.home)) == 1

    async def test_what_works_by_itself_after_its_turn_is_not_gone_on_with(
        self, program: Program
    ) -> None:
        scene = program()
        first = await scene.say("/say one\n/late stray words")
        second = await scene.say("/turns", session=first.started.session)
        assert (first.text, second.text) == ("one", "1")
        assert second.started.resumed

    async def test_a_session_set_aside_is_never_used_again(self, program: Program) -> None:
        scene = program()
        first = await scene.say("hello")
        scene.engine.quarantined.add(first.started.session)
        again = await scene.say("/turns", session=first.started.session)
        assert isinstance(again.events[0], Started)
        assert not again.started.resumed
        assert again.text == "0"

    # What it says ---------------------------------------------------------------------------

    @pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 1_000_000, 20_000_000])
    async def test_a_line_may_be_long(self, program: Program, size: int) -> None:
        play = await program().say(f"/line {size}\n/say done")
        assert (play.text, play.last) == ("done", DONE)

    async def test_what_a_tool_printed_may_be_longer_than_any_line(
        self, program: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core.engines.processes.LINE_LIMIT", 3_000_000)
        play = await program().say("/line 5000000\n/say done")
        assert (play.text, play.last) == ("done", DONE)
        other = await program().say("/long-line 5000000\n/say done")
        assert "a line of more than" in failure(other)

    async def test_a_flood_is_held_back_and_whole(self, program: Program) -> None:
        play = await program().say("/flood 3000")
        assert play.text == "".join(f"w{number} " for number in range(3000))

    async def test_error_output_blocks_nothing_and_is_not_posted(self, program: Program) -> None:
        scene = program("--stderr-start", "2000000")
        play = await scene.say("/stderr 2000000\n/say done")
        assert (play.text, play.last) == ("done", DONE)

    @pytest.mark.parametrize("script", ["/badline", "/unknown"])
    async def test_what_cannot_be_understood_is_passed_over(
        self, program: Program, script: str
    ) -> None:
        play = await program().say(f"{script}\n/say done")
        assert (play.text, play.last) == ("done", DONE)

    # Stopping -------------------------------------------------------------------------------

    async def test_one_that_is_deaf_and_ignores_term_is_killed_in_time(
        self, program: Program
    ) -> None:
        scene = program()
        play = scene.play("/deaf\n/ignore-term\n/spawn 60\n/say working\n/hang")
        async with running(play):
            async with asyncio.timeout(1.8 + 10):
                await play.run.stop(0.8)
        assert play.last == CANCELLED
        assert processes_of(scene.home) == []

    async def test_a_stop_with_an_open_question_withdraws_it(self, program: Program) -> None:
        scene = program()
        play = scene.play("/run rm -r build", decision=None)
        async with running(play, lambda: play.saw(ApprovalAsked)):
            await play.run.stop(4.0)
        assert play.saw(ApprovalWithdrawn)
        assert play.last == CANCELLED
        assert "ran" not in play.text

    # Why it failed --------------------------------------------------------------------------

    async def test_its_own_words_are_told_where_nothing_better_is_known(
        self, program: Program
    ) -> None:
        play = await program().say(f"{self.broken} the printer is out of ink")
        assert failure(play) == "The agent reported an error: the printer is out of ink"

    async def test_an_error_names_no_secret_it_was_given(
        self, program: Program, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GIVEN_KEY", "sk-very-secret")
        play = await program(env=["GIVEN_KEY"]).say(f"{self.broken} bad key sk-very-secret")
        assert failure(play) == "The agent reported an error: bad key …"

    async def test_nothing_is_left_warm_after_a_failure(self, program: Program) -> None:
        scene = program()
        await scene.say(f"{self.broken} no")
        assert processes_of(scene.home) == []

    async def test_the_doctor_says_why_a_program_ends_at_once(self, program: Program) -> None:
        *_, finding = await program("--crash-start", "7").engine.check()
        assert not finding.ok
        assert finding.fix == "It ended at once: it cannot start"


class RealProgramContract:
    """The real program in a workspace, with a scripted model and nobody's login.

    Its module has the fixtures ``scene`` and ``service``, which keeps what the model was asked.
    """

    talk: ClassVar[str]  # where a request to the model has the conversation
    obeys_within: ClassVar[float]  # seconds, so that neither TERM nor KILL was needed

    def shell(self, command: str) -> str:
        """The model's script for a command."""
        raise NotImplementedError

    async def test_an_interruption_ends_a_command_at_once(self, scene: AnyScene) -> None:
        play = scene.play(self.shell("touch begun; sleep 600"))
        clock = asyncio.get_running_loop()
        async with running(play, (scene.folder / "begun").exists):
            before = clock.time()
            await play.run.stop(4.0)
            assert clock.time() - before < self.obeys_within, "neither TERM nor KILL was needed"
        assert play.last == CANCELLED
        assert processes_of(scene.home) == []

    async def test_a_message_during_a_command_becomes_part_of_the_turn(
        self, scene: AnyScene, service: Any
    ) -> None:
        play = scene.play(self.shell("touch begun; sleep 1"))
        async with running(play, (scene.folder / "begun").exists):
            await play.run.steer(7, "and be quick")
        assert SteerSettled(7, taken=True) in play.events
        assert "and be quick" in json.dumps(service.seen[-1][self.talk])
        assert play.last == DONE

    async def test_an_effort_that_the_model_lacks_is_told_before_anything_is_sent(
        self, scene: AnyScene, service: Any
    ) -> None:
        play = await scene.say("hello", effort="enormous")
        assert "The model has no effort “enormous”; it offers: low" in failure(play)
        assert not service.seen

    async def test_the_hand_shake_needs_no_prompt(self, scene: AnyScene, service: Any) -> None:
        play = scene.play("a secret plan")
        events: Any = play.run.events()
        assert isinstance(await anext(events), Started)
        await play.run.stop(1.0)
        assert [event async for event in events] == [CANCELLED]
        assert not service.seen
