"""A question in a lane without an admin is shown to the admins as well, each in their own chat."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from core import cards
from core.attending import begun
from core.channel import Refused, Send, SendFile
from core.engines.base import ApprovalAsked, Approvals, Decision, Finished, Started
from core.messages import Address, Press
from core.showing import Action
from core.store import jobs, reads, rows
from core.store.records import MessageRow
from core.turns import Kind, Origin, Result, Status, Turn
from tests.fakes.channel import Fault, Shown
from tests.fakes.engine import PuppetRun
from tests.runner.scene import BEN, CHIEFS, Scene

HERE = "9"  # Ben's thread
CHATS = ("1", "2")  # the chiefs' own


def scene_of(home: Path, approvers: str = "admins", patience: str = "15m") -> Scene:
    return Scene(
        home,
        channel="telegram",
        LANEWAY_APPROVERS=approvers,
        LANEWAY_APPROVAL_TIMEOUT=patience,
    )


async def known(scene: Scene, *chiefs: str) -> None:
    """These admins have written to the bot, be it a command."""
    for chief in chiefs:
        await scene.says("/help", chief.partition(":")[2], chief)


async def asked(scene: Scene, command: str = "make") -> PuppetRun:
    before = len(await scene.turns())
    await scene.says("fix the tests", HERE, BEN)
    run = await scene.engine.started(before + 1)
    run.say(Started("s"), ApprovalAsked("q", "shell", command))
    return run


def shown(scene: Scene, chat: str) -> list[Shown]:
    """The cards in a chat, with buttons or without."""
    address = Address("telegram", chat)
    found = [one for one in scene.channel.messages.values() if one.address == address]
    return [one for one in found if "asks" in one.text]


def open_cards(scene: Scene) -> list[str]:
    return [chat for chat in (HERE, *CHATS) for card in shown(scene, chat) if card.keyboard]


async def press(scene: Scene, chat: str, label: str, who: str) -> str:
    """What the person who pressed is told."""
    (card,) = shown(scene, chat)
    (button,) = [one for line in card.keyboard for one in line if one.label == label]
    number = f"{len(scene.channel.presses)}-{chat}"
    before = len(scene.channel.presses)
    where = Address("telegram", chat)
    pressed = Press(number, number, where, who, who, button.id, card.message_id, direct=True)
    await scene.parts.intake.accept([pressed])
    await scene.until(lambda: len(scene.channel.presses) > before)
    return scene.channel.presses[-1].text


async def finish(scene: Scene, run: PuppetRun) -> None:
    run.say(Finished(Result.DONE))
    run.end()
    await scene.until(lambda: scene.parts.runner.view(f"telegram:{HERE}") is None)


async def test_each_admin_is_asked_once_and_any_copy_decides_for_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "laneway.approvals")
    async with scene_of(tmp_path) as scene:
        await known(scene, *CHIEFS)
        run = await asked(scene)
        await scene.until(lambda: open_cards(scene) == [HERE, *CHATS])
        for chat in CHATS:
            text = shown(scene, chat)[0].text
            assert "In the direct chat of Ben, for" in text
            assert "fix the tests" in text
        assert "In the direct chat" not in shown(scene, HERE)[0].text
        assert await press(scene, "2", "Allow", CHIEFS[1]) == "Allowed."
        assert run.answers == [("q", Decision.ALLOW)]
        await scene.until(lambda: open_cards(scene) == [])
        for chat in (HERE, *CHATS):
            assert "✅ Allowed by" in shown(scene, chat)[0].text
        (row,) = [await reads.approval(scene.parts.store, 1)]
        assert row is not None
        assert row.decided_by == CHIEFS[1]
        (line,) = [one.getMessage() for one in caplog.records if "approval 1" in one.getMessage()]
        assert CHIEFS[1] in line
        assert row.hash[:12] in line
        assert "allowed" in line
        await finish(scene, run)


async def test_where_an_admin_takes_part_no_copy_is_sent(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene:
        await known(scene, *CHIEFS)
        await scene.says("I look after this", HERE, CHIEFS[0])
        (await scene.engine.started()).answer_with("good")
        await scene.until(lambda: scene.parts.runner.view(f"telegram:{HERE}") is None)
        run = await asked(scene)
        await scene.until(lambda: open_cards(scene))
        assert open_cards(scene) == [HERE]
        await finish(scene, run)


async def test_where_who_began_the_turn_may_decide_no_copy_is_sent(tmp_path: Path) -> None:
    async with scene_of(tmp_path, approvers="starter") as scene:
        await known(scene, CHIEFS[0])
        run = await asked(scene)
        await scene.until(lambda: open_cards(scene))
        assert open_cards(scene) == [HERE]
        assert await press(scene, HERE, "Deny", BEN) == "Denied."
        await finish(scene, run)


async def test_without_an_admin_whose_chat_is_known_the_log_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene_of(tmp_path) as scene:
        run = await asked(scene)
        await scene.until(lambda: open_cards(scene) == [HERE])
        assert "writes to the bot once" in caplog.text
        await finish(scene, run)


@pytest.mark.parametrize("ending", ["stop", "expiry", "the engine"])
async def test_copies_close_with_the_question_however_it_ends(tmp_path: Path, ending: str) -> None:
    patience = "1s" if ending == "expiry" else "15m"
    async with scene_of(tmp_path, patience=patience) as scene:
        await known(scene, CHIEFS[0])
        run = await asked(scene)
        await scene.until(lambda: open_cards(scene) == [HERE, "1"])
        if ending == "stop":
            await scene.says("/stop", HERE, BEN)
        elif ending == "the engine":
            await finish(scene, run)
        await scene.until(lambda: open_cards(scene) == [])
        result = "Expired" if ending == "expiry" else "Cancelled"
        assert result in shown(scene, HERE)[0].text
        assert result in shown(scene, "1")[0].text
        if ending == "expiry":
            await finish(scene, run)


async def test_copies_of_an_earlier_process_are_closed_by_the_next(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene:
        await known(scene, *CHIEFS)
        await asked(scene)
        await scene.until(lambda: open_cards(scene) == [HERE, *CHATS])
        await scene.crash()
        before = scene.channel
    again = scene_of(tmp_path)
    again.channel = before
    async with again:
        await again.until(lambda: open_cards(again) == [])
        for chat in (HERE, *CHATS):
            assert "Expired" in shown(again, chat)[0].text


async def test_a_long_command_stands_in_a_file_above_each_copy(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene:
        await known(scene, CHIEFS[0])
        run = await asked(scene, "x" * (cards.ON_CARD + 1))
        await scene.until(lambda: open_cards(scene) == [HERE, "1"])
        files = [call.action for call in scene.channel.calls if isinstance(call.action, SendFile)]
        assert sorted(one.address.chat for one in files) == ["1", HERE]
        assert len({one.path for one in files}) == 1
        await press(scene, "1", "Deny", CHIEFS[0])
        assert run.answers == [("q", Decision.DENY)]
        await finish(scene, run)


async def test_a_copy_that_cannot_be_shown_costs_the_question_nothing(tmp_path: Path) -> None:
    async with scene_of(tmp_path) as scene:
        await known(scene, CHIEFS[0])
        scene.channel.decide = lambda action: (
            Fault(Refused("blocked"))
            if isinstance(action, Send) and action.address.chat == "1"
            else None
        )
        run = await asked(scene)
        await scene.until(lambda: open_cards(scene) == [HERE])
        assert run.answers == []
        await finish(scene, run)


# A turn that goes on after a cut

HOURS, MINUTES = 3_600_000, 60_000


async def cut_off(scene: Scene, origin: Origin) -> int:
    """A turn of Ben's that a crash interrupted: his own, or a run of his job."""
    await scene.says("hello", HERE, BEN)
    (await scene.engine.started()).answer_with("hi")
    await scene.until(lambda: scene.parts.runner.view(f"telegram:{HERE}") is None)
    store, now = scene.parts.store, scene.clock.now()
    number, seq, lane = store.ids.turn(), store.ids.message(), f"telegram:{HERE}"
    turn = Turn(number, lane, BEN, origin, Kind.MAIN, now, "tidy", Status.INTERRUPTED)
    said = MessageRow(seq, f"x:{seq}", lane, number, BEN, "Ben", "", "tidy up", now)
    await store.save(rows.turn(turn), rows.message(said))
    return number


