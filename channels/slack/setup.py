"""What ``laneway doctor`` finds out about the app at Slack: tokens, scopes, Socket Mode.

It sends nothing to anybody and opens no connection that events could go to.
"""

from __future__ import annotations

from channels.slack.errors import SocketModeOff, TokenRefused
from channels.slack.fields import string
from channels.slack.web import Web
from core.channel import SendError
from core.clock import SystemClock

Finding = tuple[str, bool, str, str]  # name, whether it is fine, what was seen, what to do

ANSWER_WITHIN = 15.0
# Without these something people rely on does not work, and what that is.
NEEDED = {
    "app_mentions:read": "mentions in channels",
    "channels:history": "threads in public channels",
    "chat:write": "answers",
    "im:history": "direct messages",
}
USEFUL = {
    "assistant:write": "the working sign and titles of assistant threads",
    "commands": "/laneway",
    "files:read": "files that people send",
    "files:write": "files from the agent",
    "groups:history": "threads in private channels",
    "im:read": "first direct messages that were missed",
    "mpim:history": "group direct messages",
    "reactions:write": "reactions as receipts",
    "users:read": "people's names",
}
_PAGE = "api.slack.com/apps, the app"
_AGAIN = f"{_PAGE}, OAuth & Permissions, Bot Token Scopes: add them, then Reinstall to Workspace"


async def check(
    bot_token: str, app_token: str, api_base: str, posted: bool = False
) -> list[Finding]:
    """The findings: bot token, its scopes, the app-level token with Socket Mode.

    ``posted``: in webhook mode, which has neither of the last two.
    """
    web = Web(bot_token, app_token, api_base, ANSWER_WITHIN, SystemClock())
    try:
        found = [*_shapes(bot_token, None if posted else app_token), *await _bot(web)]
        return found if posted else [*found, *await _app(web)]
    finally:
        await web.close()


def _shapes(bot_token: str, app_token: str | None) -> list[Finding]:
    """Swapped or wrong kinds of tokens, told apart by how they begin."""
    found: list[Finding] = []
    if not bot_token.startswith("xoxb-"):
        fix = f"set LANEWAY_SLACK_BOT_TOKEN to the Bot User OAuth Token ({_PAGE}, Install App)"
        found.append(("slack bot token", False, "does not begin with xoxb-", fix))
    if app_token is not None and not app_token.startswith("xapp-"):
        fix = f"set LANEWAY_SLACK_APP_TOKEN to an App-Level Token ({_PAGE}, Basic Information)"
        found.append(("slack app token", False, "does not begin with xapp-", fix))
    return found


async def _bot(web: Web) -> list[Finding]:
    try:
        me, facts, scopes = await web.me(SystemClock().now())
    except TokenRefused as error:
        return [("slack bot token", False, str(error), _token_fix("BOT"))]
    except SendError as error:
        fix = "check the network and LANEWAY_SLACK_API_BASE, then run the check again"
        return [("slack bot token", False, str(error), fix)]
    where = string(facts, "team") or me.team
    found: list[Finding] = [
        ("slack bot token", True, f"@{string(facts, 'user')} ({me.user}) in {where}", "")
    ]
    return found + _scopes(scopes)


def _scopes(told: str) -> list[Finding]:
    given = {scope.strip() for scope in told.split(",") if scope.strip()}
    if not given:
        return [("slack scopes", True, "Slack does not say which the token has", "")]
    found: list[Finding] = []
    for wanted, fine in ((NEEDED, False), (USEFUL, True)):
        if missing := {scope: use for scope, use in wanted.items() if scope not in given}:
            seen = ", ".join(f"{scope} ({use})" for scope, use in missing.items())
            found.append(("slack scopes", fine, f"missing: {seen}", _AGAIN))
    return found or [("slack scopes", True, "all that are used", "")]


async def _app(web: Web) -> list[Finding]:
    try:
        await web.socket_url()  # an address that nobody connects to ends by itself
    except SocketModeOff as error:
        fix = f"{_PAGE}, Socket Mode: Enable Socket Mode"
        return [("slack socket mode", False, str(error), fix)]
    except TokenRefused as error:
        return [("slack app token", False, str(error), _token_fix("APP"))]
    except SendError as error:
        if "missing_scope" in str(error):
            return [("slack app token", False, "lacks connections:write", _token_fix("APP"))]
        return [("slack socket mode", False, str(error), "run the check again")]
    return [("slack socket mode", True, "on", "")]


def _token_fix(which: str) -> str:
    if which == "APP":
        return (
            f"{_PAGE}, Basic Information, App-Level Tokens: Generate Token with the scope"
            " connections:write; set LANEWAY_SLACK_APP_TOKEN (xapp-…)"
        )
    return (
        f"{_PAGE}, Install App: Install to Workspace; copy the Bot User OAuth Token (xoxb-…)"
        " to LANEWAY_SLACK_BOT_TOKEN"
    )
