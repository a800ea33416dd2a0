"""Questions of an engine: what cannot be seen, written down or stored, and what is left of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core import approvals, cards
from core.arriving import Arriving
from core.engines.base import ApprovalAsked, Decision, Finished, Started, Text
from core.engines.base import Approvals as Mode
from core.items import Item
from core.lanes import Phase
from core.messages import Address
from core.store import reads, rows
from core.store.records import ApprovalRow, ApprovalState, MessageRow
from core.turns import Origin, Result
from gateway.paths import APPROVALS
from tests.fakes.engine import PuppetRun
from tests.runner.scene import ANA, Scene

LONG = "x" * 30_000


async def asked(scene: Scene, command: str, tool: str = "shell") -> PuppetRun:
    """A running turn whose engine has asked."""
    await scene.says("work")
    run = await scene.engine.started()
    run.say(Started("s"), ApprovalAsked("q", tool, command))
    return run


def phase(scene: Scene) -> Phase | None:
    view = scene.parts.runner.view("main")
    return view.phase if view else None


async def decide(scene: Scene, choice: str) -> str:
    decides = scene.parts.intake.ground.decides
    return await decides.decide(1, choice, ANA, may=True, admin=True)


async def finish(scene: Scene, run: PuppetRun) -> None:
    """The engine takes its answer and ends the turn well: the lane is not held up."""
    await scene.until(lambda: run.answers)
    run.say(Text("went on"), Finished(Result.DONE))
    run.end()
    await scene.until(lambda: any("went on" in text for text in scene.texts()))
    assert await scene.statuses() == ["done"]


@pytest.mark.parametrize(
    ("command", "shown", "count"),
    [
        ("ls \u3000\u1680/", r"ls \u3000\u1680/", 2),
        ("rm -rf \u202egpj.elif", r"rm -rf \u202egpj.elif", 1),
        ("ls\x1b[2K\rpwd", r"ls\x1b[2K\rpwd", 2),
        ("a\u200bb\u2066c\U000e0041", r"a\u200bb\u2066c\U000e0041", 3),
        ("curl\u00a0x\x9b", r"curl\xa0x\x9b", 2),
        ("if true; then\n\techo ✔️\nfi", "if true; then\n\techo ✔️\nfi", 0),
        (r"echo \u202e", r"echo \u202e", 0),
    ],
)
def test_a_card_shows_what_nobody_would_see(command: str, shown: str, count: int) -> None:
    question = cards.question("shell", command)
    assert question.command == shown
    assert question.escaped == count
    for card in (question.on_card(), question.in_file()):
        assert ("Hidden in it" in card) == bool(count)
        assert not any(char in card for char in "\u202e\u2066\u200b\x1b\r\x9b")


async def test_what_is_approved_is_bound_to_the_command_as_it_is(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        run = await asked(scene, "cat \u202etxt.a", tool="run\x1b[31m")
        await scene.until(lambda: any(r"\u202e" in text for text in scene.texts()))
        assert not any("\u202e" in text or "\x1b" in text for text in scene.texts())
        assert await decide(scene, "always") == "Allowed."
        (rule,) = await reads.always_rules(scene.parts.store)
        assert rule.command == "cat \u202etxt.a"
        run.say(ApprovalAsked("again", "run\x1b[31m", "cat txt.a"))  # looks alike, and is not
        await scene.until(lambda: sum("asks" in text for text in scene.texts()) == 2)
        run.say(ApprovalAsked("same", "run\x1b[31m", "cat \u202etxt.a"))
        await scene.until(lambda: ("same", Decision.ALLOW) in run.answers)
        await finish(scene, run)


async def asks(scene: Scene, number: int, command: str = "make deploy") -> PuppetRun:
    """A turn that asks for this; it waits for the answer then."""
    await scene.says(f"work {number}")
    run = await scene.engine.started(number)
    run.say(Started("s"), ApprovalAsked("q", "shell", command))
    return run


async def answered(scene: Scene, choice: str) -> str:
    """What comes of this press on the one card that is open, once it is."""
    while not (found := await reads.approvals_open(scene.parts.store)):
        await asyncio.sleep(0.005)
    decides = scene.parts.intake.ground.decides
    return await decides.decide(found[0].id, choice, ANA, may=True, admin=True)


async def ends(scene: Scene, run: PuppetRun) -> None:
    run.say(Finished(Result.DONE))
    run.end()
    await scene.until(lambda: phase(scene) is None)


async def test_what_is_always_allowed_is_bound_to_the_folder_it_was_given_for(
    tmp_path: Path,
) -> None:
    """Another workspace asks again, also behind the same name; the first one remembers."""
    for name in ("home", "one", "two"):
        (tmp_path / name).mkdir()
    link = tmp_path / "site"
    link.symlink_to(tmp_path / "one")
    async with Scene(tmp_path / "home") as scene:
        for number, (folder, asked_again) in enumerate(
            (("site", True), ("two", True), ("one", False), ("default", True), ("site", False)), 1
        ):
            where = folder if folder == "default" else tmp_path / folder
            await scene.says(f"/workspace {where}")
            run = await asks(scene, number)
            if asked_again:
                await answered(scene, "always" if number == 1 else "deny")
            await scene.until(lambda run=run: run.answers)  # type: ignore[misc]
            allowed = number == 1 or not asked_again
            assert run.answers == [("q", Decision.ALLOW if allowed else Decision.DENY)]
            await ends(scene, run)
        (rule,) = await reads.always_rules(scene.parts.store)
        assert rule.folder == str((tmp_path / "one").resolve())


async def test_the_same_can_be_allowed_in_each_of_two_folders(tmp_path: Path) -> None:
    for name in ("home", "one", "two"):
        (tmp_path / name).mkdir()
    async with Scene(tmp_path / "home") as scene:
        for number, name in enumerate(("one", "two"), 1):
            await scene.says(f"/workspace {tmp_path / name}")
            run = await asks(scene, number)
            assert await answered(scene, "always") == "Allowed."
            await ends(scene, run)
        found = await reads.always_rules(scene.parts.store)
        assert [Path(rule.folder).name for rule in found] == ["one", "two"]
        await scene.says("/approvals")
        await scene.until(lambda: any("Always allowed here" in text for text in scene.texts()))
        listed = scene.texts()[-1].splitlines()
        two, one = [line for line in listed if line.startswith("- ")]
        assert two.startswith('- 2: "make deploy" (shell), in ')
        assert two.endswith("/two")
        assert one.endswith("/one (I ask here, as this thread works elsewhere now)")


async def test_a_workspace_that_leads_somewhere_else_now_is_another_one(tmp_path: Path) -> None:
    """Its name, as the settings have it, is not what counts."""
    for name in ("home", "one", "two"):
        (tmp_path / name).mkdir()
    link = tmp_path / "site"
    link.symlink_to(tmp_path / "one")
    async with Scene(tmp_path / "home") as scene:
        await scene.says("hello")
        (await scene.engine.started()).answer_with("hi")
        await scene.until(lambda: "hi" in scene.texts())
        await scene.parts.store.save(rows.lane_setting("main", "workspace", str(link)))
        run = await asks(scene, 2)
        assert await answered(scene, "always") == "Allowed."
        await ends(scene, run)
        link.unlink()
        link.symlink_to(tmp_path / "two")
        run = await asks(scene, 3)
        assert await answered(scene, "deny") == "Denied."
        await ends(scene, run)


async def test_a_spilled_command_is_private_and_goes_with_the_decision(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        folder = scene.settings.home / APPROVALS
        folder.mkdir()
        (folder / "1-old.txt").write_text("of a crash")
        run = await asked(scene, LONG)
        await scene.until(lambda: any("file above" in text for text in scene.texts()))
        (file,) = [path for path in folder.iterdir() if "old" not in path.name]
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.read_text() == LONG
        assert await decide(scene, "allow") == "Allowed."
        assert run.answers == [("q", Decision.ALLOW)]
        await scene.until(lambda: not file.exists())
        await finish(scene, run)
    async with Scene(tmp_path):
        assert list(folder.iterdir()) == []


async def test_a_command_that_cannot_be_written_down_is_denied_in_words(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        (scene.settings.home / APPROVALS).write_text("in the way")
        run = await asked(scene, LONG)
        await scene.until(lambda: any("could not show" in text for text in scene.texts()))
        assert run.answers == [("q", Decision.DENY)]
        assert phase(scene) is Phase.RUNNING
        await finish(scene, run)


def refuse(
    monkeypatch: pytest.MonkeyPatch, scene: Scene, name: str, bad: Callable[[str], bool]
) -> None:
    """The store refuses rows of this query, as it does what no retry can store."""
    made = getattr(rows, name)

    def row(*words: object) -> rows.Row:
        query, values = made(*words)
        return query, ({**values, "id": object()} if bad(str(words)) else values)

    monkeypatch.setattr(rows, name, row)


async def test_a_question_that_cannot_be_stored_is_denied_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Scene(tmp_path) as scene:
        refuse(monkeypatch, scene, "approval", lambda _: True)
        run = await asked(scene, LONG)
        await scene.until(lambda: any("could not show" in text for text in scene.texts()))
        assert run.answers == [("q", Decision.DENY)]
        assert list((scene.settings.home / APPROVALS).iterdir()) == []
        await finish(scene, run)


@pytest.mark.parametrize("all_of_it", [False, True])
async def test_a_decision_that_cannot_be_stored_is_a_no_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_of_it: bool
) -> None:
    async with Scene(tmp_path) as scene:
        run = await asked(scene, "make")
        await scene.until(lambda: scene.texts())
        refuse(monkeypatch, scene, "approval_state", lambda words: all_of_it or "ALLOWED" in words)
        assert "could not be stored" in await decide(scene, "allow")
        assert run.answers == [("q", Decision.DENY)]
        assert phase(scene) is Phase.RUNNING
        assert "lready decided" in await decide(scene, "allow")
        await finish(scene, run)
        if not all_of_it:
            assert any("could not be stored" in text for text in scene.texts())


async def test_a_question_of_a_channel_that_is_not_set_up_waits_for_it(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        store, now = scene.parts.store, scene.parts.runner.now()
        lane = rows.new_lane("gone:1", Address("gone", "1"), True, "", now)
        left = ApprovalRow(
            id=7, lane="gone:1", turn=1, engine_ref="q", tool="shell", command="ls", hash="h",
            asked_at=now, expires_at=now,
        )  # fmt: skip
        await scene.says("work")
        await scene.engine.started()
        await store.save(lane, rows.approval(left))
        await scene.says("/stop")
        await scene.until(lambda: any("stopped" in text for text in scene.texts()))
    async with Scene(tmp_path) as scene:
        (still,) = await reads.approvals_open(scene.parts.store)
        assert (still.id, still.state) == (7, ApprovalState.ASKED)


@pytest.mark.parametrize(
    ("origin", "mode", "handed_over"),
    [
        (Origin.SCHEDULE, Mode.AUTO, Mode.ASK),
        (Origin.WATCH, Mode.AUTO, Mode.ASK),
        (Origin.CONTINUE, Mode.AUTO, Mode.ASK),  # perhaps of a job's run
        (Origin.PERSON, Mode.AUTO, Mode.AUTO),
        (Origin.SCHEDULE, Mode.FULL, Mode.FULL),
    ],
)
async def test_where_nobody_attends_the_engine_lets_nothing_pass_by_itself(
    tmp_path: Path, origin: Origin, mode: Mode, handed_over: Mode
) -> None:
    async with Scene(tmp_path, LANEWAY_APPROVALS=mode.value) as scene:
        await scene.says("hello")
        (await scene.engine.started()).answer_with("hi")
        await scene.until(lambda: not scene.parts.runner.view("main"))
        lane = await reads.lane(scene.parts.store, "main")
        assert lane is not None
        arriving = Arriving(scene.parts.intake.ground)
        piece = MessageRow(99, "job:1", lane.id, None, ANA, "Ana", "", "look", 0)
        turn = arriving.turn(lane, [piece], origin)
        said = (replace(piece, turn=turn.id),)
        await scene.parts.runner.take(Item("job:1", arriving.event(lane, turn), messages=said))
        run = await scene.engine.started(2)
        assert run.request.approvals is handed_over
        run.answer_with("looked")
        await scene.until(lambda: "looked" in scene.texts())


async def test_an_agent_that_asks_without_end_does_not_fill_its_thread_with_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "OPEN_MOST", 2)
    async with Scene(tmp_path) as scene:
        run = await asked(scene, "one")
        run.say(*(ApprovalAsked(f"q{number}", "shell", str(number)) for number in range(3)))
        await scene.until(lambda: len(run.answers) == 2)
        assert run.answers == [("q1", Decision.DENY), ("q2", Decision.DENY)]
        assert await decide(scene, "allow") == "Allowed."
        run.say(ApprovalAsked("late", "shell", "late"))  # there is room again
        await scene.until(lambda: any("late" in text for text in scene.texts()))
        assert sum("asks" in text for text in scene.texts()) == 3
        run.say(Finished(Result.DONE))
        run.end()
        await scene.until(lambda: not scene.parts.runner.view("main"))
