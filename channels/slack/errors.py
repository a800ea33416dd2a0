"""What Slack or the library says becomes the channel port's errors.

The one question that matters: was the call certainly not carried out? It must not decide what
happens next, and no text that leaves here may hold a token.
"""

from __future__ import annotations

import aiohttp
from slack_sdk.errors import SlackApiError, SlackRequestError

from channels.slack.fields import Json
from core.channel import (
    Forbidden,
    FormatRefused,
    MessageGone,
    NotSent,
    RateLimited,
    Refused,
    SendError,
    ThreadGone,
    Uncertain,
)

# What a call may raise beside the library's own errors: an answer of an unexpected shape.
ODD_ANSWER = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
LIBRARY = (SlackApiError, SlackRequestError, aiohttp.ClientError, TimeoutError, OSError)

_NEVER_LEFT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_TOKEN = {
    "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired",
    "not_allowed_token_type", "org_login_required", "user_removed_from_team",
}  # fmt: skip
_MESSAGE_GONE = {
    "message_not_found", "bad_timestamp", "cant_delete_message",
    "compliance_exports_prevent_deletion",
}  # fmt: skip
_THREAD_GONE = {
    "thread_not_found", "cannot_reply_to_message", "invalid_thread_ts",
    "restricted_action_thread_locked", "is_archived", "channel_is_archived",
}  # fmt: skip
_FORMAT = {
    "invalid_blocks", "invalid_blocks_format", "msg_too_long", "msg_blocks_too_long",
    "invalid_block", "markdown_text_conflict", "block_mismatch", "too_many_attachments",
}  # fmt: skip
_NO_RIGHT = {
    "channel_not_found", "not_in_channel", "restricted_action", "missing_scope", "access_denied",
    "no_permission", "restricted_action_read_only_channel", "messages_tab_disabled",
    "restricted_action_non_threadable_channel", "restricted_action_thread_only_channel",
    "user_not_in_channel", "user_is_restricted", "cannot_dm_bot", "team_access_not_granted",
    "method_not_supported_for_channel_type", "channel_type_not_supported",
}  # fmt: skip
_BROKEN = {"internal_error", "fatal_error", "service_unavailable", "request_timeout"}
_RETRY = 5.0  # seconds, where a refusal does not say how long
_SHOWN = 300


class TokenRefused(NotSent):
    """A token is not valid any more. Nothing was done, and what is to be said waits for a new
    one: the channels themselves may be as open as ever.
    """

    def __init__(self, said: str, app: bool = False) -> None:
        which = "app-level token" if app else "bot token"
        where = (
            "Basic Information, App-Level Tokens, scope connections:write; LANEWAY_SLACK_APP_TOKEN"
            if app
            else "OAuth & Permissions, Install to Workspace; LANEWAY_SLACK_BOT_TOKEN"
        )
        super().__init__(
            f"Slack refuses the {which} ({said}); save a new one ({where}) on the settings page,"
            " or set it and restart"
        )


class SocketModeOff(NotSent):
    """The app does not take connections."""

    def __init__(self, said: str) -> None:
        super().__init__(
            f"Socket Mode is off for this app ({said}); turn it on at api.slack.com/apps,"
            " Socket Mode, and restart"
        )


def translate(caught: BaseException, method: str) -> SendError:
    """The port's error for what a call raised."""
    app = method == "apps.connections.open"
    if isinstance(caught, SlackApiError):
        return _answered(caught, method, app)
    if isinstance(caught, _NEVER_LEFT):
        return NotSent(f"Slack cannot be reached ({_reason(caught)})")
    if isinstance(caught, TimeoutError):
        return Uncertain(f"Slack did not answer {method} in time")
    if isinstance(caught, aiohttp.ClientError | OSError):
        return Uncertain(f"the connection to Slack broke in {method} ({_reason(caught)})")
    return Uncertain(f"Slack's answer to {method} has an odd shape ({type(caught).__name__})")


def refusal(error: str, app: bool = False, detail: str = "") -> SendError:
    """The port's error for one of Slack's error codes."""
    said = f"{error}: {detail}"[:_SHOWN] if detail else error[:_SHOWN]
    if app and error in ("socket_mode_disabled", "app_not_found", "socket_mode_not_enabled"):
        return SocketModeOff(said)
    if error in _TOKEN or (app and error == "missing_scope"):
        return TokenRefused(said, app)
    for codes, kind in (
        (_MESSAGE_GONE, MessageGone),
        (_THREAD_GONE, ThreadGone),
        (_FORMAT, FormatRefused),
        (_NO_RIGHT, Forbidden),
        (_BROKEN, Uncertain),
    ):
        if error in codes:
            return kind(_explained(said))
    return Refused(f"Slack opens no connection ({said}); is Socket Mode on?" if app else said)


def _answered(caught: SlackApiError, method: str, app: bool) -> SendError:
    response = caught.response
    status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0) or 0)
    found = getattr(response, "data", None)
    data: Json = found if isinstance(found, dict) else {}
    error = data.get("error")
    if status == 429 or error in ("ratelimited", "rate_limited"):
        headers = getattr(response, "headers", {}) or {}
        return RateLimited(_seconds(headers.get("Retry-After")))
    if status >= 500 or not isinstance(error, str):
        return Uncertain(f"Slack did not answer {method} well (HTTP {status})")
    detail = str(data["needed"]) if error == "missing_scope" and "needed" in data else ""
    return refusal(error, app, detail)


def _seconds(value: object) -> float:
    try:
        return max(1.0, float(str(value)))
    except ValueError:
        return _RETRY


def _explained(said: str) -> str:
    match said.partition(":")[0]:
        case "not_in_channel" | "channel_not_found":
            return f"{said}; invite the app to the channel (/invite @name)"
        case "missing_scope":
            return f"{said}; add the scope under OAuth & Permissions and install the app again"
        case _:
            return said


def _reason(caught: BaseException) -> str:
    """The kind of fault alone: an address in it could hold a ticket."""
    inner = getattr(caught, "os_error", None)
    return getattr(inner, "strerror", None) or type(caught).__name__
