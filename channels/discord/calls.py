"""Our actions as calls of Discord, each made once.

It must not queue, pace or repeat anything: order and rate are the outbox's, retries too.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from discord.http import Route

from channels.discord.errors import UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, ApiError, translate
from channels.discord.places import POSTS
from channels.discord.presses import Presses
from channels.discord.recall import Recalling
from channels.discord.rest import Rest
from channels.discord.sent import Sent, nonce_of
from channels.discord.signs import Signs
from channels.discord.threads import ARCHIVE_AFTER, Target, Threads
from channels.fields import string
from channels.markup.styled import shows
from core.channel import (
    Action,
    AnswerPress,
    Delete,
    Done,
    FileTooBig,
    Find,
    MessageGone,
    OpenThread,
    React,
    Recall,
    Refused,
    Retitle,
    Revise,
    Send,
    SendFile,
    Stream,
    Typing,
    Uncertain,
)
from core.messages import Address, Keyboard, Part, Style, clean

TEXT_MOST, LABEL_MOST, ROW_MOST, ROWS_MOST, TITLE_MOST = 2000, 80, 5, 5, 100
SUPPRESS_EMBEDS = 1 << 2
PUBLIC_THREAD = 11
_STYLES = {Style.PRIMARY: 1, Style.PLAIN: 2, Style.SUCCESS: 3, Style.DANGER: 4}
_QUIET: dict[str, list[str]] = {"parse": []}

Call = Callable[[Target], Awaitable[Any]]


class Calls:
    """Carries out actions through the library's calls."""

    def __init__(
        self,
        rest: Rest,
        threads: Threads,
        presses: Presses,
        sent: Sent,
        signs: Signs,
        recalling: Recalling,
        most: int,
    ) -> None:
        self._rest = rest
        self._threads = threads
        self._presses = presses
        self._sent = sent
        self._signs = signs
        self._recalling = recalling
        self._file_most = most

    async def do(self, action: Action) -> Done:
        """One action, once. Raises SendError."""
        match action:
            case Send():
                return await self._send(action)
            case SendFile():
                return await self._send_file(action)
            case Revise():
                return await self._revise(action)
            case Delete():
                return await self._delete(action)
            case Typing():
                await self._into(action.address, self._signs.typing)
                return Done()
            case React():
                await self._signs.react(action)
                return Done()
            case Retitle():
                return await self._retitle(action)
            case AnswerPress():
                await self._presses.answer(
                    action.press, *(part.text for part in action.parts), action.text
                )
                return Done()
            case OpenThread():
                return await self._open_thread(action)
            case Find():
                return Done(await self._sent.find(action))
            case Recall():
                return Done(said=await self._recalling.before(action))
            case Stream():
                raise Refused("on Discord a growing text is shown by edits")

    async def _into(self, address: Address, call: Call, name: str = "") -> Any:
        """One call into a lane's place, which may have to be opened first."""
        target = await self._threads.target(address, name)
        try:
            return await call(target)
        except ApiError as error:
            if not address.thread or not await self._threads.mended(address, error):
                raise translate(error, bool(address.thread)) from None
        try:
            return await call(await self._threads.target(address))
        except ApiError as error:
            raise translate(error, True) from None

    async def _send(self, action: Send) -> Done:
        nonce = nonce_of(action.nonce)
        payload = _shown(action.part) | {"nonce": nonce, "enforce_nonce": True}
        if action.keyboard:
            payload["components"] = _components(action.keyboard)
        text = payload["content"]

        async def call(target: Target) -> Any:
            route = _messages(target.channel)
            reply = target.reply_to or _inside(action.address, action.reply_to)
            body = _without_nonce(payload | _reply(reply))
            self._sent.sending(target.channel, nonce, text)
            return await self._rest.request(route, json=body)

        return self._made(await self._posted(action.address, call), nonce)

    async def _send_file(self, action: SendFile) -> Done:
        nonce = nonce_of(action.nonce)
        try:
            if action.path.stat().st_size > self._file_most:
                raise FileTooBig(action.name, self._file_most)

            async def call(target: Target) -> Any:
                payload: dict[str, Any] = {"allowed_mentions": _QUIET}
                if action.caption is not None and action.caption.text.strip():
                    payload = _shown(action.caption)
                payload |= _reply(target.reply_to) | {"nonce": nonce, "enforce_nonce": True}
                with action.path.open("rb") as opened:
                    form: list[dict[str, Any]] = [
                        {"name": "payload_json", "value": json.dumps(_without_nonce(payload))},
                        {
                            "name": "files[0]",
                            "value": opened,
                            "filename": action.name,
                            "content_type": "application/octet-stream",
                        },
                    ]
                    self._sent.sending(target.channel, nonce, payload.get("content", ""))
                    return await self._rest.request(_messages(target.channel), form=form)

            return self._made(await self._posted(action.address, call), nonce)
        except OSError as caught:
            raise Refused(f"{action.name} cannot be read: {caught.strerror}") from None

    async def _posted(self, address: Address, call: Call) -> Any:
        try:
            return await self._into(address, call)
        except MessageGone:
            # The same nonce made a message before, and somebody deleted it: it was sent.
            return {"id": ""}

    def _made(self, answer: Any, nonce: str) -> Done:
        if not isinstance(answer, dict) or not isinstance(answer.get("id"), str):
            raise Uncertain("Discord's answer names no message")
        self._sent.arrived(nonce, answer["id"])
        return Done(answer["id"])

    async def _revise(self, action: Revise) -> Done:
        number = _number(action.message_id)
        payload = _shown(action.part) | {"components": _components(action.keyboard)}

        async def call(target: Target) -> Any:
            route = _message(target.channel, number)
            return await self._rest.request(route, json=payload)

        await self._into(action.address, call)
        return Done(action.message_id)

    async def _delete(self, action: Delete) -> Done:
        number = _number(action.message_id)

        async def call(target: Target) -> Any:
            return await self._rest.delete_message(target.channel, number)

        if not self._threads.is_there(action.address) and not self._stuck(action.address):
            return Done()  # a thread that was never opened holds nothing
        try:
            await call(self._threads.target_now(action.address))
        except ApiError as error:
            if error.code not in (UNKNOWN_MESSAGE, UNKNOWN_CHANNEL):
                raise translate(error, bool(action.address.thread)) from None
        return Done()

    def _stuck(self, address: Address) -> bool:
        return bool(self._threads.target_now(address).reply_to)

    async def _retitle(self, action: Retitle) -> Done:
        title = " ".join(clean(action.title).split())[:TITLE_MOST]
        if not title or not action.address.thread:
            raise Refused("only a thread can be named here")
        opened = self._threads.is_there(action.address)

        async def call(target: Target) -> Any:
            if target.reply_to:
                raise Refused("there is no thread to name: the bot may not open one here")
            if opened:
                await self._signs.rename(target.channel, title)

        await self._into(action.address, call, title)
        return Done()

    async def _open_thread(self, action: OpenThread) -> Done:
        title = " ".join(clean(action.title).split())[:TITLE_MOST]
        if not title:
            raise Refused("a thread needs a name")
        payload: dict[str, Any] = {"name": title, "auto_archive_duration": ARCHIVE_AFTER}
        parent = self._threads.kind(action.address.chat)
        if parent in POSTS:
            payload["message"] = {"content": title, "allowed_mentions": _QUIET}
        else:
            payload["type"] = PUBLIC_THREAD
        route = Route("POST", "/channels/{channel_id}/threads", channel_id=action.address.chat)
        try:
            made = await self._rest.request(route, json=payload)
        except ApiError as error:
            raise translate(error) from None
        if not isinstance(made, dict) or not string(made, "id"):
            raise Uncertain("Discord's answer names no thread")
        return Done(string(made, "id"))


