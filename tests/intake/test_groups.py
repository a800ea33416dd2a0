"""Albums and long texts: pieces that were sent as one, and what waits behind them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.channel import ChannelLimits, Connection
from core.gathering import ALBUM_MOST, ALBUMS_MOST, Unclaimed
from core.messages import Address, Edit, FileKind, FileRef, Message
from core.store import reads
from core.turns import Status
from tests.fakes.clock import FakeClock
from tests.intake.scene import ANA, BEN, LAB, MAL, Scene, opened


def picture(scene: Scene, caption: str = "", album: str = "alb1", sender: str = ANA) -> Message:
    number = next(scene.numbers)
    file = FileRef(f"F{number}", FileKind.IMAGE, "photo.jpg", "image/jpeg")
    return scene.message(caption, sender, files=(file,), album=album)


async def test_an_album_is_one_turn_with_each_caption_at_its_own_picture(scene: Scene) -> None:
    for caption in ("before", "", "after"):
        await scene.intake.accept([picture(scene, caption)])
    assert await scene.turns() == []
    await scene.clock.advance(1.3)
    (prompt,) = await scene.prompts()
    lines = prompt.splitlines()
    assert lines[0].startswith("picture 1: before (inbox/telegram_700000001-")
    assert lines[1].startswith("picture 2: inbox/")
    assert lines[2].startswith("picture 3: after (inbox/")
    (turn,) = await scene.turns()
    assert turn.pieces == 3


async def test_an_album_closes_when_it_was_quiet_for_its_time(scene: Scene) -> None:
    await scene.intake.accept([picture(scene)])
    await scene.clock.advance(1.0)
    await scene.intake.accept([picture(scene)])
    await scene.clock.advance(1.0)
    assert await scene.turns() == []
    await scene.clock.advance(0.3)
    assert len(await scene.turns()) == 1


async def test_no_group_waits_longer_than_five_seconds(scene: Scene) -> None:
    for _ in range(5):
        assert await scene.turns() == []
        await scene.intake.accept([picture(scene)])
        await scene.clock.advance(1.0)
    assert len(await scene.turns()) == 1


async def test_three_single_pictures_are_three_turns_without_any_delay(scene: Scene) -> None:
    for caption in "123":
        await scene.intake.accept([picture(scene, caption, album="")])
    assert [prompt[0] for prompt in await scene.prompts()] == ["1", "2", "3"]


async def test_a_long_text_waits_for_its_continuation_and_both_are_one_turn(scene: Scene) -> None:
    await scene.say("x" * 4096)
    await scene.clock.advance(0.5)
    assert await scene.turns() == []
    await scene.say("the end")
    await scene.clock.advance(2.1)
    assert await scene.prompts() == ["x" * 4096 + "\nthe end"]


async def test_a_text_is_long_as_its_platform_counts(scene: Scene) -> None:
    await scene.say("😀" * 1750)
    assert await scene.turns() == []


async def test_a_short_text_is_never_delayed(scene: Scene) -> None:
    await scene.say("x" * 3499)
    assert len(await scene.turns()) == 1


async def test_what_comes_behind_an_open_group_waits_and_keeps_its_order(scene: Scene) -> None:
    lane = {"chat": "-1001900000001", "addressed": True}
    first = scene.message(
        "", ANA, album="a", files=(FileRef("1", FileKind.IMAGE, "1.jpg"),), **lane
    )
    await scene.intake.accept([first])
    await scene.say("behind", BEN, **lane)
    assert await scene.turns() == []
    before = len(scene.rules.batches)
    await scene.clock.advance(1.3)
    turns = await scene.turns()
    assert [turn.person for turn in turns] == [ANA, BEN]
    assert scene.rules.batches[before:] == [2], "both in one step"


async def test_two_open_groups_of_a_lane_close_in_the_order_they_began(scene: Scene) -> None:
    lane = {"chat": "-1001900000001", "addressed": True}
    for sender, album in ((ANA, "a"), (BEN, "b"), (ANA, "a"), (BEN, "b")):
        file = FileRef(f"{sender}{album}", FileKind.IMAGE, "1.jpg")
        await scene.intake.accept([scene.message("", sender, album=album, files=(file,), **lane)])
    await scene.clock.advance(1.3)
    assert [(turn.person, turn.pieces) for turn in await scene.turns()] == [(ANA, 2), (BEN, 2)]


async def test_a_command_closes_its_senders_group_first(scene: Scene) -> None:
    await scene.intake.accept([picture(scene, "look")])
    await scene.say("/status")
    assert len(await scene.turns()) == 1
    assert "look" in scene.said[-1]


async def test_a_command_does_not_wait_for_somebody_elses_group(scene: Scene) -> None:
    lane = {"chat": "-1001900000001", "addressed": True}
    file = FileRef("1", FileKind.IMAGE, "1.jpg")
    await scene.intake.accept([scene.message("", ANA, album="a", files=(file,), **lane)])
    await scene.say("/queue", BEN, **lane)
    assert len(scene.said) == 1
    assert await scene.turns() == []


async def test_a_piece_delivered_twice_counts_once(scene: Scene) -> None:
    piece = picture(scene)
    await scene.intake.accept([piece])
    await scene.intake.accept([piece])
    await scene.clock.advance(1.3)
    (turn,) = await scene.turns()
    assert turn.pieces == 1


async def test_an_edit_reaches_a_message_that_is_still_gathered(scene: Scene) -> None:
    piece = picture(scene, "befor")
    await scene.intake.accept([piece])
    edit = Edit(f"{piece.identity}:e", piece.identity, piece.address, ANA, "before")
    await scene.intake.accept([edit])
    await scene.clock.advance(1.3)
    assert (await scene.prompts())[0].startswith("before")
    assert (await scene.turns())[0].label == "before"


async def test_a_late_piece_joins_its_turn_while_that_waits(scene: Scene) -> None:
    await scene.say("something else runs")
    await scene.intake.accept([picture(scene, "one")])
    await scene.clock.advance(1.3)
    await scene.intake.accept([picture(scene, "two")])
    prompts = await scene.prompts()
    assert len(prompts) == 2
    assert "picture 1: one" in prompts[1]
    assert "picture 2: two" in prompts[1]


async def test_a_piece_that_comes_after_its_turn_began_is_a_turn_that_says_so(
    scene: Scene,
) -> None:
    await scene.intake.accept([picture(scene, "holiday")])
    await scene.clock.advance(1.3)
    await scene.intake.accept([picture(scene, "the last")])
    prompts = await scene.prompts()
    assert len(prompts) == 2
    assert "the last" in prompts[1]
    assert 'belongs to the earlier message "holiday"' in prompts[1]


async def test_gathered_messages_survive_a_restart_and_wait_for_the_first_poll(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with opened(tmp_path, clock) as scene:
        await scene.intake.accept([picture(scene, "one")])
        last = picture(scene, "two")
        await scene.say("behind")
    async with opened(tmp_path, clock, connected=False) as scene:
        await clock.advance(60)
        assert await scene.turns() == []
        scene.intake.connection("telegram", Connection())
        await clock.advance(1.0)
        await scene.intake.accept([last])
        await clock.advance(1.3)
        prompts = await scene.prompts()
        assert prompts[1] == "behind"
        assert "picture 1: one" in prompts[0]
        assert "picture 2: two" in prompts[0]


async def test_what_was_gathered_is_one_group_again_after_a_restart(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with opened(tmp_path, clock) as scene:
        await scene.say("x" * 4000)
        await scene.say("end")
    async with opened(tmp_path, clock) as scene:
        await clock.advance(2.1)
        assert await scene.prompts() == ["x" * 4000 + "\nend"]
    async with opened(tmp_path, clock) as scene:
        await clock.advance(10)
        assert len(await scene.turns()) == 1


@pytest.mark.parametrize("mode", ["collect", "queue"])
async def test_a_group_in_a_busy_lane_follows_its_mode(
    tmp_path: Path, clock: FakeClock, mode: str
) -> None:
    async with opened(tmp_path, clock) as scene:
        await scene.say(f"/busy {mode}")
        await scene.say("runs")
        await scene.say("waits")
        await scene.intake.accept([picture(scene, "one")])
        await scene.intake.accept([picture(scene, "two")])
        await clock.advance(1.3)
        prompts = await scene.prompts()
        assert len(prompts) == (2 if mode == "collect" else 3)
        assert "picture 2: two" in prompts[-1]
        assert all(turn.status is not Status.DROPPED for turn in await scene.turns())


# In groups, where only one piece carries the mention


def in_group(
    scene: Scene, text: str = "", *, sender: str = ANA, mention: bool = False, album: str = "alb1"
) -> Message:
    files = (FileRef(f"F{next(scene.numbers)}", FileKind.IMAGE, "photo.jpg"),) if album else ()
    more = {"chat": LAB, "addressed": mention}
    return scene.message(text, sender, files=files, album=album, **more)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("together", [True, False])
async def test_an_album_is_whole_wherever_its_mention_stands(
    scene: Scene, at: int, together: bool
) -> None:
    album = [in_group(scene, f"shot {n}", mention=n == at) for n in range(3)]
    if together:
        await scene.intake.accept(album)
    else:
        for piece in album:
            await scene.intake.accept([piece])
            await scene.clock.advance(1.0)
    await scene.clock.advance(1.3)
    (turn,) = await scene.turns()
    assert turn.pieces == 3
    (prompt,) = await scene.prompts()
    assert [n for n in range(3) if f"picture {n + 1}: shot {n}" in prompt] == [0, 1, 2]


async def test_pieces_that_nobody_claims_leave_nothing_behind(scene: Scene) -> None:
    piece = in_group(scene, "among us")
    await scene.intake.accept([piece])
    await scene.clock.advance(10)
    assert await scene.turns() == []
    assert not await reads.seen(scene.store, piece.identity)
    await scene.intake.accept([in_group(scene, "later", mention=True)])
    await scene.clock.advance(1.3)
    (turn,) = await scene.turns()
    assert turn.pieces == 1, "its time was over"


async def test_a_piece_belongs_to_its_sender_and_its_album_only(scene: Scene) -> None:
    others = [
        in_group(scene, "bens", sender=BEN),
        in_group(scene, "another", album="alb2"),
        in_group(scene, "a strangers", sender=MAL),
    ]
    await scene.intake.accept([*others, in_group(scene, "mine", mention=True)])
    await scene.intake.accept([in_group(scene, "bens second", sender=BEN)])
    await scene.clock.advance(1.3)
    (turn,) = await scene.turns()
    assert (turn.person, turn.pieces) == (ANA, 1)


async def test_a_piece_that_was_not_for_us_and_comes_again_counts_once(scene: Scene) -> None:
    first, second = in_group(scene, "one"), in_group(scene, "two", mention=True)
    await scene.intake.accept([first, first])
    await scene.intake.accept([first, second])
    await scene.intake.accept([first, second])
    await scene.clock.advance(1.3)
    (turn,) = await scene.turns()
    assert turn.pieces == 2


async def test_a_late_piece_without_a_mention_joins_its_turn_while_that_waits(
    scene: Scene,
) -> None:
    await scene.mention("something else runs")
    await scene.intake.accept([in_group(scene, "one", mention=True)])
    await scene.clock.advance(1.3)
    await scene.intake.accept([in_group(scene, "two")])
    prompts = await scene.prompts()
    assert len(prompts) == 2
    assert "picture 2: two" in prompts[1]


async def test_the_rest_of_a_long_text_needs_no_mention(scene: Scene) -> None:
    await scene.mention("x" * 4000)
    await scene.say("bens words", BEN, chat=LAB)
    await scene.say("the end", chat=LAB)
    await scene.clock.advance(2.1)
    await scene.say("said to others", chat=LAB)
    (prompt,) = await scene.prompts()
    assert prompt.endswith("x\nthe end")


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("together", [True, False])
async def test_a_long_text_is_whole_wherever_its_mention_stands(
    scene: Scene, at: int, together: bool
) -> None:
    texts = ["a" * 4000, "b" * 4000, "the end"]
    parts = [in_group(scene, text, mention=n == at, album="") for n, text in enumerate(texts)]
    if together:
        await scene.intake.accept(parts)
    else:
        for part in parts:
            await scene.intake.accept([part])
            await scene.clock.advance(1.5)
    await scene.clock.advance(2.1)
    (turn,) = await scene.turns()
    assert turn.pieces == 3
    (prompt,) = await scene.prompts()
    assert prompt.endswith("a\n" + "\n".join(texts[1:]))
    await scene.intake.accept(parts)
    assert len(await scene.turns()) == 1, "delivered again, it is known"


@pytest.mark.parametrize(
    "between",
    ["quiet", "a short text", "a picture", "somebody else", "a command"],
)
async def test_what_was_no_beginning_of_a_text_is_not_taken_for_one(
    scene: Scene, between: str
) -> None:
    long, mine = "a" * 4000, in_group(scene, "for you", mention=True, album="")
    if between == "a short text":
        long = "a" * 100
    sender = BEN if between == "somebody else" else ANA
    first = in_group(scene, long, sender=sender, album="")
    await scene.intake.accept([first])
    if between == "quiet":
        await scene.clock.advance(2.5)
    elif between == "a picture":
        await scene.intake.accept([in_group(scene, album="alb1")])
        picture = scene.message("look", files=(FileRef("F", FileKind.IMAGE, "a.jpg"),), chat=LAB)
        await scene.intake.accept([picture])
    elif between == "a command":
        mine = in_group(scene, "/status", mention=True, album="")
    await scene.intake.accept([mine])
    await scene.clock.advance(2.5)
    assert [turn.pieces for turn in await scene.turns()] == [1] * (between != "a command")
    assert not await reads.seen(scene.store, first.identity)


async def test_a_text_among_people_that_went_on_for_too_long_is_not_kept_for_ever(
    scene: Scene,
) -> None:
    for _ in range(6):
        await scene.intake.accept([in_group(scene, "a" * 4000, album="")])
        await scene.clock.advance(1.0)
    await scene.intake.accept([in_group(scene, "and you?", mention=True, album="")])
    await scene.clock.advance(2.5)
    assert [turn.pieces for turn in await scene.turns()] == [1]


def test_what_is_remembered_without_being_for_us_is_bounded() -> None:
    unclaimed, limits = Unclaimed(), ChannelLimits()
    lab = Address("telegram", LAB)
    for album in range(ALBUMS_MOST + 5):
        for number in range(ALBUM_MOST + 5):
            piece = Message(
                f"{album}:{number}", str(number), lab, ANA, "Ana", "", 0, album=f"a{album}"
            )
            unclaimed.keep(piece, 0.0, limits)
    assert len(unclaimed._groups) == ALBUMS_MOST
    assert unclaimed.claim(replace(piece, album="a0")) == []
    assert len(unclaimed.claim(piece)) == ALBUM_MOST
    unclaimed.forget(limits.gather_most + 1)
    assert not unclaimed._groups