async def goes_on(scene: Scene, number: int, by: str) -> PuppetRun:
    """By itself, or because somebody pressed."""
    store = scene.parts.store
    before = len(scene.engine.runs)
    lane, cut = await reads.lane(store, f"telegram:{HERE}"), await reads.turn(store, number)
    assert lane is not None
    assert cut is not None
    if by:
        pressing = scene.parts.intake._pressing
        assert await pressing.once_more(lane, cut, Action.CONTINUE, by=by) == "Going on."
    else:
        await scene.parts.intake.go_on(number)
    return await scene.engine.started(before + 1)


@pytest.mark.parametrize(
    ("origin", "by", "waits", "ben", "copies", "mode"),
    [  # nobody attends the first two, as before the cut; the third is Ben's from now on
        (Origin.SCHEDULE, "", 12 * HOURS, False, True, Approvals.ASK),
        (Origin.WATCH, "", 12 * HOURS, False, True, Approvals.ASK),
        (Origin.SCHEDULE, BEN, 15 * MINUTES, True, False, Approvals.AUTO),
        (Origin.WATCH, CHIEFS[0], 15 * MINUTES, False, False, Approvals.AUTO),  # the chief's
        (Origin.PERSON, "", 15 * MINUTES, True, False, Approvals.ASK),  # asked, but not just now
        (Origin.PERSON, CHIEFS[0], 15 * MINUTES, True, False, Approvals.AUTO),
    ],
)
async def test_what_goes_on_after_a_cut_is_attended_by_who_pressed_or_else_as_before(
    tmp_path: Path,
    origin: Origin,
    by: str,
    waits: int,
    ben: bool,
    copies: bool,
    mode: Approvals,
) -> None:
    async with scene_of(tmp_path, approvers="starter") as scene:
        await known(scene, *CHIEFS)
        await scene.says("/approvals auto", HERE, CHIEFS[0])
        run = await goes_on(scene, await cut_off(scene, origin), by)
        assert run.request.approvals is mode
        run.say(Started("s"), ApprovalAsked("q", "shell", "rm -r build"))
        await scene.until(lambda: HERE in open_cards(scene))
        await scene.until(lambda: open_cards(scene) == [HERE, *(CHATS if copies else ())])
        row = await reads.approval(scene.parts.store, 1)
        assert row is not None
        assert row.expires_at - row.asked_at == waits
        told = await press(scene, HERE, "Allow", BEN)
        assert told == ("Allowed." if ben else "Only one of the approvers can press this. "
                        "Nothing was changed.")  # fmt: skip
        if not ben:
            assert await press(scene, HERE, "Deny", CHIEFS[0]) == "Denied."
        await finish(scene, run)


