"""What whoever watches the gateway is told: by whom it may be read, and that the sums are right."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from core.engines.base import Usage
from core.tallies import Spread
from core.turn_counts import Ran, TurnCounts
from core.turns import Kind, Origin, Status, Turn
from tests.end_to_end.house import House
from tests.fakes.telegram import ANA
from tests.web.site import Page
from tests.web.wire import request, say

TOKEN = "a-token-for-metrics"
Sums = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> Sums:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(sums: Sums, name: str, **labels: str) -> float:
    return sums[f"laneway_{name}", frozenset(labels.items())]


async def test_only_the_token_and_admins_read_them(tmp_path: Path) -> None:
    async with Page(tmp_path, LANEWAY_METRICS_TOKEN=TOKEN) as page:
        nobody = page.browser()
        refused = await nobody.get("/metrics")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        for given in (f"Bearer {TOKEN}x", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, "Bearer ü"):
            assert await status(page, given) == 401, given
        for given in (f"Bearer {TOKEN}", f"bearer  {TOKEN} "):
            assert await status(page, given) == 200, given
        ben = await page.signed_in("ben@example.org")
        assert (await ben.get("/metrics")).status_code == 403
        ana = await page.signed_in("ana@example.org")
        async with ana.stream("GET", "/api/events"):
            answer = await ana.get("/metrics")
        assert of(read(answer.text), "event_streams_open") == 1
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


async def status(page: Page, authorization: str) -> int:
    line = f"Authorization: {authorization}"
    answer = await say(page.gateway.web_port, request("GET", "/metrics", line))
    return answer.status


async def test_without_a_token_no_token_lets_in(tmp_path: Path) -> None:
    async with Page(tmp_path) as page:
        for given in ("Bearer ", "Bearer", "Bearer x"):
            assert await status(page, given) == 401


async def test_the_sums_of_a_gateway_at_work(tmp_path: Path) -> None:
    async with House(tmp_path, LANEWAY_METRICS_TOKEN=TOKEN, LANEWAY_DRAIN_TIMEOUT="0s") as house:
        house.fake.fail("sendMessage", 429, "Too Many Requests: retry after 1", retry_after=1)
        house.fake.user_says("/say hello")
        await house.fake.until(lambda: house.fake.texts(ANA)[-1:] == ["hello"])
        house.fake.user_says("/say on it\n/sleep 30")
        await house.fake.until(lambda: house.fake.texts(ANA)[-1:] != ["hello"])
        url = f"http://127.0.0.1:{house.running.web_port}"
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            answer = await client.get(f"{url}/metrics", headers=headers)
    text = answer.text
    sums = read(text)
    assert of(sums, "turns_total", kind="main", status="done", engine="acp") == 1
    assert of(sums, "turns_running") == 1
    assert of(sums, "lanes", state="running") == 1
    assert of(sums, "lanes", state="idle") == 0
    assert of(sums, "messages_total", channel="telegram") == 2
    assert of(sums, "channel_connected", channel="telegram") == 1
    assert of(sums, "rate_limit_penalties_total", channel="telegram") >= 1
    assert of(sums, "deliveries_total", channel="telegram", state="sent") >= 1
    assert of(sums, "platform_calls_total", channel="telegram", call="send") >= 2
    assert of(sums, "engine_up", engine="acp") == 1
    assert of(sums, "engine_paused", engine="acp") == 0
    assert of(sums, "turn_first_text_seconds_count") == 1
    assert of(sums, "turn_seconds_bucket", le="+Inf") == of(sums, "turn_seconds_count") == 1
    assert of(sums, "store_commit_seconds_count") >= 4
    assert of(sums, "process_resident_memory_bytes") > 1_000_000
    assert of(sums, "event_streams_open") == 0
    names = set(re.findall(r"^([a-z_]+)", text, re.MULTILINE))
    assert all(name.startswith("laneway_") for name in names)
    assert "700000001" not in text
    assert "hello" not in text


async def test_every_metric_is_in_the_book(tmp_path: Path) -> None:
    book = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")
    async with Page(tmp_path) as page:
        ana = await page.signed_in("ana@example.org")
        text = (await ana.get("/metrics")).text
    told = set(re.findall(r"^# TYPE (laneway_\w+)", text, re.MULTILINE))
    missing = {name for name in told if f"`{name}`" not in book and "_process_" not in name}
    assert not missing


class TestCounting:
    def test_a_value_at_a_bound_is_not_above_it(self) -> None:
        spread = Spread((1.0, 2.0))
        for value in (0.5, 1.0, 1.5, 9.0):
            spread.see(value)
        assert spread.steps() == [(1.0, 2), (2.0, 3), (float("inf"), 4)]
        assert (spread.count, spread.sum) == (4, 12.0)

    def test_turns_are_counted_by_kind_end_and_engine(self) -> None:
        counts = TurnCounts()
        turn = Turn(
            1, "local:main", "local:owner", Origin.PERSON, Kind.MAIN, 1000, status=Status.DONE
        )
        counts.over(turn, Ran("claude", 3000, 3500, Usage(10, 20, 0.5)), 9000)
        counts.over(turn, Ran("claude", 3000, 0, Usage(1, 2, None)), 9000)
        counts.over(turn, None, 9000)
        assert counts.ended == {("main", "done", "claude"): 2, ("main", "done", "none"): 1}
        assert (counts.waited.count, counts.waited.sum) == (2, 4.0)
        assert (counts.first_text.count, counts.first_text.sum) == (1, 0.5)
        assert counts.lasted.sum == 12.0
        assert (counts.tokens_in["claude"], counts.tokens_out["claude"]) == (11, 22)
        assert counts.cost == {"claude": pytest.approx(0.5)}

    def test_a_clock_that_went_back_counts_as_nothing(self) -> None:
        counts = TurnCounts()
        turn = Turn(1, "local:main", "local:owner", Origin.PERSON, Kind.MAIN, 9000)
        counts.over(turn, Ran("demo", 5000, 4000, None), 1000)
        assert counts.lasted.sum == counts.waited.sum == counts.first_text.sum == 0.0
