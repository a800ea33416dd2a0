"""Keeping to Discord's limits, as far as its answers tell them."""

from __future__ import annotations

import pytest

from channels.discord.buckets import INVALID_MOST, KEPT, Buckets
from core.channel import RateLimited

ROUTE = "POST /channels/{channel_id}/messages"


def headers(left: int, after: float, name: str = "b1") -> dict[str, str]:
    return {
        "X-RateLimit-Bucket": name,
        "X-RateLimit-Remaining": str(left),
        "X-RateLimit-Reset-After": str(after),
    }


def wait(buckets: Buckets, now: float, route: str = ROUTE, major: str = "7") -> float:
    """Seconds until a call may leave; 0 when it left."""
    try:
        buckets.take(route, major, now)
    except RateLimited as limited:
        return limited.retry_after
    return 0.0


def test_what_is_left_is_counted_down_until_its_time() -> None:
    buckets = Buckets()
    buckets.learn(ROUTE, "7", headers(2, 5.0), 100.0)
    assert [wait(buckets, 101.0) for _ in range(3)] == [0, 0, 4.0]
    assert wait(buckets, 105.0) == 0


def test_answers_that_overtake_each_other_give_nothing_back() -> None:
    buckets = Buckets()
    buckets.learn(ROUTE, "7", headers(1, 5.0), 100.0)
    buckets.learn(ROUTE, "7", headers(3, 4.9), 100.1)
    assert [wait(buckets, 101.0) for _ in range(2)] == [0, pytest.approx(4.0)]


def test_channels_count_apart_and_routes_of_one_bucket_together() -> None:
    buckets = Buckets()
    other = "PATCH /channels/{channel_id}/messages/{message_id}"
    buckets.learn(other, "7", headers(9, 5.0, "shared"), 100.0)
    buckets.learn(ROUTE, "7", headers(0, 5.0, "shared"), 100.0)
    assert wait(buckets, 101.0) == 4.0
    assert wait(buckets, 101.0, other) == 4.0
    assert wait(buckets, 101.0, major="8") == 0


def test_a_refusal_is_kept_though_the_bucket_was_not_known() -> None:
    buckets = Buckets()
    buckets.penalty(ROUTE, "7", RateLimited(7.0), 100.0)
    buckets.learn(ROUTE, "8", headers(4, 5.0), 100.0)
    assert wait(buckets, 103.0) == 4.0
    assert wait(buckets, 107.0) == 0


def test_a_penalty_of_everything_leaves_presses_alone() -> None:
    buckets = Buckets()
    buckets.penalty(ROUTE, "7", RateLimited(3.0, everywhere=True), 100.0)
    with pytest.raises(RateLimited) as limited:
        buckets.take("GET /users/@me", "", 101.0)
    assert limited.value.everywhere
    buckets.take("POST /interactions/x", "", 101.0, apart=True)


def test_too_many_refusals_stop_everything_before_the_address_is_banned() -> None:
    buckets = Buckets()
    for _ in range(INVALID_MOST):
        buckets.refused(403, 100.0)
        buckets.refused(404, 100.0)
    with pytest.raises(RateLimited) as limited:
        buckets.take(ROUTE, "7", 200.0)
    assert limited.value.everywhere
    buckets.take(ROUTE, "7", 701.0)


@pytest.mark.parametrize("odd", ["", "x", "nan", "-1", "1e99"])
def test_headers_that_make_no_sense_are_no_limit(odd: str) -> None:
    buckets = Buckets()
    buckets.learn(ROUTE, "7", headers(0, 5.0) | {"X-RateLimit-Reset-After": odd}, 100.0)
    assert wait(buckets, 100.0) == 0


def test_what_is_over_is_not_kept_for_ever() -> None:
    buckets = Buckets()
    for channel in range(KEPT * 3):
        buckets.learn(ROUTE, str(channel), headers(0, 1.0), float(channel * 2))
    assert len(buckets._buckets) <= KEPT
