"""What each action sends, and what each refusal becomes."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from channels.slack import calls, pace
from channels.slack import recall as recalling
from channels.slack.adapter import SlackChannel
from channels.slack.blocks import BLOCKS_MOST, TEXT_MOST, content
from channels.slack.errors import TokenRefused
from core.channel import (
    Action,
    AnswerPress,
    Delete,
    Find,
    Forbidden,
    FormatRefused,
    MessageGone,
    NotSent,
    OpenThread,
    RateLimited,
    React,
    Recall,
    Refused,
    Retitle,
    Revise,
    Send,
    SendError,
    ThreadGone,
    Typing,
    Uncertain,
)
from core.messages import Address, Button, Part, Press, Receipt, Style
from tests.channels.slack.conftest import QuickClock, Slack
from tests.contracts.channel_contract import listening
from tests.fakes.slack import ANA, ANA_DM, BEN, LAB, QUIET, Tiers

DIRECT = Address("slack", ANA_DM)
TOP = Address("slack", LAB)
PINGS = "<!channel> <!here> <@U0ANA> @channel & <https://x|y>"


def threaded(slack: Slack, channel: str = LAB) -> Address:
    """A thread that a person began."""
    root = slack.fake.user_says("begin", channel=channel, delivered=False)
    return Address("slack", channel, root["ts"])


def rendered(slack: Slack, markdown: str) -> Part:
    (part,) = slack.channel.render(markdown)
    return part


class TestText:
    def test_what_is_below_a_marked_text_is_in_the_notification_as_well_and_pings_nobody(
        self, slack: Slack
    ) -> None:
        card = rendered(slack, "Run **this**")
        decided = content(Part(f"{card.text}\n\nby {PINGS}", card.markup))
        assert str(decided["text"]).startswith("Run *this*\n\nby &lt;!channel&gt;")
        assert "bold" in json.dumps(decided["blocks"])
        assert '"type": "user"' not in json.dumps(decided["blocks"])

    def test_markup_of_another_text_is_not_used(self, slack: Slack) -> None:
        card = rendered(slack, "Run **this**")
        assert content(Part("something else", card.markup)) == content(Part("something else"))


class TestSending:
    async def test_an_answer_goes_into_its_thread_and_not_into_the_channel(
        self, slack: Slack
    ) -> None:
        thread = threaded(slack)
        await slack.channel.do(Send(thread, rendered(slack, "**done**")))
        (call,) = slack.fake.called("chat.postMessage")
        assert (call.channel, call.thread) == (LAB, thread.thread)
        assert slack.fake.texts(LAB, thread.thread) == ["done"]
        assert slack.fake.texts(LAB, "") == []

    async def test_markdown_goes_as_blocks_with_a_text_to_fall_back_to(self, slack: Slack) -> None:
        await slack.channel.do(Send(DIRECT, rendered(slack, "**bold** `x < 1`")))
        (call,) = slack.fake.called("chat.postMessage")
        assert call.fields["blocks"][0]["type"] == "rich_text"
        assert call.fields["text"]
        assert call.fields["unfurl_links"] == "false"

    async def test_the_text_to_fall_back_to_is_all_of_it_in_slacks_own_markup(
        self, slack: Slack
    ) -> None:
        title = "**Title:** [here](https://example.org/a)\n\n"
        parts = slack.channel.render(title + "word " * 1500)
        for part in parts:
            sent = await slack.channel.do(Send(DIRECT, part, ((Button("b:1", "OK"),),)))
            await slack.channel.do(Revise(DIRECT, sent.message_id, part))
        texts = [call.fields["text"] for call in slack.fake.called("chat.postMessage")]
        assert texts[0].startswith("*Title:* <https://example.org/a|here>")
        assert sum(text.count("word") for text in texts) == 1500
        assert texts == [call.fields["text"] for call in slack.fake.called("chat.update")]

    @pytest.mark.parametrize("keyboard", [(), ((Button("b:1", "OK"),),)], ids=["bare", "buttons"])
    async def test_no_text_of_an_agent_can_ping(
        self, slack: Slack, keyboard: tuple[tuple[Button, ...], ...]
    ) -> None:
        for part in (Part(PINGS), rendered(slack, PINGS)):
            sent = await slack.channel.do(Send(DIRECT, part, keyboard))
            message = slack.fake.messages[ANA_DM, sent.message_id]
            for live in ("<!channel", "<!here", "<@U0ANA"):
                assert live not in message["text"]
                assert live not in json.dumps(message.get("blocks", []))
        for call in slack.fake.called("chat.postMessage"):
            assert "link_names" not in call.fields
            assert "parse" not in call.fields

    @pytest.mark.parametrize("length", [TEXT_MOST - 1, TEXT_MOST + 1, 12_000])
    async def test_long_texts_without_markup_fit_also_as_a_revision(
        self, slack: Slack, length: int
    ) -> None:
        sent = await slack.channel.do(Send(DIRECT, Part("x")))
        await slack.channel.do(Revise(DIRECT, sent.message_id, Part("<" * length)))
        (call,) = slack.fake.called("chat.update")
        assert TEXT_MOST - 4 <= len(call.fields["text"]) <= TEXT_MOST
        assert call.fields["text"].endswith("&lt;…")
        (text,) = slack.fake.texts(ANA_DM)
        assert text.startswith("<<<")
        assert len(text) >= min(length, 7_900)

    async def test_buttons_are_opaque_coloured_and_of_lawful_length(self, slack: Slack) -> None:
        row = (
            Button("a" * 64, "Allow " * 30, Style.SUCCESS),
            Button("b", "", Style.DANGER),
            Button("c", "Plain"),
        )
        await slack.channel.do(Send(DIRECT, Part("May I?"), (row,)))
        blocks = slack.fake.shown(ANA_DM)[0]["blocks"]
        allow, deny, plain = blocks[-1]["elements"]
        assert (allow["value"], allow["action_id"], allow["style"]) == (
            "a" * 64,
            "a" * 64,
            "primary",
        )
        assert len(allow["text"]["text"]) == 75
        assert (deny["style"], deny["text"]["text"]) == ("danger", "…")
        assert "style" not in plain

    async def test_very_many_buttons_are_cut_to_what_slack_takes(self, slack: Slack) -> None:
        wide = tuple(Button(f"wide{column}", "x") for column in range(30))
        keyboard = (wide, *((Button(f"row{row}", "x"),) for row in range(60)))
        await slack.channel.do(Send(DIRECT, Part("choose"), keyboard))
        assert len(slack.fake.shown(ANA_DM)[0]["blocks"]) == BLOCKS_MOST

    async def test_a_revision_without_buttons_takes_them_and_the_blocks_away(
        self, slack: Slack
    ) -> None:
        sent = await slack.channel.do(Send(DIRECT, Part("?"), ((Button("b", "Stop"),),)))
        await slack.channel.do(Revise(DIRECT, sent.message_id, Part("done")))
        (message,) = slack.fake.shown(ANA_DM)
        assert (message["text"], message["blocks"]) == ("done", [])

    async def test_a_thread_can_be_opened_in_a_channel(self, slack: Slack) -> None:
        made = await slack.channel.do(OpenThread(TOP, "  A new\nmatter "))
        assert slack.fake.messages[LAB, made.message_id]["text"] == "A new matter"
        with pytest.raises(Refused, match="needs a name"):
            await slack.channel.do(OpenThread(TOP, " "))

    async def test_the_library_never_says_a_thing_twice(self, slack: Slack) -> None:
        slack.fake.drop("chat.postMessage", after=True)
        with pytest.raises(Uncertain):
            await slack.channel.do(Send(DIRECT, Part("once")))
        assert len(slack.fake.called("chat.postMessage")) == 1
        assert slack.fake.texts(ANA_DM) == ["once"]


class TestFinding:
    @pytest.mark.parametrize("where", ["direct", "thread"])
    async def test_a_send_of_unknown_fate_is_found_by_what_it_carries(
        self, slack: Slack, where: str
    ) -> None:
        address = DIRECT if where == "direct" else threaded(slack)
        since = int(time.time() * 1000)
        slack.fake.drop("chat.postMessage", after=True)
        with pytest.raises(Uncertain):
            await slack.channel.do(Send(address, Part("there"), nonce="a.1"))
        await slack.channel.do(Send(address, Part("another"), nonce="b.2"))
        found = await slack.channel.do(Find(address, "a.1", since))
        assert slack.fake.messages[address.chat, found.message_id]["text"] == "there"

    async def test_what_did_not_arrive_is_not_found(self, slack: Slack) -> None:
        slack.fake.drop("chat.postMessage")
        with pytest.raises(Uncertain):
            await slack.channel.do(Send(DIRECT, Part("lost"), nonce="a.1"))
        assert (await slack.channel.do(Find(DIRECT, "a.1", 0))).message_id == ""

    async def test_a_revised_message_is_still_found(self, slack: Slack) -> None:
        sent = await slack.channel.do(Send(DIRECT, Part("one"), nonce="a.1"))
        await slack.channel.do(Revise(DIRECT, sent.message_id, Part("two")))
        assert await slack.channel.do(Find(DIRECT, "a.1", 0)) == sent

    async def test_an_answer_that_does_not_come_leaves_it_open(self, slack: Slack) -> None:
        slack.fake.fail("conversations.history", "internal_error", 500)
        with pytest.raises(Uncertain):
            await slack.channel.do(Find(DIRECT, "a.1", 0))

    async def test_in_more_than_is_looked_through_it_will_never_be_found(
        self, slack: Slack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(calls, "FIND_PAGE", 2)
        for number in range(2 * calls.FIND_PAGES + 1):
            slack.fake.user_says(f"m{number}", delivered=False)
        with pytest.raises(Refused, match="cannot be told"):
            await slack.channel.do(Find(DIRECT, "a.1", 0))

    async def test_a_history_that_stays_odd_is_not_asked_for_ever(self, slack: Slack) -> None:
        odd = {"ts": slack.fake.ts(), "metadata": 7, "text": "x", "user": ANA}
        slack.fake.keep(ANA_DM, odd)
        now = slack.clock.now()
        with pytest.raises(Uncertain):
            await slack.channel.do(Find(DIRECT, "a.1", now - 1000))
        with pytest.raises(Refused, match="cannot be told"):
            await slack.channel.do(Find(DIRECT, "a.1", now - calls.STREAMS_END - 1000))

    async def test_in_a_thread_that_is_gone_nothing_is_there(self, slack: Slack) -> None:
        with pytest.raises(ThreadGone):
            await slack.channel.do(Find(Address("slack", LAB, "1.000001"), "a.1", 0))


class TestSigns:
    async def test_one_receipt_stands_at_a_message_at_a_time(self, slack: Slack) -> None:
        message = slack.fake.user_says("hi", delivered=False)
        for receipt, sign in (
            (Receipt.RECEIVED, {"eyes"}),
            (Receipt.WAITING, {"hourglass_flowing_sand"}),
            (Receipt.WAITING, {"hourglass_flowing_sand"}),
            (Receipt.FAILED, {"warning"}),
            (Receipt.NONE, set()),
        ):
            await slack.channel.do(React(DIRECT, message["ts"], receipt))
            assert slack.fake.reacted(message) == sign

    async def test_a_receipt_of_an_earlier_process_is_taken_away_too(self, slack: Slack) -> None:
        message = slack.fake.user_says("hi", delivered=False)
        slack.fake.reactions[ANA_DM, message["ts"]] = {"eyes": {"UBOT"}}
        await slack.channel.do(React(DIRECT, message["ts"], Receipt.NONE))
        assert slack.fake.reacted(message) == set()

    async def test_a_slash_command_has_no_message_to_react_to(self, slack: Slack) -> None:
        await slack.channel.do(React(DIRECT, "", Receipt.RECEIVED))
        assert not slack.fake.calls

    async def test_a_thread_shows_that_work_goes_on_until_there_is_something_to_see(
        self, slack: Slack
    ) -> None:
        thread = threaded(slack, ANA_DM)
        key = (thread.chat, thread.thread)
        for _ in range(3):  # core asks often
            await slack.channel.do(Typing(thread))
        assert slack.fake.status[key]
        assert len(slack.fake.called("assistant.threads.setStatus")) == 1
        sent = await slack.channel.do(Send(thread, Part("so far")))
        assert key not in slack.fake.status
        await slack.channel.do(Typing(thread))  # a preview says as much
        assert key not in slack.fake.status
        await slack.channel.do(Revise(thread, sent.message_id, rendered(slack, "the answer")))
        await slack.channel.do(Typing(thread))  # the next turn
        assert slack.fake.status[key]

    async def test_an_edit_takes_the_sign_away_as_it_would_block_the_person(
        self, slack: Slack
    ) -> None:
        thread = threaded(slack, ANA_DM)
        sent = await slack.channel.do(Send(thread, rendered(slack, "first")))
        await slack.channel.do(Typing(thread))
        await slack.channel.do(Revise(thread, sent.message_id, rendered(slack, "answer")))
        assert not slack.fake.status

    async def test_a_sign_under_way_never_lands_after_the_answer(self, slack: Slack) -> None:
        thread = threaded(slack, ANA_DM)
        sent = await slack.channel.do(Send(thread, rendered(slack, "first")))
        slack.fake.hang("assistant.threads.setStatus", after=True)
        typing = asyncio.create_task(slack.channel.do(Typing(thread)))
        await slack.fake.until(lambda: slack.fake.called("assistant.threads.setStatus"))
        typing.cancel()
        revising = asyncio.create_task(
            slack.channel.do(Revise(thread, sent.message_id, rendered(slack, "answer")))
        )
        await asyncio.sleep(0)
        assert not slack.fake.called("chat.update")
        slack.fake.heal()
        await revising
        assert not slack.fake.status
        assert typing.cancelled()

    async def test_where_slack_has_no_such_sign_it_is_asked_once(self, slack: Slack) -> None:
        slack.fake.fail("assistant.threads.setStatus", "missing_scope", times=0)
        for _ in range(3):
            await slack.channel.do(Typing(threaded(slack)))
        await slack.channel.do(Typing(DIRECT))  # the main timeline has none at all
        assert len(slack.fake.called("assistant.threads.setStatus")) == 1

    async def test_a_thread_with_the_app_can_be_named_another_cannot(self, slack: Slack) -> None:
        thread = threaded(slack, ANA_DM)
        await slack.channel.do(Retitle(thread, "The  plan\n"))
        assert slack.fake.titles == {(ANA_DM, thread.thread): "The plan"}
        for other in (DIRECT, threaded(slack)):
            with pytest.raises(Refused, match="direct messages"):
                await slack.channel.do(Retitle(other, "No"))


class TestAnsweringPresses:
    async def pressed(self, slack: Slack, thread: Address) -> Press:
        await slack.channel.do(Send(thread, Part("?"), ((Button("b:1", "OK"),),)))
        async with listening(slack.channel, slack.intake):
            await slack.fake.until(lambda: slack.fake.sockets)
            slack.fake.press("OK")
            await slack.fake.until(lambda: slack.intake.of(Press))
        return slack.intake.of(Press)[0]

    async def test_only_the_one_who_pressed_sees_the_answer_in_the_thread(
        self, slack: Slack
    ) -> None:
        thread = threaded(slack)
        press = await self.pressed(slack, thread)
        await slack.channel.do(AnswerPress(press.press, "noted <!here>"))
        (answer,) = slack.fake.ephemerals
        assert answer["text"] == "noted &lt;!here&gt;"
        assert (answer["user"], answer["channel"]) == (ANA, LAB)
        assert answer["thread_ts"] == thread.thread

    async def test_outside_of_threads_it_goes_to_the_address_of_the_press(
        self, slack: Slack
    ) -> None:
        press = await self.pressed(slack, DIRECT)
        await slack.channel.do(AnswerPress(press.press, "noted"))
        (answer,) = slack.fake.ephemerals
        assert (answer["response_type"], answer["replace_original"]) == ("ephemeral", False)

    async def test_when_its_address_takes_no_more_there_is_another_way(self, slack: Slack) -> None:
        press = await self.pressed(slack, DIRECT)
        slack.fake.responses.clear()
        await slack.channel.do(AnswerPress(press.press, "late"))
        (call,) = slack.fake.called("chat.postEphemeral")
        assert (call.fields["user"], call.channel, call.fields["text"]) == (ANA, ANA_DM, "late")

    async def test_nothing_to_say_needs_no_call(self, slack: Slack) -> None:
        await slack.channel.do(AnswerPress("[]"))
        assert slack.fake.calls == []

    async def test_a_press_that_is_none_is_refused(self, slack: Slack) -> None:
        for odd in ("x", "[]", "5", "null"):
            with pytest.raises(Refused):
                await slack.channel.do(AnswerPress(odd, "x"))


class TestRates:
    async def test_a_slow_down_says_how_long_and_holds_that_method_alone(
        self, slack: Slack
    ) -> None:
        slack.fake.fail("chat.update", "ratelimited", retry_after=30)
        sent = await slack.channel.do(Send(DIRECT, Part("x")))
        for _ in range(2):
            with pytest.raises(RateLimited) as caught:
                await slack.channel.do(Revise(DIRECT, sent.message_id, rendered(slack, "y")))
            assert 29 < caught.value.retry_after <= 30
            assert not caught.value.everywhere
        assert len(slack.fake.called("chat.update")) == 1
        await slack.channel.do(Send(DIRECT, Part("goes")))

    async def test_a_penalty_that_a_reading_met_holds_for_whoever_calls_the_method(
        self, slack: Slack
    ) -> None:
        thread = threaded(slack)
        slack.fake.fail("conversations.replies", "ratelimited", retry_after=30)
        recall = Recall(thread, "9999999999.000000", 5)
        with pytest.raises(RateLimited):
            await slack.channel.do(recall)
        with pytest.raises(RateLimited):
            await slack.channel.do(Find(thread, "a.1", 0))
        with pytest.raises(RateLimited):  # after it was waited for as long as somebody waits
            await slack.channel.do(recall)
        assert recalling.PATIENCE in slack.clock.asked
        assert len(slack.fake.called("conversations.replies")) == 1
        slack.clock.later += 30
        await slack.channel.do(recall)

    async def test_signs_and_names_are_left_out_while_a_penalty_lasts(self, slack: Slack) -> None:
        for method in ("assistant.threads.setStatus", "users.info"):
            slack.fake.fail(method, "ratelimited", retry_after=30)
        for _ in range(2):
            await slack.channel.do(Typing(threaded(slack)))
        await slack.channel._names.learn([ANA])
        await slack.channel._names.learn([BEN])
        assert len(slack.fake.called("assistant.threads.setStatus")) == 1
        assert len(slack.fake.called("users.info")) == 1
        slack.clock.later += 31
        await slack.channel.do(Typing(threaded(slack)))
        await slack.channel._names.learn([ANA, BEN])
        assert len(slack.fake.called("assistant.threads.setStatus")) == 2
        assert slack.channel._names.of(BEN) == "Ben"

    async def test_frames_of_previews_leave_edits_for_answers(self, slack: Slack) -> None:
        sent = await slack.channel.do(Send(DIRECT, Part("x")))
        made, limited = 0, None
        while limited is None and made < 40:
            try:
                await slack.channel.do(Revise(DIRECT, sent.message_id, Part(f"frame {made}")))
                made += 1
            except RateLimited as caught:
                limited = caught
        assert 10 <= made <= pace.BURST
        assert limited is not None
        assert limited.retry_after < 3
        await slack.channel.do(Revise(DIRECT, sent.message_id, rendered(slack, "answer")))
        assert slack.fake.texts(ANA_DM) == ["answer"]

    async def test_a_real_limit_is_met_as_a_slow_down(self, slack: Slack) -> None:
        slack.fake.tiers = Tiers(burst=2)
        for number in range(2):
            await slack.channel.do(Send(DIRECT, Part(str(number))))
        with pytest.raises(RateLimited):
            await slack.channel.do(Send(DIRECT, Part("2")))
        assert slack.fake.texts(ANA_DM) == ["0", "1"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("error", "becomes"),
        [
            ("channel_not_found", Forbidden),
            ("not_in_channel", Forbidden),
            ("missing_scope", Forbidden),
            ("is_archived", ThreadGone),
            ("cannot_reply_to_message", ThreadGone),
            ("thread_not_found", ThreadGone),
            ("message_not_found", MessageGone),
            ("cant_update_message", Refused),
            ("edit_window_closed", Refused),
            ("invalid_blocks", FormatRefused),
            ("msg_too_long", FormatRefused),
            ("msg_blocks_too_long", FormatRefused),
            ("invalid_auth", TokenRefused),
            ("token_revoked", TokenRefused),
            ("account_inactive", TokenRefused),
            ("internal_error", Uncertain),
            ("something_new", Refused),
        ],
    )
    async def test_each_is_named(self, slack: Slack, error: str, becomes: type[SendError]) -> None:
        slack.fake.fail("chat.update", error)
        with pytest.raises(becomes) as caught:
            await slack.channel.do(Revise(DIRECT, "1712345600.000300", Part("x")))
        assert type(caught.value) is becomes
        assert slack.fake.bot_token not in str(caught.value)

    async def test_the_next_step_is_said(self, slack: Slack) -> None:
        with pytest.raises(Forbidden, match="/invite"):
            await slack.channel.do(Send(Address("slack", QUIET), Part("x")))
        slack.fake.fail("chat.postMessage", "missing_scope", needed="chat:write")
        with pytest.raises(Forbidden, match="chat:write; add the scope"):
            await slack.channel.do(Send(DIRECT, Part("x")))

    async def test_a_refused_token_is_told_at_once(self, slack: Slack) -> None:
        async with listening(slack.channel, slack.intake):
            await slack.fake.until(lambda: slack.intake.up)
            slack.fake.fail("chat.postMessage", "token_revoked")
            with pytest.raises(NotSent):
                await slack.channel.do(Send(DIRECT, Part("x")))
            assert slack.intake.connections[-1].fatal

    @pytest.mark.parametrize(
        "fault",
        [
            lambda fake: fake.fail("chat.postMessage", "x", 502),
            lambda fake: fake.garble("chat.postMessage"),
            lambda fake: fake.garble("chat.postMessage", b"<html>", 500),
            lambda fake: fake.garble("chat.postMessage", b"[]"),
            lambda fake: fake.drop("chat.postMessage"),
        ],
        ids=["server error", "no JSON", "page", "odd JSON", "cut"],
    )
    async def test_an_answer_that_is_none_leaves_it_open(self, slack: Slack, fault: object) -> None:
        fault(slack.fake)  # type: ignore[operator]
        with pytest.raises(Uncertain):
            await slack.channel.do(Send(DIRECT, Part("x")))

    async def test_an_answer_of_odd_shape_leaves_it_open(self, slack: Slack) -> None:
        for body in (b'{"ok": true, "ts": 5}', b'{"ok": "maybe"}', b'"text"', b"null", b"{"):
            slack.fake.garble("chat.postMessage", body)
            slack.fake.faults[-1].content_type = "application/json"
            with pytest.raises((Uncertain, Refused)):
                await slack.channel.do(Send(DIRECT, Part("x")))

    async def test_no_answer_in_time_leaves_it_open(self, slack: Slack) -> None:
        slack.fake.hang("chat.postMessage", after=True)
        tokens = (slack.fake.bot_token, slack.fake.app_token)
        async with SlackChannel(*tokens, QuickClock(), slack.fake.url, 0.1) as channel:
            with pytest.raises(Uncertain, match="in time"):
                await channel.do(Send(DIRECT, Part("x")))
        assert slack.fake.texts(ANA_DM) == ["x"]

    @pytest.mark.parametrize(
        "action",
        [
            Revise(DIRECT, "", Part("x")),
            Revise(DIRECT, "not a time", Part("x")),
        ],
    )
    async def test_a_message_without_an_id_is_gone(self, slack: Slack, action: Action) -> None:
        with pytest.raises(MessageGone):
            await slack.channel.do(action)
        assert slack.fake.calls == []

    async def test_what_is_gone_is_deleted_already(self, slack: Slack) -> None:
        await slack.channel.do(Delete(DIRECT, "1712345600.000300"))
        await slack.channel.do(Delete(DIRECT, "nonsense"))


async def test_an_error_of_the_block_stays_what_it_is(slack: Slack) -> None:
    tokens = (slack.fake.bot_token, slack.fake.app_token)
    with pytest.raises(KeyError):
        async with SlackChannel(*tokens, QuickClock(), slack.fake.url):
            raise KeyError("mine")
