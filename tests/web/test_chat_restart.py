"""A thread over a restart: all that was said and shown is there, each thing once."""

from __future__ import annotations

from pathlib import Path

from core.messages import Part
from core.store import rows
from core.store.records import Delivery, DeliveryKind, DeliveryState
from tests.fakes.clock import QuickClock
from tests.web.site import Page
from tests.web.tabs import Tab, new_lane, say, text_of


async def test_what_a_restart_cuts_off_is_shown_once_and_goes_on_by_its_button(
    tmp_path: Path,
) -> None:
    page = Page(tmp_path, LANEWAY_DRAIN_TIMEOUT="0s", LANEWAY_STOP_GRACE="1s")
    await page.start()
    try:
        ana, lane = await page.signed_in("ana@example.org"), new_lane()
        async with Tab(ana, lane) as tab:
            await say(ana, lane, "/say half\n/sleep 60")
            await tab.until(lambda: "half" in tab.answers)
            await page.stop()
        await page.start()
        ana = await page.signed_in("ana@example.org")
        async with Tab(ana, lane) as tab:
            await tab.until(lambda: any(one["buttons"] for one in tab.shown))
            assert tab.texts[0] == "/say half\n/sleep 60"
            assert len([one for one in tab.answers if one.startswith("half")]) == 1
            (button,) = [b for one in tab.shown for row in one["buttons"] for b in row]
            notice = next(one for one in tab.shown if one["buttons"])
            assert button["label"] == "Continue"
            press = {"lane": lane, "button": button["id"], "message_id": notice["id"]}
            assert (await ana.post("/api/press", json=press)).json()["said"] == "Going on."
            await tab.until(lambda: tab.state == "running")
            assert [one["receipt"] for one in tab.shown if one["key"]] == ["interrupted"]
            await ana.post(f"/api/lanes/{lane}/stop", json={})
            await tab.until(lambda: tab.state == "idle")
        await ana.aclose()
    finally:
        await page.stop()


async def test_what_was_being_sent_when_the_gateway_died_is_shown_once(tmp_path: Path) -> None:
    async with Page(tmp_path, clock=QuickClock(20)) as page:
        ana, lane = await page.signed_in("ana@example.org"), new_lane()
        await say(ana, lane, "/status")
        store = page.site.parts.store
        row = Delivery(
            store.ids.delivery(), lane, None, DeliveryKind.NOTICE, Part("in the air"),
            state=DeliveryState.IN_FLIGHT, created_at=store.clock.now(),
        )  # fmt: skip
        await store.save(rows.delivery(row))
        await page.stop()
        await page.start()
        ana = await page.signed_in("ana@example.org")
        async with Tab(ana, lane) as tab:
            await tab.until(lambda: "in the air" in tab.answers)
            assert tab.answers.count("in the air") == 1
            history = (await ana.get(f"/api/lanes/{lane}/history?before={1 << 49}")).json()
            assert [text_of(one) for one in history["entries"]] == tab.texts
            notes = [one["note"] for one in tab.shown]
            assert not any(notes)
