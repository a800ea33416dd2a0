"""What core relies on, of every channel: one test class, run over each platform's server.

A platform's tests subclass ``ChannelContract`` and give it a ``stage``: the channel, opened
against a server whose people the stage plays.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from core.channel import (
    AnswerPress,
    Channel,
    Delete,
    Forbidden,
    MessageGone,
    NotSent,
    OpenThread,
    RateLimited,
    React,
    Refused,
    Revise,
    Send,
    SendFile,
    Stream,
    Typing,
    Uncertain,
)
from core.messages import Address, Button, Edit, Part, Press, Receipt, Style
from tests.fakes.recording_intake import RecordingIntake

CARD = ((Button("b:1", "Allow", Style.SUCCESS), Button("b:2", "Deny", Style.DANGER)),)
ODD_TEXTS = ("", "   ", "\n\n", "**bol", "```py\nx", "@everyone <!channel>", "\0", "x" * 20_000)


class Stage(Protocol):
    """A platform with people on it, and the channel that talks to it."""

    channel: Channel
    direct: Address  # Ana's direct messages
    group: Address  # a group's main timeline
    ana: str  # the sender id of the person who says things

    async def says(self, text: str, where: Address, mention: bool = False) -> None: ...
    async def edits(self, text: str) -> None:
        """Ana changes what she said last."""

    async def presses(self, label: str) -> None: ...
    async def sends_file(self, data: bytes, name: str, where: Address) -> None: ...
    def shown(self, where: Address) -> list[str]:
        """What stands there now from the bot; a file shows its caption."""

    def buttons(self, where: Address) -> list[str]:
        """The labels under the bot's last message there."""

    def files(self, where: Address) -> list[bytes]:
        """The content of the files the bot sent there."""

    def trouble(self, way: type[Exception]) -> None:
        """The next call that writes fails in the way this error stands for."""

    async def outage(self) -> None: ...
    async def recovery(self) -> None: ...


