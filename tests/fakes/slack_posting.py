"""How the fake Slack posts to a request URL: signed, as JSON or as a form, with a time limit."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from typing import Protocol
from urllib.parse import urlencode

import aiohttp

from tests.fakes.slack_rules import Json


class Poster(Protocol):
    """What of the server is needed to post."""

    request_url: str
    signing_secret: str
    ack_within: float


class Delivery(Protocol):
    type: str
    payload: Json
    attempt: int
    statuses: list[int]


def encoded(kind: str, payload: Json) -> tuple[str, bytes]:
    """The content type and body of a payload."""
    match kind:
        case "events_api":
            return "application/json", json.dumps(payload).encode()
        case "slash_commands":
            return "application/x-www-form-urlencoded", urlencode(payload).encode()
        case _:
            form = {"payload": json.dumps(payload)}
            return "application/x-www-form-urlencoded", urlencode(form).encode()


def signed(secret: str, body: bytes, at: float | None = None) -> dict[str, str]:
    """The headers that prove who posts."""
    stamp = str(int(time.time() if at is None else at))
    told = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={told}"}


async def signed_post(poster: Poster, delivery: Delivery) -> None:
    """Post once; how it was answered is noted."""
    kind, body = encoded(delivery.type, delivery.payload)
    headers = {"Content-Type": kind, **signed(poster.signing_secret, body)}
    if delivery.attempt:
        headers |= {
            "X-Slack-Retry-Num": str(delivery.attempt),
            "X-Slack-Retry-Reason": "http_error",
        }
    times = aiohttp.ClientTimeout(total=poster.ack_within)
    try:
        async with (
            aiohttp.ClientSession(timeout=times) as session,
            session.post(poster.request_url, data=body, headers=headers) as answer,
        ):
            await answer.read()
            delivery.statuses.append(answer.status)
    except (aiohttp.ClientError, TimeoutError):
        delivery.statuses.append(0)


async def challenge(poster: Poster) -> tuple[int, str]:
    """Slack asks whether the address is ours: status and answer."""
    body = json.dumps({"token": "x", "challenge": "3eZbrw1aB", "type": "url_verification"}).encode()
    headers = {"Content-Type": "application/json", **signed(poster.signing_secret, body)}
    async with (
        aiohttp.ClientSession() as session,
        session.post(poster.request_url, data=body, headers=headers) as answer,
    ):
        return answer.status, await answer.text()
