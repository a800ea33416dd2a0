"""Events that are no messages: an assistant thread begins, the app is taken away.

It must not know what is asked in a thread.
"""

from __future__ import annotations

import logging

from channels.slack.fields import Json, Malformed, as_object, maybe, needed, obj, string
from channels.slack.small import SmallTasks
from channels.slack.web import Web
from core.channel import SendError

log = logging.getLogger(__name__)

PROMPTS = (
    ("What can you do?", "What can you do?"),
    ("What can I say here?", "!help"),
    ("What is going on?", "!status"),
)
REMOVED = (
    "the app was removed from the workspace or its token revoked;"
    " install it again (api.slack.com/apps, Install App) and set the new LANEWAY_SLACK_BOT_TOKEN"
)


class Assistant:
    def __init__(self, web: Web, small: SmallTasks) -> None:
        self._web = web
        self._small = small

    def told(self, body: object) -> str:
        """Look at a payload; the answer says why the app is gone, and is empty otherwise."""
        try:
            event = maybe(as_object(body, "the payload"), "event") or {}
            match string(event, "type"):
                case "assistant_thread_started":
                    self._begin(event)
                case "app_uninstalled":
                    return REMOVED
                case "tokens_revoked" if (maybe(event, "tokens") or {}).get("bot"):
                    return REMOVED
        except Malformed as error:
            log.debug("slack: an event cannot be read: %s", error)
        return ""

    def _begin(self, event: Json) -> None:
        thread = obj(event, "assistant_thread")
        channel, ts = needed(thread, "channel_id"), needed(thread, "thread_ts")
        self._small.start(self._suggest(channel, ts), "slack suggested prompts")

    async def _suggest(self, channel: str, ts: str) -> None:
        prompts = [{"title": title, "message": message} for title, message in PROMPTS]
        try:
            await self._web.call(
                "assistant.threads.setSuggestedPrompts",
                channel_id=channel,
                thread_ts=ts,
                prompts=prompts,
            )
        except SendError as error:
            log.debug("slack: no prompts are suggested: %s", error)
