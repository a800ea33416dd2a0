"""Buttons: every press is answered once, does its work once, and only for those who may."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.items import Item
from core.lane_commands import Refusal, Tell
from core.lane_events import Ended, Finished, Prompted, Renewed
from core.messages import Address, Press
from core.store import reads, rows
from core.turns import Busy, Kind, Origin, Result, Status
from core.wording import PRESS_BROKE
from tests.fakes.clock import FakeClock
from tests.intake.scene import ABLE, ANA, BEN, LAB, MAL, Scene, opened


async def test_a_strangers_press_is_refused_in_private_and_without_content(scene: Scene) -> None:
    await scene.mention("work")
    (turn,) = await scene.turns()
    button = await scene.button(turn.lane, "stop", turn.id)
    assert await scene.press(button, MAL, LAB) == "This is not for you."
    assert scene.rules.cancelled == []


async def test_a_button_nobody_knows_is_answered(scene: Scene) -> None:
    assert "no longer" in await scene.press("gone")


async def test_a_press_delivered_twice_works_and_is_answered_once(scene: Scene) -> None:
    await scene.say("runs")
    await scene.say("waits")
    turns = await scene.turns()
    button = await scene.button(turns[0].lane, "drop")
    press = Press(
        "cb:1", "p1", Address("telegram", "700000001"), ANA, "Ana", button, "5", direct=True
    )
    await scene.intake.accept([press])
    await scene.intake.accept([press])
    assert len(scene.signs.pressed) == 1


# The waiting notice


async def test_drop_takes_out_the_pressers_newest_waiting_message(scene: Scene) -> None:
    await scene.mention("runs")
    for text, sender in (("one", BEN), ("two", BEN), ("three", ANA)):
        await scene.mention(text, sender)
    button = await scene.button(f"telegram:{LAB}", "drop")
    assert "two" in await scene.press(button, BEN, LAB)
    left = [turn.label for turn in await scene.turns() if turn.status is Status.WAITING]
    assert left == ["one", "three"]


async def test_without_a_waiting_message_the_buttons_of_the_notice_say_so(scene: Scene) -> None:
    await scene.mention("runs")
    await scene.mention("waits")
    for action in ("drop", "steer", "side"):
        button = await scene.button(f"telegram:{LAB}", action)
        assert "no message waiting" in await scene.press(button, BEN, LAB)


async def test_answer_on_the_side_takes_the_message_out_of_the_queue(scene: Scene) -> None:
    await scene.say("runs")
    await scene.say("what are you doing?")
    button = await scene.button("telegram:700000001", "side")
    assert "on the side" in await scene.press(button)
    _, side = await scene.turns()
    assert (side.kind, side.status) == (Kind.SIDE, Status.STARTING)
    said = await reads.messages_of(scene.store, [side.id])
    assert [one.text for one in said] == ["what are you doing?"]
    assert len(await scene.stored("message.of_lane", lane=side.lane, limit=9)) == 2


async def test_a_message_that_began_to_run_is_not_answered_on_the_side_as_well(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.say("runs")
    await scene.say("next")
    first, _ = await scene.turns()
    stale = scene.rules.view(first.lane)
    await scene.run(first.id)
    monkeypatch.setattr(scene.rules, "view", lambda lane: stale)
    await scene.press(await scene.button(first.lane, "side"))
    (told,) = scene.told
    assert isinstance(told, Tell)
    assert told.reason is Refusal.NOT_WAITING
    assert [turn.kind for turn in await scene.turns()] == [Kind.MAIN, Kind.MAIN]
    assert (await scene.turns())[1].status is Status.STARTING


async def test_a_message_keeps_its_place_when_the_agent_has_no_side_answers(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with opened(tmp_path, clock, able=type(ABLE)()) as scene:
        await scene.say("runs")
        await scene.say("waits")
        button = await scene.button("telegram:700000001", "side")
        assert "keeps its place" in await scene.press(button)
        assert [turn.status for turn in await scene.turns()][1] is Status.WAITING


async def test_steer_offers_the_message_to_the_running_turn(scene: Scene) -> None:
    await scene.say("runs")
    (turn,) = await scene.turns()
    await scene.rules.take(Item(event=Prompted(turn.id, turn.lane)))
    await scene.say("also this")
    await scene.press(await scene.button(turn.lane, "steer"))
    assert (await scene.turns())[1].offered_to == turn.id


# Once more


async def cut_off(scene: Scene, text: str = "long work", sender: str = BEN) -> int:
    """A turn that a restart interrupted, in the group chat."""
    await scene.mention(text, sender)
    turn = (await scene.turns())[-1]
    now = scene.clock.now()
    started = rows.turn_started(turn.id, now, "demo", "")
    await scene.rules.take(Item(event=Prompted(turn.id, turn.lane), rows=(started,)))
    await scene.rules.take(Item(event=Finished(turn.id, turn.lane, Result.DONE)))
    await scene.rules.take(Item(event=Ended(turn.id, turn.lane, now)))
    row = await reads.turn(scene.store, turn.id)
    assert row is not None
    await scene.store.save(rows.turn(replace(row.turn(), status=Status.INTERRUPTED)))
    return turn.id


async def test_continue_goes_on_with_the_rights_of_the_cut_off_turn(scene: Scene) -> None:
    turn = await cut_off(scene)
    button = await scene.button(f"telegram:{LAB}", "continue", turn)
    assert await scene.press(button, ANA, LAB) == "Going on."
    after = (await scene.turns())[-1]
    assert (after.origin, after.person, after.of_turn) == (Origin.CONTINUE, BEN, turn)
    assert after.pressed_by == ANA
    prompt = (await scene.prompts())[-1]
    assert prompt.startswith("(You were cut off")
    assert "repeat nothing" in prompt
    assert prompt.endswith("long work")


async def test_continue_works_once(scene: Scene) -> None:
    turn = await cut_off(scene)
    button = await scene.button(f"telegram:{LAB}", "continue", turn)
    await scene.press(button, BEN, LAB)
    assert await scene.press(button, ANA, LAB) == "That was pressed already."
    await scene.intake.go_on(turn)
    assert len(await scene.turns()) == 2


async def test_only_the_person_or_an_admin_continues(tmp_path: Path, clock: FakeClock) -> None:
    async with opened(tmp_path, clock) as scene:
        turn = await cut_off(scene, sender=ANA)
        button = await scene.button(f"telegram:{LAB}", "continue", turn)
        assert "Only the person" in await scene.press(button, BEN, LAB)
        assert len(await scene.turns()) == 1


async def test_continue_is_withdrawn_by_a_later_turn_and_by_a_fresh_session(
    scene: Scene,
) -> None:
    turn = await cut_off(scene)
    button = await scene.button(f"telegram:{LAB}", "continue", turn)
    lane = await reads.lane(scene.store, f"telegram:{LAB}")
    assert lane is not None
    await scene.rules.take(Item(event=Renewed(lane.id, scene.ground.facts(lane))))
    assert "fresh session" in await scene.press(button, ANA, LAB)
    second = await cut_off(scene, "second")
    button = await scene.button(f"telegram:{LAB}", "continue", second)
    await scene.clock.advance(1)
    await scene.mention("third")
    third = (await scene.turns())[-1].id
    await scene.run(third)
    assert "gone on" in await scene.press(button, ANA, LAB)


async def test_a_restart_can_go_on_by_itself_once(scene: Scene) -> None:
    turn = await cut_off(scene)
    await scene.intake.go_on(turn)
    await scene.intake.go_on(turn)
    assert [one.origin for one in await scene.turns()] == [Origin.PERSON, Origin.CONTINUE]
    assert (await scene.turns())[-1].pressed_by == ""


async def test_what_went_on_by_itself_and_is_cut_off_again_waits_for_a_person(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    turn = await cut_off(scene)
    await scene.intake.go_on(turn)
    again = (await scene.turns())[-1]
    await scene.run(again.id)
    row = await reads.turn(scene.store, again.id)
    assert row is not None
    await scene.store.save(rows.turn(replace(row.turn(), status=Status.INTERRUPTED)))
    await scene.intake.go_on(again.id)
    assert len(await scene.turns()) == 2
    assert "cut off again" in caplog.text
    button = await scene.button(f"telegram:{LAB}", "continue", again.id)
    assert await scene.press(button, BEN, LAB) == "Going on."


async def test_run_again_asks_the_same_once_more(scene: Scene) -> None:
    turn = await cut_off(scene, "fetch the report")
    button = await scene.button(f"telegram:{LAB}", "rerun", turn)
    await scene.press(button, BEN, LAB)
    assert (await scene.prompts())[-1] == "fetch the report"
    assert (await scene.turns())[-1].origin is Origin.PERSON


@pytest.mark.parametrize("busy", [Busy.SIDE, Busy.INTERRUPT, Busy.STEER])
async def test_queue_it_waits_whatever_messages_do_in_the_lane(
    tmp_path: Path, clock: FakeClock, busy: Busy
) -> None:
    async with opened(tmp_path, clock, busy=busy) as scene:
        await scene.say("runs")
        (main,) = await scene.turns()
        await scene.rules.take(Item(event=Prompted(main.id, main.lane)))
        await scene.say("/btw aside")
        side = (await scene.turns())[-1]
        await scene.rules.take(Item(event=Finished(side.id, side.lane, Result.DONE)))
        await scene.rules.take(Item(event=Ended(side.id, side.lane, clock.now())))
        button = await scene.button(main.lane, "queue", side.id)
        assert await scene.press(button) == "It waits its turn."
        queued = (await scene.turns())[-1]
        assert (queued.kind, queued.status, queued.offered_to) == (Kind.MAIN, Status.WAITING, None)
        assert (await scene.turns())[0].stop is None


# Settings, places, approvals


async def test_a_choice_is_saved_and_its_message_shows_what_holds_now(scene: Scene) -> None:
    await scene.say("/busy")
    told = await scene.press(scene.buttons()["side"])
    assert told == "Saved."
    lane = await reads.lane(scene.store, "telegram:700000001")
    assert lane is not None
    assert lane.busy == "side"
    last = scene.rules.deliveries[-1]
    assert (last.target, last.keyboard) == ("500", ())


async def test_a_member_cannot_press_an_admins_choice(scene: Scene) -> None:
    await scene.mention("/engine")
    told = await scene.press(scene.buttons()["codex"], BEN, LAB)
    assert "Only admins" in told
    lane = await reads.lane(scene.store, f"telegram:{LAB}")
    assert lane is not None
    assert lane.engine == ""


async def test_an_admin_allows_a_place_with_a_button_and_members_may_talk_there(
    scene: Scene,
) -> None:
    await scene.say("/whoami", chat="-100777", addressed=True)
    assert "telegram:-100777" in scene.said[-1]
    button = scene.buttons()["Allow here"]
    assert await scene.press(button, BEN, "-100777") == "This is not for you."
    assert await scene.press(button, ANA, "-100777") == "Allowed."
    await scene.say("hello", BEN, chat="-100777", addressed=True)
    assert len(await scene.turns()) == 1


@pytest.mark.parametrize(
    ("presser", "starter_approves", "may", "admin"),
    [(ANA, False, True, True), (BEN, False, False, False), (BEN, True, True, False)],
)
async def test_an_approval_is_decided_by_whom_the_settings_name(
    tmp_path: Path, clock: FakeClock, presser: str, starter_approves: bool, may: bool, admin: bool
) -> None:
    async with opened(tmp_path, clock, starter_approves=starter_approves) as scene:
        await scene.mention("deploy", BEN)
        (turn,) = await scene.turns()
        button = await scene.button(turn.lane, "approval", turn.id, of=7, choice="allow")
        told = await scene.press(button, presser, LAB)
        assert scene.decisions.asked == [(7, "allow", presser, may, admin)]
        assert told == ("Decided." if may else "Not you.")


@pytest.mark.parametrize("where", [{"chat": LAB}, {"chat": "-1005"}, {}])
async def test_a_strangers_chosen_command_is_refused_in_private(
    scene: Scene, caplog: pytest.LogCaptureFixture, where: dict[str, str]
) -> None:
    assert await scene.choose("/status secret", MAL, **where) == ["This is not for you."]
    assert scene.said == []
    assert "not allowed: telegram:700000009" in caplog.text
    assert "secret" not in caplog.text


async def test_a_stranger_can_choose_to_ask_who_they_are(scene: Scene) -> None:
    assert await scene.choose("/whoami", MAL) == ["Taken."]
    assert "Give an admin this code" in scene.said[0]
    assert await scene.choose("/whoami", MAL) == ["This is not for you."]


async def test_a_chosen_command_in_a_place_that_is_not_listed_is_refused_in_private(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    (told,) = await scene.choose("/status", BEN, chat="-1005")
    assert "An admin can change that with /whoami" in told
    assert scene.said == []
    assert "in telegram:-1005, 1 attempt" in caplog.text


async def test_an_admin_can_choose_to_let_me_in(scene: Scene) -> None:
    assert await scene.choose("/whoami", ANA, chat="-1005") == ["Taken."]
    assert "Allow here" in scene.buttons()


@pytest.mark.parametrize("text", ["/stauts", "/stauts now"])
async def test_a_chosen_command_that_does_not_exist_names_the_nearest_in_private(
    scene: Scene, text: str
) -> None:
    (told,) = await scene.choose(text, chat=LAB)
    assert told.startswith("I do not know /stauts. Did you mean /status")
    assert scene.said == []
    assert await scene.turns() == []


async def test_a_chosen_prompt_runs_without_a_mention_once_it_is_stored(scene: Scene) -> None:
    assert await scene.choose("fix it", BEN, chat=LAB) == ["Taken."]
    (turn,) = await scene.turns()
    assert turn.label == "fix it"


async def test_a_chosen_stop_ends_what_runs(scene: Scene) -> None:
    await scene.mention("work")
    assert await scene.choose("/stop", chat=LAB) == ["Taken."]
    assert len(scene.rules.cancelled) == 1


async def test_a_chosen_command_that_breaks_intake_is_answered(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene.intake._answering.__class__, "command", None)
    assert await scene.choose("/status") == [PRESS_BROKE]
