"""Messages and commands while a turn runs: what waits, what joins, what is answered beside it."""

from functools import partial
from pathlib import Path

import pytest

from tests.end_to_end.house import House
from tests.end_to_end.looking import in_state, quick, quiet, said, sends, turns
from tests.fakes.telegram import ANA, BEN, FORUM

LANE = f"telegram:{ANA}"
TOPIC = f"telegram:{FORUM}:36"


async def busy(house: House, script: str = "/sleep 0.7\n/say first") -> None:
    """Ana's lane at work."""
    house.fake.user_says(script)
    await in_state(house, LANE, "running")


def answers(house: House, chat: int = ANA) -> list[str]:
    """What stands in a chat, without notices of the gateway."""
    return [text for text in house.fake.texts(chat) if not text.startswith("Waiting:")]


# Waiting -----------------------------------------------------------------------------------


async def test_every_message_sent_during_a_run_is_handled_once_and_in_order(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        await busy(house)
        for word in ("m2", "m3", "m4", "m5"):
            house.fake.user_says(f"/say {word}")
        await house.fake.until(lambda: said(house.fake, ANA, "Waiting: 4 messages"))
        await house.fake.until(lambda: answers(house) == ["first", "m2", "m3", "m4", "m5"])
        await house.idle(LANE)
        await house.fake.until(lambda: not said(house.fake, ANA, "Waiting"))
        prompts = [turn["text"] for turn in await turns(house)]
        assert prompts == ["/sleep 0.7\n/say first", *(f"/say m{n}" for n in range(2, 6))]


async def test_a_full_queue_says_that_the_message_was_not_accepted(tmp_path: Path) -> None:
    async with quick(tmp_path, LANEWAY_QUEUE_LIMIT="5") as house:
        await busy(house)
        for number in range(1, 8):
            house.fake.user_says(f"/say q{number}")
        await house.fake.until(lambda: said(house.fake, ANA, "Not accepted") == 2)
        await house.fake.until(lambda: "q5" in house.fake.texts(ANA))
        await house.idle(LANE)
        refusals = [text for text in answers(house) if text.startswith("Not accepted")]
        assert ["q6" in refusals[0], "q7" in refusals[1]] == [True, True]
        rest = [text for text in answers(house) if not text.startswith("Not accepted")]
        assert rest == ["first", "q1", "q2", "q3", "q4", "q5"]
        ends = [turn["status"] for turn in await turns(house)]
        assert ends == ["done"] * 6 + ["dropped"] * 2


async def test_the_waiting_notice_is_one_message_that_changes_and_goes(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        await busy(house, "/sleep 1.5\n/say first")
        house.fake.user_says("/say second")
        await house.fake.until(lambda: said(house.fake, ANA, "Waiting: 1 message"))
        house.fake.user_says("/say third")
        await house.fake.until(lambda: said(house.fake, ANA, "Waiting: 2 messages"))
        await house.fake.until(lambda: answers(house) == ["first", "second", "third"])
        await house.fake.until(lambda: not said(house.fake, ANA, "Waiting"))
        notices = [call for call in sends(house.fake) if "Waiting" in call.fields["text"]]
        assert len(notices) == 1


async def test_the_queue_is_shown_and_a_numbered_message_is_dropped(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        await busy(house)
        for word in ("one", "two", "three"):
            house.fake.user_says(f"/say {word}")
        house.fake.user_says("/queue")
        await house.fake.until(lambda: said(house.fake, ANA, "Waiting here"))
        shown = next(text for text in house.fake.texts(ANA) if "Waiting here" in text)
        assert shown.index("one") < shown.index("two") < shown.index("three")
        house.fake.user_says("/drop 2")
        await house.fake.until(lambda: said(house.fake, ANA, "Dropped"))
        house.fake.user_says("/drop 9")
        await house.fake.until(lambda: said(house.fake, ANA, "number from 1 to 2"))
        await house.idle(LANE)
        await house.fake.until(lambda: answers(house)[-3:] == ["first", "one", "three"])


async def test_nobody_but_an_admin_drops_what_another_person_sent(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("@gw_bot /sleep 0.7\n/say first", chat=FORUM, thread=36)
        await in_state(house, TOPIC, "running")
        fake.user_says("/say of ana", chat=FORUM, thread=36)
        fake.user_says("/say of ben", user=BEN, chat=FORUM, thread=36)
        fake.user_says("/drop 1", user=BEN, chat=FORUM, thread=36)
        await fake.until(lambda: said(fake, FORUM, "somebody else"))
        fake.user_says("/drop 2", chat=FORUM, thread=36)
        await fake.until(lambda: said(fake, FORUM, "Dropped"))
        await fake.until(lambda: "of ana" in fake.texts(FORUM, 36))
        await house.idle(TOPIC)
        assert "of ben" not in fake.texts(FORUM, 36)


async def test_an_edit_counts_while_the_message_waits_and_never_starts_anything(
    tmp_path: Path,
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        await busy(house)
        waits = fake.user_says("/say wrong")
        await fake.until(lambda: said(fake, ANA, "Waiting"))
        fake.user_edits(waits, "/say right")
        await fake.until(lambda: "right" in fake.texts(ANA))
        fake.user_edits(waits, "/stop")
        fake.user_says("/say last")
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["last"])
        assert len(await turns(house)) == 3


async def test_a_person_at_their_limit_blocks_nobody_else(tmp_path: Path) -> None:
    async with quick(tmp_path, LANEWAY_MAX_TURNS_PER_PERSON="1") as house:
        fake = house.fake
        await busy(house)
        fake.user_says("@gw_bot /say second of ana", chat=FORUM, thread=36)
        fake.user_says("/say of ben", user=BEN)
        await fake.until(lambda: fake.texts(BEN) == ["of ben"])
        assert "first" not in answers(house)
        await fake.until(lambda: said(fake, FORUM, "1 turn of yours run", 36))
        await fake.until(lambda: fake.texts(FORUM, 36)[-1:] == ["second of ana"])


# Modes -------------------------------------------------------------------------------------


async def test_a_message_that_interrupts_ends_the_turn_and_takes_its_place(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        house.fake.user_says("/busy interrupt")
        await busy(house, "/say begun\n/hang on")
        house.fake.user_says("/say instead")
        await house.fake.until(lambda: answers(house)[-1:] == ["instead"], 4.0)
        await house.idle(LANE)
        assert [turn["status"] for turn in await turns(house)] == ["stopped", "done"]
        assert said(house.fake, ANA, "begun") == said(house.fake, ANA, "(unfinished)") == 1


async def test_collected_messages_are_one_prompt_in_order(tmp_path: Path) -> None:
    async with quick(tmp_path, LANEWAY_WHEN_BUSY="collect") as house:
        await busy(house)
        for word in ("a", "b", "c"):
            house.fake.user_says(f"/say {word}")
        await house.fake.until(lambda: len(answers(house)) == 2)
        words = [word.strip() for word in answers(house)[1].split("echo[1]:")]
        assert words == ["a", "b", "c"]
        assert [turn["status"] for turn in await turns(house)].count("done") == 2


async def test_a_message_to_steer_waits_where_the_agent_cannot_be_steered(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        house.fake.user_says("/busy steer")
        await house.fake.until(lambda: said(house.fake, ANA, "cannot do that, so it waits"))
        await busy(house)
        house.fake.user_says("/say second")
        await house.fake.until(lambda: answers(house)[-2:] == ["first", "second"])


async def test_a_side_answer_comes_before_the_main_turn_ends_and_leaves_it_alone(
    tmp_path: Path,
) -> None:
    more = {"LANEWAY_ACP_READONLY_MODE": "read-only", "LANEWAY_WHEN_BUSY": "side"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        fake.user_says("/say ready")  # the agent has a session to fork
        await fake.until(lambda: fake.texts(ANA) == ["ready"])
        await house.idle(LANE)
        await busy(house, "/sleep 2\n/write end.txt made\n/say main done")
        fake.user_says("/mode x\n/write side.txt never\n/say  aside")
        # It streams what the agent was told, too.
        await fake.until(lambda: said(fake, ANA, "The main turn has been at work for"))
        assert said(fake, ANA, "aside")
        assert said(fake, ANA, "read-only")
        assert not any(text.endswith("main done") for text in fake.texts(ANA))
        await fake.until(lambda: any(text.endswith("main done") for text in fake.texts(ANA)))
        await house.idle(LANE)
        made = {path.name for path in tmp_path.rglob("*.txt")}
        assert made == {"end.txt"}
        rows = await turns(house)
        assert [(row["kind"], row["status"]) for row in rows] == [
            ("main", "done"), ("main", "done"), ("side", "done"),
        ]  # fmt: skip
        fake.user_says("/turns x")  # the main session knows nothing of the side question
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["2"])


async def test_a_second_side_question_waits_and_one_by_name_is_refused(tmp_path: Path) -> None:
    more = {"LANEWAY_ACP_READONLY_MODE": "read-only", "LANEWAY_WHEN_BUSY": "side"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        fake.user_says("/say ready")
        await fake.until(lambda: fake.texts(ANA) == ["ready"])
        await house.idle(LANE)
        await busy(house, "/sleep 2.2\n/say main")
        fake.user_says("/sleep 0.6\n/say aside")
        await fake.until(lambda: fake.called("sendChatAction"))
        fake.user_says("/say queued")
        fake.user_says("/btw /say by name")
        await fake.until(lambda: said(fake, ANA, "A side answer is already being written"))
        await fake.until(lambda: said(fake, ANA, "aside"))
        assert "main" not in fake.texts(ANA)
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["queued"])


async def test_a_side_question_is_refused_where_the_agent_cannot_be_kept_from_writing(
    tmp_path: Path,
) -> None:
    async with quick(tmp_path) as house:
        await busy(house)
        house.fake.user_says("/btw /say aside")
        await house.fake.until(lambda: said(house.fake, ANA, "cannot answer on the side"))
        house.fake.press("Queue it")
        await house.fake.until(lambda: answers(house)[-1:] == ["aside"])
        assert "first" in answers(house)
        ends = [(turn["kind"], turn["status"]) for turn in await turns(house)]
        assert ends == [("main", "done"), ("side", "dropped"), ("main", "done")]


async def test_a_waiting_message_is_answered_on_the_side_at_a_press(tmp_path: Path) -> None:
    more = {"LANEWAY_ACP_READONLY_MODE": "read-only"}
    async with quick(tmp_path, **more) as house:
        fake = house.fake
        fake.user_says("/say ready")  # a side answer knows what was said before
        await fake.until(lambda: fake.texts(ANA) == ["ready"])
        await house.idle(LANE)
        await busy(house, "/sleep 2.2\n/say main")
        fake.user_says("/say aside")
        await fake.until(lambda: said(fake, ANA, "Waiting: 1 message"))
        fake.press("Answer on the side")
        await fake.until(lambda: said(fake, ANA, "aside"))
        assert "main" not in fake.texts(ANA)
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["main"])
        await fake.until(lambda: not said(fake, ANA, "Waiting"))
        ends = [(turn["kind"], turn["status"]) for turn in await turns(house)]
        assert ends == [("main", "done"), ("main", "done"), ("side", "done")]


# Commands ----------------------------------------------------------------------------------

SPOKEN = ["/help", "/status", "/queue", "/again", "/busy", "/model", "/usage", "/whoami", "/zone"]


def more_than(house: House, shown: int) -> bool:
    return len(house.fake.texts(ANA)) > shown


async def test_commands_are_answered_within_two_seconds_while_a_turn_runs(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        await busy(house, "/say begun\n/hang on")
        for command in SPOKEN:
            shown = len(house.fake.texts(ANA))
            house.fake.user_says(command)
            await house.fake.until(partial(more_than, house, shown), 2.0)
        assert len(await turns(house)) == 1
        house.fake.user_says("/stop")
        await house.idle(LANE)


async def test_a_paused_lane_keeps_its_messages_until_it_is_resumed(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/pause")
        fake.user_says("/say kept")
        await fake.until(lambda: said(fake, ANA, "paused"))
        fake.user_says("/say others run", user=BEN)
        await fake.until(lambda: fake.texts(BEN) == ["others run"])
        await house.stop_gateway()
        await house.start_gateway()
        fake.user_says("/say and this")
        await fake.until(lambda: said(fake, ANA, "Waiting: 2 messages"))
        assert "kept" not in fake.texts(ANA)
        fake.user_says("/resume")
        await fake.until(lambda: fake.texts(ANA)[-2:] == ["kept", "and this"])


async def test_a_pause_of_all_holds_every_lane_until_all_are_resumed(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/pause all", user=BEN)
        await fake.until(lambda: fake.texts(BEN))  # not for members
        fake.user_says("/pause all")
        await fake.until(lambda: said(fake, ANA, "Paused: nothing new starts anywhere"))
        fake.user_says("/say kept", user=BEN)
        await fake.until(lambda: said(fake, BEN, "Waiting: 1 message; paused"))
        fake.user_says("/resume all")
        await fake.until(lambda: fake.texts(BEN)[-1:] == ["kept"])


async def test_a_new_session_forgets_and_the_running_turn_is_left_alone(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/say one")
        await fake.until(lambda: fake.texts(ANA) == ["one"])
        await busy(house)
        fake.user_says("/new")
        fake.user_says("/turns x")
        await fake.until(lambda: "first" in fake.texts(ANA))
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["0"])


async def test_again_shows_the_last_answer_once_more_without_a_turn(tmp_path: Path) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/again")
        await fake.until(lambda: said(fake, ANA, "no answer"))
        fake.user_says("/say **bold** words")
        await fake.until(lambda: fake.texts(ANA)[-1:] == ["bold words"])
        fake.user_says("/again")
        await fake.until(lambda: fake.texts(ANA)[1:] == ["bold words", "bold words"])
        one, two = fake.shown(ANA)[1:]
        assert one["entities"] == two["entities"]
        assert len(await turns(house)) == 1


async def test_an_engaged_topic_listens_until_it_is_told_to_wait_for_a_mention(
    tmp_path: Path,
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/say nobody asked you", chat=FORUM, thread=36)
        fake.user_says("@gw_bot /say one", chat=FORUM, thread=36)
        fake.user_says("/say two", chat=FORUM, thread=36)
        fake.user_says("/listen mention", chat=FORUM, thread=36)
        await fake.until(lambda: len(fake.texts(FORUM, 36)) == 3)
        fake.user_says("/say three", chat=FORUM, thread=36)
        fake.user_says("@gw_bot /say four", chat=FORUM, thread=36)
        await fake.until(lambda: fake.texts(FORUM, 36)[-1:] == ["four"])
        assert {"one", "two", "four"} < set(fake.texts(FORUM, 36))
        assert "three" not in fake.texts(FORUM, 36)
        assert len(await turns(house)) == 3


@pytest.mark.parametrize("text", ["/etc/hosts is broken", "!!! urgent", "//help me"])
async def test_what_only_looks_like_a_command_is_a_prompt(tmp_path: Path, text: str) -> None:
    async with quick(tmp_path) as house:
        house.fake.user_says(text)
        echo = text.replace("//", "/")
        await house.fake.until(lambda: house.fake.texts(ANA) == [f"echo[0]: {echo}"])


async def test_a_group_at_its_rate_shows_answers_and_no_notices_that_are_out_of_date(
    tmp_path: Path,
) -> None:
    async with quick(tmp_path, 20, LANEWAY_MAX_TURNS="3") as house:
        threads = range(11, 16)
        for thread in threads:
            house.fake.user_says(f"@gw_bot /say a{thread}", chat=FORUM, thread=thread)
            house.fake.user_says(f"/say b{thread}", chat=FORUM, thread=thread)
        wanted = {thread: [f"a{thread}", f"b{thread}"] for thread in threads}
        await house.fake.until(
            lambda: {thread: house.fake.texts(FORUM, thread) for thread in threads} == wanted, 30
        )
        await quiet(0.3)
        assert not said(house.fake, FORUM, "Waiting")
