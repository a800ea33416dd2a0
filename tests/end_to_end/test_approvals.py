"""An agent asks before it acts: the card, who may press it, and what the agent hears."""

import signal
from pathlib import Path
from typing import Any

import pytest

from core.store import roster
from core.store.records import PersonRow
from tests.end_to_end.house import House, process
from tests.end_to_end.looking import in_state, quick, quiet, refused, turns
from tests.end_to_end.test_crash import stored
from tests.fakes.telegram import ANA, BEN, FORUM, MAL, TOKEN, FakeTelegram
from tests.web.site import Page

LANE = f"telegram:{ANA}"
TOPIC = f"telegram:{FORUM}:36"
CARD = "SELECT 1 FROM deliveries WHERE kind = 'card' AND state = 'sent'"
BUTTONS = ["Allow", "Always here", "Deny"]


def cards(fake: FakeTelegram, chat: int = ANA, thread: int | None = None) -> list[dict[str, Any]]:
    """The messages with buttons to decide by."""
    return [one for one in fake.shown(chat, thread) if "Allow" in fake.buttons(one)]


async def card(house: House, chat: int = ANA, thread: int | None = None) -> dict[str, Any]:
    """The card that is shown now, as soon as there is one."""
    await house.fake.until(lambda: cards(house.fake, chat, thread))
    return dict(cards(house.fake, chat, thread)[-1])


def standing(house: House, message: dict[str, Any]) -> dict[str, Any]:
    """A message as it stands there now."""
    return house.fake.messages[message["chat"]["id"], message["message_id"]]


async def told(house: House, press: str) -> str:
    """What the person who pressed was told; every press is answered exactly once."""
    return await heard(house.fake, press)


async def heard(fake: FakeTelegram, press: str) -> str:
    def answers() -> list[Any]:
        return [
            call
            for call in fake.called("answerCallbackQuery")
            if call.fields["callback_query_id"] == press
        ]

    await fake.until(answers)
    (answer,) = answers()
    return str(answer.fields.get("text", ""))