@asynccontextmanager
async def listening(channel: Channel, intake: RecordingIntake) -> AsyncIterator[None]:
    """The channel receives while the block runs."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(channel.listen(intake), name="listen")
        try:
            yield
        finally:
            task.cancel()


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait, bounded, for something a real server does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.005)


class ChannelContract:
    def stage(self) -> AbstractAsyncContextManager[Stage]:
        raise NotImplementedError

    # --- receiving ---

    async def test_a_direct_message_arrives_with_who_where_and_what(self) -> None:
        async with self.stage() as stage:
            intake = RecordingIntake()
            async with listening(stage.channel, intake):
                await stage.says("hello 👋", stage.direct)
                await until(lambda: intake.messages)
            (message,) = intake.messages
            assert message.text == "hello 👋"
            assert message.sender == stage.ana
            assert message.address == stage.direct
            assert message.direct
            assert abs(message.at - time.time() * 1000) < 10_000
            assert message.identity.startswith(stage.channel.name)

    async def test_messages_arrive_in_the_order_they_were_said(self) -> None:
        async with self.stage() as stage:
            intake = RecordingIntake()
            said = [f"m{n}" for n in range(12)]
            async with listening(stage.channel, intake):
                for text in said:
                    await stage.says(text, stage.direct)
                await until(lambda: len(intake.messages) == 12)
            assert intake.texts == said

    async def test_what_was_not_stored_comes_again_under_the_same_identity(self) -> None:
        async with self.stage() as stage:
            first = RecordingIntake()
            first.disk(False)
            async with listening(stage.channel, first):
                await until(lambda: first.connections)
                await stage.says("keep me", stage.direct)
                await until(lambda: first.offered)
            second = RecordingIntake(first)
            async with listening(stage.channel, second):
                await until(lambda: second.accepted)
            assert not first.accepted
            assert second.accepted[0].identity == first.offered[0].identity

    async def test_what_is_said_while_nobody_listens_arrives_later(self) -> None:
        async with self.stage() as stage:
            first = RecordingIntake()
            async with listening(stage.channel, first):
                await stage.says("before", stage.direct)
                await until(lambda: first.messages)
            await stage.says("while down", stage.direct)
            second = RecordingIntake(first)
            async with listening(stage.channel, second):
                await until(lambda: "while down" in second.texts)

    async def test_a_mention_addresses_us_and_is_taken_out_of_the_text(self) -> None:
        async with self.stage() as stage:
            intake = RecordingIntake()
            async with listening(stage.channel, intake):
                await stage.says("just talking", stage.group)
                await stage.says("status", stage.group, mention=True)
                await until(lambda: len(intake.messages) == 2)
            plain, mentioned = intake.messages
            assert (plain.addressed, plain.direct) == (False, False)
            assert mentioned.addressed
            assert mentioned.text == "status"
            assert mentioned.address.place == stage.group.place

    async def test_an_edit_names_the_message_it_changes(self) -> None:
        async with self.stage() as stage:
            intake = RecordingIntake()
            async with listening(stage.channel, intake):
                await stage.says("first", stage.direct)
                await until(lambda: intake.messages)
                await stage.edits("second")
                await until(lambda: intake.of(Edit))
            (edit,) = intake.of(Edit)
            assert (edit.of, edit.text) == (intake.messages[0].identity, "second")
            assert edit.identity != edit.of

    async def test_a_press_carries_the_buttons_id_and_can_be_answered(self) -> None:
        async with self.stage() as stage:
            intake = RecordingIntake()
            async with listening(stage.channel, intake):
                sent = await stage.channel.do(Send(stage.direct, Part("May I?"), CARD))
                await stage.presses("Deny")
                await until(lambda: intake.of(Press))
                (press,) = intake.of(Press)
                await stage.channel.do(AnswerPress(press.press, "noted"))
            assert (press.button, press.sender) == ("b:2", stage.ana)
            assert (press.address, press.message_id) == (stage.direct, sent.message_id)

    async def test_a_received_file_can_be_fetched(self, tmp_path: Path) -> None:
        async with self.stage() as stage:
            intake = RecordingIntake()
            async with listening(stage.channel, intake):
                await stage.sends_file(b"some bytes", "notes.txt", stage.direct)
                await until(lambda: intake.messages)
            (file,) = intake.messages[0].files
            await stage.channel.fetch(file, tmp_path / "got")
            assert (tmp_path / "got").read_bytes() == b"some bytes"
            assert file.name == "notes.txt"

    async def test_an_outage_is_reported_and_healed(self) -> None:
        async with self.stage() as stage:
            intake = RecordingIntake()
            async with listening(stage.channel, intake):
                await until(lambda: intake.up)
                await stage.outage()
                await until(lambda: not intake.up)
                lost = intake.connections[-1]
                await stage.recovery()
                await until(lambda: intake.up, 30)
                await stage.says("back again", stage.direct)
                await until(lambda: "back again" in intake.texts)
            assert lost.reason
            assert not lost.fatal

    # --- sending ---

    @pytest.mark.parametrize("text", ODD_TEXTS)
    async def test_everything_that_is_rendered_can_be_sent(self, text: str) -> None:
        async with self.stage() as stage:
            parts = stage.channel.render(text)
            assert parts
            assert parts == stage.channel.render(text)
            for part in parts:
                await stage.channel.do(Send(stage.direct, part))
            assert len(stage.shown(stage.direct)) == len(parts)
            assert all(shown.strip() for shown in stage.shown(stage.direct))

    async def test_a_text_that_grows_is_one_message_and_a_revision_ends_it(self) -> None:
        async with self.stage() as stage:
            first = Stream(stage.direct, "", "one", Part("one"), (), stage.ana, "1.1")
            if not stage.channel.limits.stream_text:
                with pytest.raises(Refused):
                    await stage.channel.do(first)
                return
            made = await stage.channel.do(first)
            more = replace(first, message_id=made.message_id, text="one two", part=Part("one two"))
            assert (await stage.channel.do(more)).message_id == made.message_id
            assert stage.shown(stage.direct) == ["one two"]
            for _ in range(2):
                await stage.channel.do(Revise(stage.direct, made.message_id, Part("the answer")))
            assert stage.shown(stage.direct) == ["the answer"]

    async def test_a_sent_message_can_be_revised_as_often_as_one_likes(self) -> None:
        async with self.stage() as stage:
            sent = await stage.channel.do(Send(stage.direct, Part("one")))
            for _ in range(2):
                await stage.channel.do(Revise(stage.direct, sent.message_id, Part("two")))
            assert stage.shown(stage.direct) == ["two"]

    async def test_a_revision_without_a_keyboard_takes_the_buttons_away(self) -> None:
        async with self.stage() as stage:
            sent = await stage.channel.do(Send(stage.group, Part("May I?"), CARD))
            assert stage.buttons(stage.group) == ["Allow", "Deny"]
            await stage.channel.do(Revise(stage.group, sent.message_id, Part("May I?!"), CARD))
            assert stage.buttons(stage.group) == ["Allow", "Deny"]
            await stage.channel.do(Revise(stage.group, sent.message_id, Part("allowed")))
            assert stage.buttons(stage.group) == []

    async def test_what_is_written_below_a_marked_text_is_shown(self) -> None:
        async with self.stage() as stage:
            (card,) = stage.channel.render("The agent wants **this**:\n\n```\nrm x\n```")
            sent = await stage.channel.do(Send(stage.group, card, CARD))
            decided = Part(f"{card.text}\n\n✅ Allowed by Ana", card.markup)
            await stage.channel.do(Revise(stage.group, sent.message_id, decided))
            (shown,) = stage.shown(stage.group)
            assert "rm x" in shown
            assert shown.endswith("✅ Allowed by Ana")

    async def test_a_deleted_message_is_gone_also_when_it_was_gone_before(self) -> None:
        async with self.stage() as stage:
            sent = await stage.channel.do(Send(stage.direct, Part("soon gone")))
            for _ in range(2):
                await stage.channel.do(Delete(stage.direct, sent.message_id))
            assert stage.shown(stage.direct) == []
            with pytest.raises(MessageGone):
                await stage.channel.do(Revise(stage.direct, sent.message_id, Part("again")))

    async def test_a_file_is_sent_with_its_caption(self, tmp_path: Path) -> None:
        async with self.stage() as stage:
            path = tmp_path / "report.txt"
            path.write_bytes(b"all is well")
            await stage.channel.do(SendFile(stage.direct, path, "report.txt", Part("look")))
            assert stage.files(stage.direct) == [b"all is well"]
            assert "look" in stage.shown(stage.direct)[0]
            with pytest.raises(Refused):
                await stage.channel.do(SendFile(stage.direct, tmp_path / "absent", "absent"))

    async def test_typing_and_receipts_leave_no_message(self) -> None:
        async with self.stage() as stage:
            intake = RecordingIntake()
            async with listening(stage.channel, intake):
                await stage.says("hello", stage.direct)
                await until(lambda: intake.messages)
            message = intake.messages[0]
            if stage.channel.limits.typing_every:
                await stage.channel.do(Typing(stage.direct))
            for receipt in stage.channel.limits.receipts:
                await stage.channel.do(React(stage.direct, message.message_id, receipt))
            await stage.channel.do(React(stage.direct, message.message_id, Receipt.NONE))
            assert stage.shown(stage.direct) == []

    async def test_an_opened_thread_is_a_place_of_its_own(self) -> None:
        async with self.stage() as stage:
            made = await stage.channel.do(OpenThread(stage.group, "A new matter"))
            there = Address(stage.group.channel, stage.group.chat, made.message_id)
            await stage.channel.do(Send(there, Part("inside")))
            assert stage.shown(there) == ["inside"]

    # --- what goes wrong ---

    @pytest.mark.parametrize("way", [RateLimited, Forbidden, Refused])
    async def test_a_refusal_is_named_and_nothing_is_shown(self, way: type[Exception]) -> None:
        async with self.stage() as stage:
            stage.trouble(way)
            with pytest.raises(way) as caught:
                await stage.channel.do(Send(stage.direct, Part("no")))
            assert stage.shown(stage.direct) == []
            if isinstance(caught.value, RateLimited):
                assert caught.value.retry_after == 7

    async def test_a_send_without_an_answer_is_uncertain(self) -> None:
        async with self.stage() as stage:
            stage.trouble(Uncertain)
            with pytest.raises(Uncertain):
                await stage.channel.do(Send(stage.direct, Part("perhaps")))

    async def test_a_send_that_cannot_connect_was_not_sent(self) -> None:
        async with self.stage() as stage:
            await stage.outage()
            with pytest.raises(NotSent):
                await stage.channel.do(Send(stage.direct, Part("no way")))