def _messages(channel: str) -> Route:
    return Route("POST", "/channels/{channel_id}/messages", channel_id=channel)


def _message(channel: str, number: str) -> Route:
    path = "/channels/{channel_id}/messages/{message_id}"
    return Route("PATCH", path, channel_id=channel, message_id=number)


def _number(message_id: str) -> str:
    if not message_id.isdecimal():
        raise MessageGone(f"{message_id or 'an empty id'} is no Discord message id")
    return message_id


def _without_nonce(payload: dict[str, Any]) -> dict[str, Any]:
    if payload["nonce"]:
        return payload
    return {key: value for key, value in payload.items() if key not in ("nonce", "enforce_nonce")}


def _inside(address: Address, reply_to: str) -> str:
    """A message can be answered in its own channel alone: what began a thread stands outside."""
    return reply_to if reply_to.isdecimal() and reply_to != address.thread else ""


def _reply(message_id: str) -> dict[str, Any]:
    if not message_id:
        return {}
    return {"message_reference": {"message_id": message_id, "fail_if_not_exists": False}}


def _shown(part: Part) -> dict[str, Any]:
    """A part as a message that pings nobody; one that would show nothing becomes a sign."""
    text = clean(part.text)
    if not shows(text):
        text = "…"
    if len(text) > TEXT_MOST:
        text = text[: TEXT_MOST - 1] + "…"
    return {"content": text, "allowed_mentions": _QUIET, "flags": SUPPRESS_EMBEDS}


def _components(keyboard: Keyboard) -> list[dict[str, Any]]:
    """Buttons in rows of at most five, at most 25."""
    rows: list[list[dict[str, Any]]] = []
    for row in keyboard:
        for start in range(0, len(row), ROW_MOST):
            rows.append(
                [
                    {
                        "type": 2,
                        "style": _STYLES[button.style],
                        "label": (clean(button.label).strip() or "…")[:LABEL_MOST],
                        "custom_id": button.id,
                    }
                    for button in row[start : start + ROW_MOST]
                ]
            )
    return [{"type": 1, "components": row} for row in rows[:ROWS_MOST] if row]