async def test_who_pressed_attends_it_also_when_it_is_cut_off_and_goes_on_once_more(
    tmp_path: Path,
) -> None:
    async with scene_of(tmp_path) as scene:
        store = scene.parts.store
        run = await goes_on(scene, await cut_off(scene, Origin.SCHEDULE), BEN)
        again = run.request.turn
        run.say(Started("s"), Finished(Result.DONE))
        run.end()
        await scene.until(lambda: scene.parts.runner.view(f"telegram:{HERE}") is None)
        row = await reads.turn(store, again)
        assert row is not None
        assert (await begun(store, row.turn())).starter == BEN
        third = replace(row.turn(), id=store.ids.turn())
        await store.save(rows.turn(third), rows.turn_of(third.id, again))
        assert (await begun(store, third)).starter == BEN


async def test_of_a_turn_that_goes_on_with_something_nobody_knows_nobody_is_the_starter(
    tmp_path: Path,
) -> None:
    async with scene_of(tmp_path) as scene:
        store = scene.parts.store
        await cut_off(scene, Origin.PERSON)
        lost = Turn(99, f"telegram:{HERE}", BEN, Origin.CONTINUE, Kind.MAIN, 1)
        assert (await begun(store, lost)).starter == ""
        await store.save(rows.turn(replace(lost, status=Status.DONE)))
        assert (await begun(store, lost)).starter == ""


@pytest.mark.parametrize(("by", "waits"), [("", False), (BEN, True)])
async def test_a_question_of_a_job_that_goes_on_by_itself_waits_as_the_jobs_own(
    tmp_path: Path, by: str, waits: bool
) -> None:
    """Here nobody is waited for long where somebody attends, so that it shows which it was."""
    async with scene_of(tmp_path, patience="1s") as scene:
        run = await goes_on(scene, await cut_off(scene, Origin.SCHEDULE), by)
        run.say(Started("s"))
        await scene.until(lambda: run.handed_over)
        box = run.request.toolbox
        assert box is not None
        asking = {"question": "Which colour?", "options": ["red", "blue"]}
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(box.call("ask_person", asking), name="ask")
            await scene.until(lambda: scene.channel.shown()[-1].keyboard)
            await asyncio.wait((answer,), timeout=None if waits else 0.4)  # 1 s is 0.25 s here
            assert answer.done() is waits
            if not waits:
                await scene.says("/stop", HERE, BEN)
        assert answer.result().text == "Nobody answered in time."
        if waits:
            await finish(scene, run)
        await scene.until(lambda: scene.parts.runner.view(f"telegram:{HERE}") is None)


@pytest.mark.parametrize(("by", "may"), [("", False), (BEN, True)])
async def test_a_run_of_a_job_that_goes_on_by_itself_ends_no_other_job(
    tmp_path: Path, by: str, may: bool
) -> None:
    async with scene_of(tmp_path) as scene:
        await scene.says("/every 1h : look", HERE, BEN)
        (other,) = await jobs.of_lane(scene.parts.store, f"telegram:{HERE}", scene.clock.now())
        run = await goes_on(scene, await cut_off(scene, Origin.SCHEDULE), by)
        run.say(Started("s"))
        await scene.until(lambda: run.handed_over)
        assert run.request.toolbox is not None
        reply = await run.request.toolbox.call("cancel_job", {"id": other.id})
        assert reply.failed is not may
        await finish(scene, run)
