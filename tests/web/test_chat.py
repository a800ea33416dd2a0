"""Talking on the page: whose threads are whose, each message once, files both ways."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from channels.local.channel import LIMITS
from gateway.cli.client import talk
from gateway.paths import FILES
from gateway.web import files
from tests.web.site import OWNER, Page
from tests.web.tabs import Tab, new_lane, say, sent, text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\"'><svg/onload=alert(3)>"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with Page(tmp_path_factory.mktemp("page")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ana(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ana@example.org")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ben(page: Page) -> httpx.AsyncClient:
    return await page.signed_in("ben@example.org")


async def history(browser: httpx.AsyncClient, lane: str, before: int = 1 << 49) -> httpx.Response:
    return await browser.get(f"/api/lanes/{lane}/history?before={before}")


async def names(browser: httpx.AsyncClient) -> list[str]:
    return [one["lane"] for one in (await browser.get("/api/threads")).json()["lanes"]]


# Whose threads ------------------------------------------------------------------------------


async def test_a_thread_belongs_to_who_began_it(
    page: Page, ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    hers, his = new_lane(), new_lane()
    await say(ana, hers, "/status")
    await say(ben, his, "/status")
    assert hers in await names(ana)
    assert his not in await names(ana)
    assert his in await names(ben)
    assert hers not in await names(ben)


async def test_a_member_gets_no_word_of_a_thread_that_is_not_theirs(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    hers = new_lane()
    await say(ana, hers, "/say secret")
    for answer in (
        await history(ben, hers),
        await sent(ben, hers, "let me in"),
        await ben.get(f"/chat/{hers}"),
        await ben.post("/api/press", json={"lane": hers, "button": "x", "message_id": ""}),
    ):
        assert answer.status_code == 404
        assert "secret" not in answer.text


async def test_a_member_begins_threads_only_under_names_that_the_page_gives(
    ben: httpx.AsyncClient,
) -> None:
    for name in ("main", "chat-", "chat-short", "telegram:7", "..", "a" * 65):
        answer = await sent(ben, name, "mine now")
        assert answer.status_code == 404, name


async def test_the_owner_of_the_terminal_and_admins_share_its_threads(
    page: Page, ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    await page.site.local.say("terminal", OWNER, "Owner", "/status")
    assert "terminal" in await names(ana)
    assert "terminal" not in await names(ben)
    await say(ana, "terminal", "/title Shared")
    shown = (await history(ana, "terminal")).json()["entries"]
    assert [(one["name"], text_of(one)) for one in shown if one["key"]] == [
        ("Owner", "/status"),
        ("ana@example.org", "/title Shared"),
    ]


async def test_what_the_terminal_says_is_seen_live_and_its_answer_in_both(
    page: Page, ana: httpx.AsyncClient
) -> None:
    async with Tab(ana, "from-the-terminal") as tab:
        async with talk(page.home) as terminal:
            assert terminal is not None
            terminal.send({"do": "say", "lane": "from-the-terminal", "text": "/stream 5 0.1"})
            told = [answer async for answer in terminal.answers()]
        assert told[-1] == {"end": "done"}
        await tab.until(lambda: tab.texts == ["/stream 5 0.1", "w0 w1 w2 w3 w4"])
        assert told[-2]["shown"]["text"].strip() == "w0 w1 w2 w3 w4"
        assert (tab.shown[0]["name"], tab.lanes["from-the-terminal"]["owner_name"]) == (
            "Owner", "Owner",
        )  # fmt: skip


async def test_an_admin_looks_into_a_members_thread_and_does_not_talk_in_it(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    his = new_lane()
    await say(ben, his, "/status")
    assert (await history(ana, his)).status_code == 200
    answer = await sent(ana, his, "hello")
    assert answer.status_code == 403
    assert "somebody else's" in answer.json()["error"]
    assert "composer" not in (await ana.get(f"/chat/{his}")).text.replace("composer.js", "")


async def test_who_stopped_somebody_elses_turn_does_not_own_their_thread(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    his = new_lane()
    async with Tab(ben, his) as tab:
        await say(ben, his, "/sleep 60")
        await tab.until(lambda: tab.state == "running")
        assert (await ana.post(f"/api/lanes/{his}/stop", json={})).status_code == 200
        await tab.until(lambda: tab.state == "idle")
        await tab.until(lambda: any("ana@example.org" in one for one in tab.answers))
    assert his in await names(ben)
    assert his not in await names(ana)


# Messages -----------------------------------------------------------------------------------


async def test_a_message_sent_again_is_one_message(ana: httpx.AsyncClient) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        for _ in range(3):
            await say(ana, lane, "/say once", "the-same-message")
        await tab.until(lambda: tab.texts == ["/say once", "once"] and tab.state == "idle")
        assert [one["ref"] for one in tab.shown] == ["the-same-message", ""]


async def test_two_people_may_call_their_messages_the_same(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    hers, his = new_lane(), new_lane()
    for browser, lane in ((ana, hers), (ben, his)):
        await say(browser, lane, "/status", "the-first-message")
        shown = (await history(browser, lane)).json()["entries"]
        assert text_of(shown[0]) == "/status"


async def test_what_cannot_be_a_message_is_refused_in_plain_words(ana: httpx.AsyncClient) -> None:
    lane = new_lane()
    for body, word in (
        ({"text": "hi"}, "id"),
        ({"text": "hi", "id": "short"}, "id:"),
        ({"text": "", "id": "a" * 10}, "write something"),
        ({"text": "hi", "id": "a" * 10, "files": "x"}, "list"),
        ({"text": "hi", "id": "a" * 10, "files": ["nothing"]}, "not there any more"),
        ({"text": 7, "id": "a" * 10}, "text"),
        ({"text": "x" * 200_001, "id": "a" * 10}, "longer"),
    ):
        answer = await ana.post(f"/api/lanes/{lane}/say", json=body)
        assert answer.status_code in (400, 409, 413), body
        assert word in answer.json()["error"]
    assert lane not in await names(ana)


async def test_messages_stand_in_their_order_with_how_far_they_are(ana: httpx.AsyncClient) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "/sleep 60")
        await tab.until(lambda: tab.state == "running")
        for nth in range(3):
            await say(ana, lane, f"/say {nth}")
        said = ["/sleep 60", "/say 0", "/say 1", "/say 2"]
        await tab.until(lambda: [t for t in tab.texts if t in said] == said)
        receipts = [one["receipt"] for one in tab.shown if one["key"]]
        assert receipts == ["running", "waiting", "waiting", "waiting"]
        waiting = tab.lanes[lane]["waiting"]
        assert [one["label"] for one in waiting] == said[1:]
        await ana.post(f"/api/lanes/{lane}/drop", json={"turn": waiting[1]["turn"]})
        await tab.until(lambda: "dropped" in [one["receipt"] for one in tab.shown])
        await ana.post(f"/api/lanes/{lane}/skip", json={})
        await tab.until(lambda: tab.state == "idle")
        await tab.until(
            lambda: (
                [one["receipt"] for one in tab.shown if one["key"]]
                == ["stopped", "done", "dropped", "done"]
            )
        )


async def test_commands_stay_in_the_thread_with_their_answers(ana: httpx.AsyncClient) -> None:
    lane = new_lane()
    await say(ana, lane, "/title My own name")
    async with Tab(ana, lane) as tab:
        await tab.until(lambda: len(tab.texts) == 2)
        assert tab.texts[0] == "/title My own name"
        assert tab.lanes[lane]["title"] == "My own name"


async def test_a_thread_is_called_after_what_was_asked_first(ana: httpx.AsyncClient) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "Compare the two reports")
        await tab.until(lambda: tab.lanes.get(lane, {}).get("named"))
        assert tab.lanes[lane]["title"] == "Compare the two reports"


async def test_earlier_messages_are_read_page_by_page(
    ana: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        for nth in range(7):
            await say(ana, lane, f"/say answer {nth}")
            await tab.until(lambda nth=nth: f"answer {nth}" in tab.answers)  # type: ignore[misc]
        await tab.until(lambda: tab.state == "idle")
    monkeypatch.setattr("gateway.web.threads.PAGE", 3)
    seen: dict[str, str] = {}
    before, more, pages = 1 << 49, True, 0
    while more:
        part = (await history(ana, lane, before)).json()
        seen |= {one["id"]: text_of(one) for one in part["entries"]}
        before, more, pages = part["entries"][0]["at"], part["more"], pages + 1
        assert pages < 12
    assert pages > 2
    expected = [word for nth in range(7) for word in (f"/say answer {nth}", f"answer {nth}")]
    assert [seen[ident] for ident in sorted(seen)] == expected


async def test_what_an_agent_writes_stays_text(ana: httpx.AsyncClient) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, f"/title {HOSTILE}")
        await say(ana, lane, f"/say {HOSTILE} [x](javascript:alert(1)) ![y](https://e.org/y.png)")
        await tab.until(lambda: tab.state == "idle" and len(tab.shown) >= 4)
        for one in tab.shown:
            tags = set(re.findall(r"<\s*(\w+)", one["html"]))
            assert tags <= {"p", "br", "a", "strong", "em", "code"}, one["html"]
            assert "javascript:" not in re.findall(r'href="([^"]*)"', one["html"])
        hostile_page = (await ana.get(f"/chat/{lane}")).text
        assert "onerror" not in hostile_page


# Deciding -----------------------------------------------------------------------------------


async def test_a_card_is_decided_by_its_buttons(ana: httpx.AsyncClient) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "/approve make release")
        await tab.until(lambda: any(one["buttons"] for one in tab.shown))
        card = next(one for one in tab.shown if one["buttons"])
        buttons = {one["label"]: one["id"] for row in card["buttons"] for one in row}
        assert list(buttons) == ["Allow", "Always here", "Deny"]
        press = {"lane": lane, "button": buttons["Allow"], "message_id": card["id"]}
        assert (await ana.post("/api/press", json=press)).json() == {"said": "Allowed."}
        await tab.until(lambda: "ran: make release." in tab.answers)
        assert not tab.entries[card["id"]]["buttons"]
        again = (await ana.post("/api/press", json=press)).json()["said"]
        assert again.startswith("Already decided")


async def test_a_member_may_not_decide_nor_press_what_is_elsewhere(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    his, hers = new_lane(), new_lane()
    async with Tab(ben, his) as tab, Tab(ana, hers) as other:
        await say(ben, his, "/approve make release")
        await say(ana, hers, "/approve make clean")
        for one in (tab, other):
            await one.until(lambda one=one: any(entry["buttons"] for entry in one.shown))  # type: ignore[misc]
        card = next(one for one in tab.shown if one["buttons"])
        press = {"lane": his, "button": card["buttons"][0][0]["id"], "message_id": card["id"]}
        said = (await ben.post("/api/press", json=press)).json()["said"]
        assert "approvers" in said
        foreign = next(one for one in other.shown if one["buttons"])["buttons"][0][0]["id"]
        answer = await ben.post("/api/press", json={"lane": his, "button": foreign})
        assert answer.status_code == 404
        for browser, lane in ((ben, his), (ana, hers)):
            await browser.post(f"/api/lanes/{lane}/stop", json={})


# Files --------------------------------------------------------------------------------------


async def upload(
    browser: httpx.AsyncClient, name: str, content: bytes = b"hello"
) -> httpx.Response:
    return await browser.post("/api/files", files={"file": (name, content)})


async def test_a_file_goes_with_its_message_and_can_be_fetched_again(
    page: Page, ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    lane, file = new_lane(), (await upload(ana, "notes.txt")).json()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "look at this", files=[file["id"]])
        await tab.until(lambda: tab.state == "idle" and len(tab.answers) == 1)
        (shown,) = tab.shown[0]["files"]
        assert (shown["name"], shown["size"], shown["image"]) == ("notes.txt", 5, False)
        (inbox,) = page.home.glob("workspaces/*/inbox/*/*notes.txt")
        assert inbox.read_bytes() == b"hello"
        answer = await ana.get(shown["url"])
        assert answer.content == b"hello"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert (await ben.get(shown["url"])).status_code == 404


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..\\..\\boot.ini",
        ".hidden",
        "a\r\nSet-Cookie: x=y.txt",
        '"; x="',
        "\0",
        "",
    ],
)
async def test_a_hostile_name_leads_nowhere(page: Page, ana: httpx.AsyncClient, name: str) -> None:
    boundary = "b"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="'.encode()
        + name.encode()
        + f'"\r\n\r\nhello\r\n--{boundary}--\r\n'.encode()
    )
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    answer = await ana.post("/api/files", content=body, headers=headers)
    if answer.status_code != 200:
        assert answer.status_code in (400, 415)
        return
    found = answer.json()
    assert not set(found["name"]) & set('/\\\r\n\0"')
    assert not found["name"].startswith(".")
    handed = await ana.get(f"/api/files/in-{found['id']}/x")
    assert handed.content == b"hello"
    assert "set-cookie" not in handed.headers
    stored = {path.name for path in (page.home / FILES).iterdir()}
    assert f"in-{found['id']}" in stored


async def test_only_pictures_that_cannot_run_anything_are_shown_in_place(
    ana: httpx.AsyncClient,
) -> None:
    for name, how in (("a.png", "inline"), ("a.svg", "attachment"), ("a.html", "attachment")):
        file = (await upload(ana, name, PNG)).json()
        answer = await ana.get(f"/api/files/in-{file['id']}/{name}")
        assert answer.headers["content-disposition"].startswith(how), name
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]


async def test_a_file_of_the_agent_comes_down_to_who_may_see_its_thread(
    ana: httpx.AsyncClient, ben: httpx.AsyncClient
) -> None:
    lane = new_lane()
    async with Tab(ana, lane) as tab:
        await say(ana, lane, "/file report.html <script>alert(1)</script>")
        await tab.until(lambda: any(one["files"] for one in tab.shown))
        (file,) = next(one for one in tab.shown if one["files"])["files"]
        answer = await ana.get(file["url"])
        assert answer.content.strip() == b"<script>alert(1)</script>"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert (await ben.get(file["url"])).status_code == 404
        for guess in ("out-", "out-x", "out-" + "9" * 40, "in-..", "etc", "out-00.1ffffffff"):
            assert (await ana.get(f"/api/files/{guess}/x")).status_code == 404, guess


async def test_too_much_is_refused_and_leaves_nothing(
    page: Page, ana: httpx.AsyncClient, ben: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set((page.home / FILES).glob("*"))  # empty where nothing was sent yet
    answer = await upload(ana, "big.bin", b"x" * (LIMITS.file_in + 1))
    assert (answer.status_code, "20 MB" in answer.json()["error"]) == (413, True)
    for body, kind in (
        (b"{}", "application/json"),
        (b"no form", "multipart/form-data; boundary=b"),
    ):
        refused = await ana.post("/api/files", content=body, headers={"Content-Type": kind})
        assert refused.status_code in (400, 415)
    assert set((page.home / FILES).glob("*")) == before
    monkeypatch.setattr(files, "UNUSED_MOST", 1)
    assert (await upload(ben, "one.txt")).status_code == 200
    assert (await upload(ben, "two.txt")).status_code == 429


async def test_a_file_that_nobody_used_is_gone_after_a_day(
    page: Page, ana: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = (await upload(ana, "old.txt")).json()
    monkeypatch.setattr(files, "UNUSED_FOR", -1_000)
    await upload(ana, "new.txt")
    assert (await ana.get(f"/api/files/in-{old['id']}/old.txt")).status_code == 404
    assert not (page.home / FILES / f"in-{old['id']}").exists()
    answer = await sent(ana, new_lane(), "with it", files=[old["id"]])
    assert (answer.status_code, "add it again" in answer.json()["error"]) == (409, True)


async def test_a_file_goes_up_only_from_the_page_itself(page: Page, ana: httpx.AsyncClient) -> None:
    foreign = {"Origin": "https://evil.example"}
    answer = await ana.post("/api/files", files={"file": ("x.txt", b"x")}, headers=foreign)
    assert answer.status_code == 403
    assert (await upload(page.browser(), "x.txt")).status_code == 401
