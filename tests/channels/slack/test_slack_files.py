"""Files go to and from Slack in pieces, and the token to nobody but Slack."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from channels.slack import files as slack_files
from channels.slack.adapter import SlackChannel
from core.channel import (
    FileTooBig,
    Find,
    Forbidden,
    NotSent,
    Refused,
    SendFile,
    ThreadGone,
    Uncertain,
)
from core.messages import Address, FileKind, FileRef, Part
from tests.channels.slack.conftest import Slack
from tests.contracts.channel_contract import listening
from tests.fakes.slack import ANA_DM, LAB

DIRECT = Address("slack", ANA_DM)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.txt"
    path.write_bytes(b"all is well")
    return path


def ref(
    slack: Slack, data: bytes = b"some bytes", mime: str = "text/plain", **more: str
) -> FileRef:
    file = slack.fake.file(data, "notes.txt", mime, slack.fake.base)
    address = more.get("address", file["url_private_download"])
    return FileRef(f"{file['id']} {address}".strip(), FileKind.DOCUMENT, "notes.txt", mime)


class TestReceiving:
    async def test_a_file_whose_event_names_no_address_is_asked_for(
        self, slack: Slack, tmp_path: Path
    ) -> None:
        known = slack.fake.file(b"\x89PNG", "s.png", "image/png", slack.fake.base)
        root = slack.fake.user_says("<@UBOT> look", channel=LAB, delivered=False)
        async with listening(slack.channel, slack.intake):
            await slack.fake.until(lambda: slack.intake.up)
            bare = {key: known[key] for key in ("id", "name", "mimetype", "size")}
            slack.fake.user_says(
                "see screenshot", channel=LAB, thread=root["ts"], subtype="file_share", files=[bare]
            )
            await slack.fake.until(lambda: slack.intake.messages)
        (message,) = slack.intake.messages
        await slack.channel.fetch(message.files[0], tmp_path / "got")
        assert (tmp_path / "got").read_bytes() == b"\x89PNG"
        assert message.text == "see screenshot"

    async def test_slacks_sign_in_page_is_no_file(self, slack: Slack, tmp_path: Path) -> None:
        file = ref(slack)
        slack.fake.revoke("xoxb-another")
        with pytest.raises(Refused, match="files:read"):
            await slack.channel.fetch(file, tmp_path / "got")
        assert not (tmp_path / "got").exists()

    async def test_a_page_that_somebody_sent_is_a_file(self, slack: Slack, tmp_path: Path) -> None:
        await slack.channel.fetch(ref(slack, b"<!DOCTYPE html>", "text/html"), tmp_path / "got")
        assert (tmp_path / "got").read_bytes() == b"<!DOCTYPE html>"

    @pytest.mark.parametrize(
        "address",
        [
            "https://evil.example/files-pri/F1",
            "https://slack.com.evil.example/F1",
            "http://files.slack.com/F1",
            "https://evilslack.com/F1",
            "file:///etc/passwd",
        ],
    )
    async def test_the_token_goes_to_slack_alone(
        self, slack: Slack, tmp_path: Path, address: str
    ) -> None:
        with pytest.raises(Refused, match="not fetched"):
            await slack.channel.fetch(ref(slack, address=address), tmp_path / "got")
        assert not (tmp_path / "got").exists()

    async def test_not_even_by_a_redirect(
        self, slack: Slack, tmp_path: Path, aside: tuple[str, list[str]]
    ) -> None:
        address, asked = aside
        slack.fake.fail("download", status=302)
        slack.fake.faults[-1].headers["Location"] = address
        with pytest.raises(Refused, match="not fetched"):
            await slack.channel.fetch(ref(slack), tmp_path / "got")
        assert asked == []

    async def test_a_file_that_is_gone_or_too_big_is_said(
        self, slack: Slack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slack.fake.fail("download", status=404)
        with pytest.raises(Refused, match="not at Slack any more"):
            await slack.channel.fetch(ref(slack), tmp_path / "got")
        monkeypatch.setattr(slack_files, "MOST", 4)
        with pytest.raises(FileTooBig):
            await slack.channel.fetch(ref(slack), tmp_path / "got")
        known = FileRef("F1", FileKind.DOCUMENT, "big", size=5)
        with pytest.raises(FileTooBig):
            await slack.channel.fetch(known, tmp_path / "got")
        assert not (tmp_path / "got").exists()

    async def test_a_broken_download_leaves_nothing(self, slack: Slack, tmp_path: Path) -> None:
        slack.fake.drop("download", times=0)
        with pytest.raises(Uncertain):
            await slack.channel.fetch(ref(slack), tmp_path / "got")
        assert not (tmp_path / "got").exists()
        with pytest.raises(Refused, match="cannot be stored"):
            await slack.channel.fetch(ref(slack), tmp_path / "no folder" / "got")

    async def test_without_a_connection_it_may_be_tried_again(
        self, slack: Slack, tmp_path: Path
    ) -> None:
        file = ref(slack)
        await slack.fake.stop()
        with pytest.raises(NotSent):
            await slack.channel.fetch(file, tmp_path / "got")


class TestSending:
    async def test_a_file_goes_into_its_thread_with_its_words(
        self, slack: Slack, report: Path
    ) -> None:
        root = slack.fake.user_says("begin", channel=LAB, delivered=False)
        thread = Address("slack", LAB, root["ts"])
        (words,) = slack.channel.render("**look** & see")
        done = await slack.channel.do(SendFile(thread, report, "report.txt", words))
        (message,) = slack.fake.shown(LAB, root["ts"])
        assert slack.fake.texts(LAB, root["ts"]) == ["look & see"]
        assert message["files"][0]["title"] == "report.txt"
        assert done.message_id == message["ts"]

    async def test_words_beside_a_file_cannot_ping(self, slack: Slack, report: Path) -> None:
        await slack.channel.do(SendFile(DIRECT, report, "a.txt", Part("<!channel>")))
        (block,) = slack.fake.shown(ANA_DM)[0]["blocks"]
        assert block["type"] == "rich_text"  # in which nothing is read as a mention

    async def test_where_no_blocks_are_taken_the_words_go_as_text(
        self, slack: Slack, report: Path
    ) -> None:
        slack.fake.fail("files.completeUploadExternal", "invalid_blocks")
        (words,) = slack.channel.render("**look** <!channel>")
        await slack.channel.do(SendFile(DIRECT, report, "a.txt", words))
        assert slack.fake.shown(ANA_DM)[0]["text"].startswith("*look* &lt;!")
        slack.fake.fail("files.completeUploadExternal", "invalid_blocks")
        await slack.channel.do(SendFile(DIRECT, report, "a.txt", Part("a < b")))
        assert slack.fake.shown(ANA_DM)[1]["text"] == "a &lt; b"

    async def test_a_file_is_found_by_a_later_process_too(self, slack: Slack, report: Path) -> None:
        await slack.channel.do(SendFile(DIRECT, report, "a.txt", nonce="f.1"))
        tokens = (slack.fake.bot_token, slack.fake.app_token)
        async with SlackChannel(*tokens, slack.clock, slack.fake.url) as later:
            found = await later.do(Find(DIRECT, "f.1", 0))
            assert found.message_id == slack.fake.shown(ANA_DM)[0]["ts"]
            assert (await later.do(Find(DIRECT, "f.2", 0))).message_id == ""

    async def test_a_file_that_lost_its_mark_leaves_it_open_for_good(
        self, slack: Slack, report: Path
    ) -> None:
        await slack.channel.do(SendFile(DIRECT, report, "a.txt", nonce="f.1"))
        slack.fake.shown(ANA_DM)[0]["blocks"] = []
        tokens = (slack.fake.bot_token, slack.fake.app_token)
        later = SlackChannel(*tokens, slack.clock, slack.fake.url)
        async with later, listening(later, slack.intake):
            await slack.fake.until(lambda: slack.intake.up)
            with pytest.raises(Refused, match="cannot be told"):
                await later.do(Find(DIRECT, "f.1", 0))
            later._calls._uploads["f.2"] = "F0NEVERSHARED"  # what is known of a file tells it apart
            assert (await later.do(Find(DIRECT, "f.2", 0))).message_id == ""

    async def test_a_file_of_unknown_fate_is_found(self, slack: Slack, report: Path) -> None:
        slack.fake.drop("files.completeUploadExternal", after=True)
        with pytest.raises(Uncertain):
            await slack.channel.do(SendFile(DIRECT, report, "a.txt", nonce="f.1"))
        found = await slack.channel.do(Find(DIRECT, "f.1", 0))
        assert found.message_id == slack.fake.shown(ANA_DM)[0]["ts"]

    async def test_a_file_that_was_never_shared_is_not_there(
        self, slack: Slack, report: Path
    ) -> None:
        slack.fake.drop("upload")
        with pytest.raises(NotSent):
            await slack.channel.do(SendFile(DIRECT, report, "a.txt", nonce="f.1"))
        assert (await slack.channel.do(Find(DIRECT, "f.1", 0))).message_id == ""

    async def test_slack_may_need_a_moment_to_say_which_message_it_is(
        self, slack: Slack, report: Path
    ) -> None:
        slack.fake.garble("files.info", b'{"ok": true, "file": {"shares": {}}}')
        slack.fake.faults[-1].content_type = "application/json"
        done = await slack.channel.do(SendFile(DIRECT, report, "a.txt"))
        assert done.message_id == slack.fake.shown(ANA_DM)[0]["ts"]
        slack.fake.fail("files.info", "missing_scope", times=0)
        assert (await slack.channel.do(SendFile(DIRECT, report, "a.txt"))).message_id == ""

    async def test_what_cannot_be_sent_is_refused_in_words(
        self, slack: Slack, tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        empty = tmp_path / "empty"
        empty.touch()
        with pytest.raises(Refused, match="empty"):
            await slack.channel.do(SendFile(DIRECT, empty, "empty"))
        with pytest.raises(Forbidden):
            await slack.channel.do(SendFile(Address("slack", "C0NONE"), report, "a.txt"))
        gone = Address("slack", LAB, "1.000001")
        with pytest.raises(ThreadGone):
            await slack.channel.do(SendFile(gone, report, "a.txt"))
        monkeypatch.setattr(slack_files, "MOST", 4)
        with pytest.raises(FileTooBig):
            await slack.channel.do(SendFile(DIRECT, report, "a.txt"))
        assert slack.fake.shown(ANA_DM) == []


@pytest.fixture
async def aside() -> object:
    """A server that is not Slack's, and what was asked there."""
    asked: list[str] = []

    async def take(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Authorization", ""))
        return web.Response(text="yours")

    app = web.Application()
    app.router.add_get("/{path:.*}", take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/x", asked
    await runner.cleanup()
