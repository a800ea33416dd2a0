"""What kind of failure is read out of words and refusals, and what is not."""

from __future__ import annotations

import pytest

from core.engines.base import Failure, FailureKind
from core.engines.failures import of_words
from core.engines.openai_http_words import Refused, failure

NOW = 1_798_000_000_000
BUSY, LIMIT, BROKEN = FailureKind.BUSY, FailureKind.LIMIT, FailureKind.BROKEN


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("overloaded_error: Overloaded", Failure(BUSY)),
        ("API error: status 529", Failure(BUSY)),
        ("HTTP 503 from upstream", Failure(BUSY)),
        ("rate limit exceeded, retry after 20 s", Failure(BUSY, wait=20.0)),
        ("Too many requests; try again in 2m", Failure(BUSY, wait=120.0)),
        ("retry-after: 1500 ms; too many requests", Failure(BUSY, wait=1.5)),
        ("You have hit your limit", Failure(LIMIT)),
        ("usage limit reached|1798003600", Failure(LIMIT, until=1_798_003_600_000)),
        ("5-hour limit reached, resets 1798003600", Failure(LIMIT, until=1_798_003_600_000)),
        ("insufficient_quota, try again in 1h", Failure(LIMIT, until=NOW + 3_600_000)),
        ("request failed with status code 401", Failure(BROKEN)),
        ("Session not found: abc", Failure(FailureKind.SESSION)),
        ("unknown session abc", Failure(FailureKind.SESSION)),
        ("tool_use ids were found without tool_result blocks", Failure(FailureKind.SESSION)),
        ("file 503.txt was not found", None),
        ("line 429 of the program is wrong", None),
        ("Internal error", None),
        ("", None),
    ],
)
def test_words_of_an_agent_tell_only_what_is_certain(said: str, expected: Failure | None) -> None:
    assert of_words(said, NOW) == expected


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (Refused(503, "loading", wait=3.0), Failure(BUSY, wait=3.0, tried=True)),
        (Refused(429, "slow down", wait=20.0), Failure(BUSY, wait=20.0, tried=True)),
        (Refused(429, "used up", wait=3600.0), Failure(LIMIT, until=NOW + 3_600_000)),
        (Refused(401, "bad key"), Failure(BROKEN)),
        (Refused(429, "x", "insufficient_quota"), Failure(BROKEN)),
        (Refused(404, "no such model"), Failure(FailureKind.REQUEST)),
        (Refused(400, "tool_use without tool_result"), Failure(FailureKind.SESSION)),
        (Refused(400, "image data is broken: invalid image"), None),
    ],
)
def test_a_servers_refusal_tells_what_comes_next(refusal: Refused, expected: Failure) -> None:
    assert failure(refusal, NOW, going_on=True) == expected


def test_a_conversation_that_only_began_is_not_to_blame() -> None:
    assert failure(Refused(400, "I do not like it"), NOW, going_on=False) is None
