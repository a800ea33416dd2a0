"""Files, both ways; and looking for a send that nobody knows the end of."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.channel import (
    Done,
    FileTooBig,
    Find,
    Refused,
    Send,
    SendFile,
    Uncertain,
)
from core.messages import Address, Message, Part
from tests.channels.discord.conftest import Discord, connected
from tests.contracts.channel_contract import listening
from tests.fakes.discord import BOT, CHANNEL

POST = ("POST", "/messages$")
LAB = Address("discord", CHANNEL)
ME = f"<@{BOT}>"


class TestFiles:
    async def test_a_file_may_not_be_larger_than_discord_takes(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        path = tmp_path / "big"
        with path.open("wb") as out:
            out.truncate(10 * 1024 * 1024 + 1)
        with pytest.raises(FileTooBig):
            await discord.channel.do(SendFile(LAB, path, "big"))
        path.write_bytes(b"x")
        discord.fake.fail(*POST, 413, 40005, "Request entity too large")
        with pytest.raises(Refused, match="larger"):
            await discord.channel.do(SendFile(LAB, path, "big"))

    async def test_a_file_sent_twice_with_one_nonce_is_there_once(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.bin"
        path.write_bytes(b"\0\1")
        for _ in range(2):
            await discord.channel.do(SendFile(LAB, path, "a.bin", nonce="f1"))
        (shown,) = discord.fake.shown(CHANNEL)
        assert shown["attachments"][0]["filename"] == "a.bin"
        assert shown["content"] == ""

    async def test_a_file_opens_the_thread_it_belongs_to(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.txt"
        path.write_bytes(b"all")
        said = discord.fake.user_says(f"{ME} send it", channel=CHANNEL)
        lane = Address("discord", CHANNEL, said["id"])
        await discord.channel.do(SendFile(lane, path, "a.txt", Part("look"), nonce="f2"))
        (shown,) = discord.fake.shown(lane.thread)
        assert discord.fake.files[shown["attachments"][0]["id"]] == b"all"

    async def received(self, discord: Discord, **fields: object) -> Message:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.user_sends(b"some bytes", "a.txt", **fields)
            await discord.fake.until(lambda: discord.intake.messages)
        return discord.intake.messages[0]

    async def test_an_address_that_expired_is_asked_for_anew(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        message = await self.received(discord)
        discord.fake.expire_links()
        await discord.channel.fetch(message.files[0], tmp_path / "got")
        assert (tmp_path / "got").read_bytes() == b"some bytes"
        cdn = discord.fake.called("GET", "^/cdn/")
        assert [call.status for call in cdn] == [200]

    async def test_a_large_file_is_refused_before_and_while_it_comes(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        message = await self.received(discord, size=60_000_000)
        with pytest.raises(FileTooBig):
            await discord.channel.fetch(message.files[0], tmp_path / "got")
        assert discord.fake.called("GET", "^/cdn/") == []

    async def test_a_file_whose_message_is_gone_says_so(
        self, discord: Discord, tmp_path: Path
    ) -> None:
        message = await self.received(discord)
        where = discord.fake.messages[message.address.chat]
        discord.fake.user_deletes(where[message.message_id])
        with pytest.raises(Refused, match="not there any more"):
            await discord.channel.fetch(message.files[0], tmp_path / "got")

    @pytest.mark.parametrize(("status", "error"), [(500, Uncertain), (403, Refused)])
    async def test_a_download_that_fails_leaves_nothing(
        self, discord: Discord, tmp_path: Path, status: int, error: type[Exception]
    ) -> None:
        message = await self.received(discord)
        discord.fake.fail("GET", "^/cdn/", status)
        with pytest.raises(error):
            await discord.channel.fetch(message.files[0], tmp_path / "got")
        assert not (tmp_path / "got").exists()


class TestFinding:
    async def test_a_send_whose_answer_was_lost_is_found_by_its_event(
        self, discord: Discord
    ) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            discord.fake.drop(*POST, after=True)
            since = discord.clock.now()
            with pytest.raises(Uncertain):
                await discord.channel.do(Send(LAB, Part("once"), nonce="n1"))
            discord.fake.user_says("marker")
            await discord.fake.until(lambda: discord.intake.messages)
            found = await discord.channel.do(Find(LAB, "n1", since))
            assert found.message_id == discord.fake.shown(CHANNEL)[0]["id"]

    async def test_without_the_event_it_is_found_by_its_words(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
        since = discord.clock.now()
        discord.fake.drop(*POST, after=True)
        with pytest.raises(Uncertain):
            await discord.channel.do(Send(LAB, Part("once"), nonce="n1"))
        found = await discord.channel.do(Find(LAB, "n1", since))
        assert found.message_id == discord.fake.shown(CHANNEL)[0]["id"]

    async def test_what_never_arrived_is_certainly_not_there(self, discord: Discord) -> None:
        async with listening(discord.channel, discord.intake):
            await connected(discord)
            since = discord.clock.now()
            await discord.channel.do(Send(LAB, Part("another"), nonce="n0"))
            discord.fake.drop(*POST)
            with pytest.raises(Uncertain):
                await discord.channel.do(Send(LAB, Part("once"), nonce="n1"))
            assert await discord.channel.do(Find(LAB, "n1", since)) == Done("")

    async def test_after_a_restart_it_is_certain_only_where_nothing_of_ours_stands(
        self, discord: Discord
    ) -> None:
        since = discord.clock.now()
        async with listening(discord.channel, discord.intake):
            await connected(discord)
        assert await discord.channel.do(Find(LAB, "n1", since)) == Done("")
        discord.fake.message(CHANNEL, "of an earlier life", discord.fake.me)
        with pytest.raises(Refused):  # for good, so that what waits behind it is not held up
            await discord.channel.do(Find(LAB, "n1", since))
        lane = Address("discord", CHANNEL, "1234567890")
        assert await discord.channel.do(Find(lane, "n1", since)) == Done("")
