"""What is set up at Telegram beside messages: the commands menu, and checks of token and rights.

It must not know what the commands do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from channels.telegram.fields import Json, Malformed, as_object, integer, string
from channels.telegram.wire import Wire, trust_of
from core.channel import Refused, SendError

SCOPES = ("default", "all_private_chats", "all_group_chats")
_NAME = re.compile(r"[a-z0-9_]{1,32}")
Finding = tuple[str, bool, str, str]  # name, whether it is fine, what was seen, what to do


async def set_menu(wire: Wire, commands: Sequence[tuple[str, str]]) -> bool:
    """Offer the commands in every kind of chat; True when something had to change."""
    wanted = [
        {"command": name, "description": " ".join(text.split())[:256] or name}
        for name, text in commands
        if _NAME.fullmatch(name)
    ][:100]
    changed = False
    for scope in SCOPES:
        try:
            present = await wire.call("getMyCommands", scope={"type": scope})
        except Refused:  # a server that only takes a menu: it is set each time
            present = None
        if present != wanted:
            await wire.call("setMyCommands", scope={"type": scope}, commands=wanted)
            changed = True
    return changed


def hints(facts: Json) -> list[str]:
    """What getMe shows that people will wonder about later."""
    said: list[str] = []
    if not facts.get("can_read_all_group_messages"):
        said.append(
            "in groups the bot sees only commands, replies and mentions; for all messages:"
            " BotFather, /setprivacy, Disable, then remove the bot from the group and add it again"
        )
    if not facts.get("has_topics_enabled"):
        said.append(
            "direct chats have no topics; for more than one thread there:"
            " BotFather, Bot Settings, Threaded Mode"
        )
    return said


async def check(token: str, base: str, posted_to: str = "") -> list[Finding]:
    """The findings for ``laneway doctor``: token, webhook, what the bot may see.

    ``posted_to``: the address of the webhook mode; empty: polling.
    """
    base = base.rstrip("/")
    wire = Wire(token, base, trust_of(base))
    try:
        return await _findings(wire, posted_to)
    finally:
        await wire.close()


async def _findings(wire: Wire, posted_to: str) -> list[Finding]:
    try:
        me, facts = await wire.me()
    except SendError as error:
        fix = "check LANEWAY_TELEGRAM_TOKEN (BotFather, /token), the API base and the network"
        return [("telegram token", False, str(error), fix)]
    found: list[Finding] = [("telegram token", True, f"@{me.username} ({me.id})", "")]
    found.append(await _updates(wire, posted_to))
    privacy = bool(facts.get("can_read_all_group_messages"))
    seen = "all messages" if privacy else "only commands, replies and mentions"
    fix = "" if privacy else "BotFather, /setprivacy, Disable; then remove and add the bot again"
    found.append(("telegram groups", True, f"the bot sees {seen}", fix))
    topics = bool(facts.get("has_topics_enabled"))
    fix = "" if topics else "BotFather, Bot Settings, Threaded Mode"
    found.append(("telegram topics in direct chats", True, "on" if topics else "off", fix))
    return found


async def _updates(wire: Wire, posted_to: str) -> Finding:
    """How updates come, and whether that is how the settings want it."""
    name = "telegram updates"
    try:
        webhook = as_object(await wire.call("getWebhookInfo"), "getWebhookInfo")
        url, waiting = string(webhook, "url"), integer(webhook, "pending_update_count")
        failed = string(webhook, "last_error_message")
    except Refused as error:  # a server of one's own need not know webhooks
        return (name, not posted_to, str(error), "ask a newer Bot API server" if posted_to else "")
    except (SendError, Malformed) as error:
        return (name, False, str(error), "run the check again")
    if not posted_to:
        detail = f"a webhook is set: {url}" if url else f"polling, {waiting} updates wait"
        fix = "the gateway removes it when it polls; stop what set it" if url else ""
        return (name, not url, detail, fix)
    if url != posted_to:
        seen = f"posted to {url}" if url else "not posted anywhere yet"
        return (name, not url, seen, f"a start of the gateway sets {posted_to}")
    detail = f"posted to {url}, {waiting} wait"
    if waiting and failed:
        fix = f"see that {url} leads to the gateway from outside, with https"
        return (name, False, f"{detail}; the last one failed: {failed}", fix)
    return (name, True, detail, "")


class Menu:
    """The menu that is wanted, set as soon as Telegram can be reached."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._wanted: tuple[tuple[str, str], ...] | None = None
        self._setting = asyncio.Lock()  # it is wanted and Telegram comes up at the same moment

    def want(self, commands: Sequence[tuple[str, str]]) -> None:
        """Remember what is to be offered."""
        self._wanted = tuple(commands)

    async def apply(self) -> str:
        """Set it if it is not set yet; empty, or why it could not be."""
        async with self._setting:
            if (wanted := self._wanted) is None:
                return ""
            try:
                await set_menu(self._wire, wanted)
            except SendError as error:
                return str(error)
            if self._wanted is wanted:
                self._wanted = None
            return ""