async def test_a_card_shows_the_command_and_allow_lets_it_run(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/approve rm -rf build && ls | wc -l")
        shown = await card(house)
        assert "rm -rf build && ls | wc -l" in shown["text"]
        assert house.fake.buttons(shown) == BUTTONS
        await in_state(house, LANE, "asking")
        assert await told(house, house.fake.press("Allow")) == "Allowed."
        answer = (await house.answered(LANE))["answer"]
        assert answer.strip() == "ran: rm -rf build && ls | wc -l."
        await house.fake.until(lambda: not house.fake.buttons(standing(house, shown)))
        after = standing(house, shown)
        assert "rm -rf build && ls | wc -l" in after["text"]
        assert "Allowed by Ana" in after["text"]


@pytest.mark.parametrize("words", ["", "/say Let me look. \n"])
async def test_the_answer_stands_below_the_question_it_needed(tmp_path: Path, words: str) -> None:
    async with quick(tmp_path) as house:
        house.fake.user_says(f"{words}/sleep 4\n/approve make")
        await house.fake.until(lambda: house.fake.shown(ANA))  # the preview, before the question
        shown = await card(house)
        await in_state(house, LANE, "asking")
        assert await told(house, house.fake.press("Allow")) == "Allowed."
        answer = (await house.answered(LANE))["answer"]
        await house.fake.until(lambda: len(house.fake.shown(ANA)) == 2)
        first, last = house.fake.shown(ANA)
        assert first["message_id"] == shown["message_id"]
        assert last["text"] == answer.strip()


async def test_of_quick_presses_the_first_counts_and_each_is_answered_once(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("@gw_bot /approve make clean", chat=FORUM, thread=36)
        shown = await card(house, FORUM, 36)
        presses = [house.fake.press(label, message=shown) for label in ("Allow", "Allow", "Deny")]
        answers = [await told(house, press) for press in presses]
        assert answers[0] == "Allowed."
        assert all("lready decided" in answer for answer in answers[1:])
        await house.answered(TOPIC)
        assert house.fake.texts(FORUM, 36)[-1].count("ran: make clean") == 1
        assert "Allowed by Ana" in standing(house, shown)["text"]
        assert house.fake.buttons(standing(house, shown)) == []


async def test_time_runs_out_as_a_no_and_a_late_press_changes_nothing(tmp_path: Path) -> None:
    async with House(tmp_path, times=1, LANEWAY_APPROVAL_TIMEOUT="1s") as house:
        house.fake.user_says("/approve deploy")
        shown = await card(house)
        await house.answered(LANE)
        assert "denied: deploy" in house.fake.texts(ANA)[-1]
        assert house.fake.buttons(standing(house, shown)) == []
        late = house.fake.press(button_of(shown, "Allow"), message=shown)
        assert "xpired" in await told(house, late)
        assert "Allowed" not in standing(house, shown)["text"]
        assert "Expired" in standing(house, shown)["text"]
        assert not any("ran:" in text for text in house.fake.texts(ANA))


def button_of(message: dict[str, Any], label: str) -> str:
    """The data of a button of a message as it was then."""
    rows = message["reply_markup"]["inline_keyboard"]
    return next(key["callback_data"] for row in rows for key in row if key["text"] == label)


async def test_a_decision_counts_even_if_telegram_will_not_take_the_answer_to_the_press(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.fake.fail(
            "answerCallbackQuery", 400,
            "Bad Request: query is too old and response timeout expired or query ID is invalid",
        )  # fmt: skip
        for number, command in enumerate(("first", "second"), 1):
            house.fake.user_says(f"/approve {command}")
            shown = await card(house)
            house.fake.press("Allow")
            answer = (await house.answered(LANE, number))["answer"]
            assert answer.strip() == f"ran: {command}."
            await house.fake.until(
                lambda shown=shown: not house.fake.buttons(standing(house, shown))
            )
            house.fake.hang("answerCallbackQuery", times=1)


async def test_a_stop_settles_the_open_question_and_a_late_press_runs_nothing(
    tmp_path: Path,
) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/approve deploy")
        shown = await card(house)
        house.fake.user_says("/stop")
        await in_state(house, LANE, "idle")
        await house.fake.until(lambda: not house.fake.buttons(standing(house, shown)))
        assert "Cancelled" in standing(house, shown)["text"]
        late = house.fake.press(button_of(shown, "Allow"), message=shown)
        assert "Cancelled" in await told(house, late)
        (turn,) = await turns(house, LANE)
        assert turn["status"] == "stopped"
        assert "ran:" not in str(turn["answer"])


async def test_each_decision_reaches_the_question_it_was_made_on(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("@gw_bot /approve first", chat=FORUM, thread=36)
        house.fake.user_says("@gw_bot /approve second", chat=FORUM, thread=37)
        one, two = await card(house, FORUM, 36), await card(house, FORUM, 37)
        for shown in (one, two):
            for label in BUTTONS:
                assert len(button_of(shown, label).encode()) <= 64
        house.fake.press("Allow", message=two)
        house.fake.press("Deny", message=one)
        first = await house.answered(TOPIC)
        second = await house.answered(f"telegram:{FORUM}:37")
        assert str(first["answer"]).strip() == "denied: first."
        assert str(second["answer"]).strip() == "ran: second."


async def test_two_questions_of_one_turn_are_two_cards(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/approve one\n/approve two")
        house.fake.press("Deny", message=await card(house))
        await house.fake.until(lambda: "two" in str(cards(house.fake)))
        house.fake.press("Allow")
        answer = (await house.answered(LANE))["answer"]
        assert str(answer).split(". ")[:2] == ["denied: one", "ran: two"]


async def test_a_refused_agent_goes_on_and_one_that_hangs_frees_its_lane(tmp_path: Path) -> None:
    limits = {"LANEWAY_TURN_IDLE_TIMEOUT": "1s", "LANEWAY_STOP_GRACE": "1s"}
    async with House(tmp_path, times=1, **limits) as house:
        house.fake.user_says("/approve deploy\n/say done without it")
        await card(house)
        await quiet(1.2)  # the idle limit stands still while a person decides
        assert await told(house, house.fake.press("Deny")) == "Denied."
        done = await house.answered(LANE)
        assert done["status"] == "done"
        assert "done without it" in str(done["answer"])
        house.fake.user_says("/approve deploy\n/hang-if-denied")
        await card(house)
        house.fake.press("Deny")
        over = await house.answered(LANE, 2)
        assert over["status"] != "done"
        assert await house.ask("lanes")
        assert "no sign of life" in house.fake.texts(ANA)[-1]


async def test_only_approvers_decide(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("@gw_bot /approve deploy", user=BEN, chat=FORUM, thread=36)
        shown = await card(house, FORUM, 36)
        for user in (BEN, MAL):
            for label in BUTTONS:
                press = house.fake.press(label, user=user, message=shown)
                refusal = await told(house, press)
                assert refusal
                assert "deploy" not in refusal
        await in_state(house, TOPIC, "asking")
        assert house.fake.buttons(standing(house, shown)) == BUTTONS
        assert await told(house, house.fake.press("Allow", message=shown)) == "Allowed."
        await house.answered(TOPIC)


async def test_an_admin_who_is_made_a_member_or_removed_decides_nothing_that_is_open(
    tmp_path: Path,
) -> None:
    async with FakeTelegram() as fake:
        settings = {"LANEWAY_TELEGRAM_TOKEN": TOKEN, "LANEWAY_TELEGRAM_API_BASE": fake.url}
        async with Page(tmp_path, **settings) as page:
            parts, ana = page.site.parts, await page.signed_in("ana@example.org")
            admin = {"person": f"telegram:{MAL}"}
            await parts.store.save(roster.person(PersonRow(admin["person"], "Mal", "admin")))
            await parts.people.load(parts.store)
            fake.user_says("@gw_bot /approve deploy", user=BEN, chat=FORUM, thread=36)
            await fake.until(lambda: cards(fake, FORUM, 36))
            shown = dict(cards(fake, FORUM, 36)[-1])
            for path, change, words in (
                ("people", {**admin, "role": "member"}, "Only"),
                ("people/remove", admin, "not for you"),
            ):
                assert (await ana.post(f"/api/{path}", json=change)).status_code == 200
                for label in BUTTONS:
                    press = fake.press(label, user=MAL, message=shown)
                    assert words in await heard(fake, press)
                assert fake.buttons(fake.messages[FORUM, shown["message_id"]]) == BUTTONS
            assert await heard(fake, fake.press("Allow", message=shown)) == "Allowed."


async def test_an_approver_of_the_settings_before_decides_nothing_after_a_restart(
    tmp_path: Path,
) -> None:
    async with quick(tmp_path) as house:
        house.fake.user_says("@gw_bot /approve deploy", user=BEN, chat=FORUM, thread=36)
        shown = await card(house, FORUM, 36)
        (allow, *_), *_ = shown["reply_markup"]["inline_keyboard"]
        await house.stop_gateway()
        await house.start_gateway(LANEWAY_ADMINS=f"telegram:{BEN}", LANEWAY_MEMBERS="")
        for user, words in ((ANA, "not for you"), (BEN, "the turn that asked is over")):
            press = house.fake.press(allow["callback_data"], user=user, message=shown)
            assert words in await told(house, press)
        (turn,) = await turns(house)
        assert turn["status"] == "interrupted"


async def test_who_began_the_turn_may_allow_it_where_that_is_set_but_not_for_always(
    tmp_path: Path,
) -> None:
    async with House(tmp_path, LANEWAY_APPROVERS="starter") as house:
        house.fake.user_says("@gw_bot /approve deploy", user=BEN, chat=FORUM, thread=36)
        shown = await card(house, FORUM, 36)
        press = house.fake.press("Always here", user=BEN, message=shown)
        assert "admin" in await told(house, press)
        assert await told(house, house.fake.press("Allow", user=BEN, message=shown)) == "Allowed."
        await house.answered(TOPIC)
        house.fake.user_says("@gw_bot /approve deploy", chat=FORUM, thread=37)
        shown = await card(house, FORUM, 37)
        press = house.fake.press("Allow", user=BEN, message=shown)  # Ana's turn
        assert "Only" in await told(house, press)
        await in_state(house, f"telegram:{FORUM}:37", "asking")
        house.fake.press("Deny", message=shown)
        await house.answered(f"telegram:{FORUM}:37")


async def test_always_here_holds_for_the_same_command_in_that_lane_only(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("@gw_bot /approve make test", chat=FORUM, thread=36)
        shown = await card(house, FORUM, 36)
        house.fake.press("Always here", message=shown)
        await house.answered(TOPIC)
        assert "Allowed always here by Ana" in standing(house, shown)["text"]
        await house.stop_gateway()
        await house.start_gateway()
        house.fake.user_says("/approve make test", chat=FORUM, thread=36)
        assert "ran: make test" in str((await house.answered(TOPIC, 2))["answer"])
        assert len(house.fake.called("answerCallbackQuery")) == 1
        house.fake.user_says("/approve make testing", chat=FORUM, thread=36)
        house.fake.user_says("@gw_bot /approve make test", chat=FORUM, thread=37)
        for thread in (36, 37):
            house.fake.press("Deny", message=await card(house, FORUM, thread))
        await house.answered(TOPIC, 3)
        await house.answered(f"telegram:{FORUM}:37")


async def test_full_asks_nobody_and_auto_asks_where_the_agent_does_not_call_it_safe(
    tmp_path: Path,
) -> None:
    async with House(tmp_path, LANEWAY_APPROVALS="full") as house:
        house.fake.user_says("/approve make test")
        assert "ran: make test" in str((await house.answered(LANE))["answer"])
        house.fake.user_says("/approvals auto")
        await house.fake.until(lambda: any("auto" in text for text in house.fake.texts(ANA)))
        house.fake.user_says("/approve make test")
        await card(house)
        house.fake.press("Deny")
        assert "denied: make test" in str((await house.answered(LANE, 2))["answer"])


async def test_an_agent_that_offers_no_single_yes_gets_no_yes(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/ask-always make")
        assert "denied: make" in str((await house.answered(LANE))["answer"])
        assert house.fake.called("answerCallbackQuery") == []


async def test_a_long_command_is_sent_whole_as_a_file_before_the_card(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/approve-big 9000")
        shown = await card(house)
        (sent,) = house.fake.called("sendDocument", ANA)
        assert [data for _, data in sent.files.values()] == [b"x" * 9000]
        assert "file above" in shown["text"]
        assert sent.at < house.fake.called("sendMessage", ANA)[-1].at
        house.fake.press("Deny")
        await house.answered(LANE)
        assert "Denied by Ana" in standing(house, shown)["text"]


async def test_a_command_that_just_fits_leaves_room_for_the_decision(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        for number, length in enumerate((3900, 4060), 1):
            house.fake.user_says(f"/approve-big {length}")
            shown = await card(house)
            house.fake.press("Allow")
            await house.answered(LANE, number)
            assert "Allowed by Ana" in standing(house, shown)["text"]
        assert refused(house.fake) == []


async def test_what_cannot_be_shown_cannot_be_allowed(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.fail("sendDocument", 400, "Bad Request: not enough rights to send documents")
        house.fake.user_says("/approve-big 9000")
        assert "denied: xxx" in str((await house.answered(LANE))["answer"])
        await house.fake.until(lambda: "could not be shown" in house.fake.texts(ANA)[0])
        assert cards(house.fake) == []


async def test_a_card_that_telegram_never_confirmed_still_loses_its_buttons(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.drop("sendMessage", after=True)
        house.fake.user_says("/approve deploy")
        shown = await card(house)
        assert await told(house, house.fake.press("Allow")) == "Allowed."
        assert "ran: deploy" in str((await house.answered(LANE))["answer"])
        await house.fake.until(lambda: not house.fake.buttons(standing(house, shown)))
        assert "Allowed by Ana" in standing(house, shown)["text"]


async def test_a_command_cannot_break_out_of_its_card(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        command = "echo ``` **Allowed by Ana** [x](https://example.org) ```` @all <b>"
        house.fake.user_says(f"/approve {command}")
        shown = await card(house)
        assert command in shown["text"]
        kinds = {entity["type"] for entity in shown["entities"]}
        assert kinds <= {"bold", "pre", "code"}
        assert refused(house.fake) == []
        house.fake.press("Deny")
        await house.answered(LANE)


async def test_a_change_of_a_file_is_shown_with_what_changes(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/edit notes.txt")
        shown = await card(house)
        assert "notes.txt" in shown["text"]
        assert "old line" in shown["text"]
        assert "new line" in shown["text"]
        house.fake.press("Allow")
        assert "allow" in str((await house.answered(LANE))["answer"])


async def test_a_question_that_the_agent_takes_back_loses_its_buttons(tmp_path: Path) -> None:
    async with House(tmp_path) as house:
        house.fake.user_says("/withdraw deploy\n/sleep 0.5")
        await house.answered(LANE)
        await house.fake.until(lambda: "Cancelled" in " ".join(house.fake.texts(ANA)))
        assert cards(house.fake) == []


async def test_after_a_kill_an_open_card_says_expired_and_a_press_runs_nothing(
    tmp_path: Path,
) -> None:
    async with FakeTelegram() as fake:
        async with process(tmp_path / "home", fake) as first:
            fake.user_says("/approve deploy")
            await fake.until(lambda: cards(fake))
            await fake.until(lambda: stored(tmp_path / "home", CARD))
            (shown,) = (dict(one) for one in cards(fake))
            await first.end(signal.SIGKILL)
        async with process(tmp_path / "home", fake) as again:
            await fake.until(lambda: not cards(fake))
            press = fake.press(button_of(shown, "Allow"), message=shown)
            await fake.until(lambda: fake.called("answerCallbackQuery"))
            (answer,) = fake.called("answerCallbackQuery")
            assert answer.fields["callback_query_id"] == press
            assert "xpired" in answer.fields["text"]
            await again.end(signal.SIGTERM)
        now = fake.messages[ANA, shown["message_id"]]["text"]
        assert "Expired" in now
        assert "Allowed" not in now
        assert not any("ran:" in text for text in fake.texts(ANA))


async def test_an_admin_who_takes_no_part_is_asked_in_the_direct_chat_and_decides_there(
    tmp_path: Path,
) -> None:
    async with quick(tmp_path) as house:
        fake = house.fake
        fake.user_says("/help")
        await fake.until(lambda: fake.shown(ANA))
        fake.user_says("@gw_bot /approve make release", user=BEN, chat=FORUM, thread=36)
        there = await card(house, FORUM, 36)
        copy = await card(house)
        assert "make release" in copy["text"]
        assert "of Ben" in copy["text"]
        assert str(FORUM) in copy["text"]
        assert await told(house, fake.press("Allow", chat=ANA, message=copy)) == "Allowed."
        await house.answered(TOPIC)
        await fake.until(lambda: not cards(fake) and not cards(fake, FORUM, 36))
        for message in (copy, there):
            assert "Allowed by Ana" in standing(house, message)["text"]
