"""Our actions as calls of the Web API, each made once.

It must not queue, pace or repeat anything: order and rate are the outbox's, retries too.
"""

from __future__ import annotations

import json
from collections import OrderedDict

from channels.slack.blocks import TEXT_MOST, caption, comment, content, cut
from channels.slack.errors import LIBRARY, translate
from channels.slack.fields import (
    Json,
    Malformed,
    maybe,
    milliseconds,
    needed,
    objects,
    stamp_of,
    string,
)
from channels.slack.files import shared_as, upload
from channels.slack.recall import Recalling
from channels.slack.status import Status
from channels.slack.streams import CONFLICT, Streams, Where
from channels.slack.web import Web
from core.channel import (
    Action,
    AnswerPress,
    Delete,
    Done,
    Find,
    FormatRefused,
    MessageGone,
    NotSent,
    OpenThread,
    React,
    Recall,
    Refused,
    Retitle,
    Revise,
    Send,
    SendError,
    SendFile,
    Stream,
    Typing,
    Uncertain,
)
from core.clock import Clock
from core.messages import Address, Part, Receipt, clean

RECEIPTS = {
    Receipt.RECEIVED: "eyes",
    Receipt.WAITING: "hourglass_flowing_sand",
    Receipt.FAILED: "warning",
    Receipt.NONE: "",
}
FILE_MARK = "laneway."
EVENT_TYPE = "laneway_message"  # of the metadata that tells our messages apart
TITLE_MOST = 250
FIND_PAGE, FIND_PAGES = 200, 5
FIND_SLACK = 60_000  # ms: the platform's clock may be behind ours
REACTED_KEPT, UPLOADS_KEPT = 2000, 500
SHARED_PAUSES = (0.3, 0.7)  # seconds after which Slack is asked which message shows a file
STREAMS_END = 360_000  # ms after which no stream of that time can be growing
_UNTOLD = "it cannot be told which of the app's messages this was"
_NO_TITLES = "only a thread with the app in its direct messages can be named here"


class Calls:
    """Carries out actions over the web client."""

    def __init__(
        self, web: Web, status: Status, clock: Clock, recalling: Recalling, where: Where
    ) -> None:
        self._web = web
        self._recalling = recalling
        self.streams = Streams(web.call, _metadata, lambda: web.team, clock, where)
        self._status = status
        self._clock = clock
        self._reacted: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._uploads: OrderedDict[str, str] = OrderedDict()  # nonce: file

    async def do(self, action: Action) -> Done:
        """One action, once. Raises SendError."""
        match action:
            case Send():
                return await self._send(action)
            case SendFile():
                return await self._send_file(action)
            case Revise():
                return await self._revise(action)
            case Stream():
                return await self._stream(action)
            case Delete():
                return await self._delete(action)
            case Typing():
                return await self._status.show(action.address)
            case React():
                return await self._react(action)
            case Retitle():
                return await self._retitle(action)
            case AnswerPress():
                return await self._answer_press(action)
            case OpenThread():
                return await self._post(action.address, content(Part(_title(action.title))))
            case Find():
                return await self._find(action)
            case Recall():
                return Done(said=await self._recalling.before(action))

    async def _send(self, action: Send) -> Done:
        await self._status.settle(action.address)
        done = await self._post(
            action.address, content(action.part, action.keyboard), nonce=action.nonce
        )
        self._status.written(action.address, _is_frame(action.part))
        return done

    async def _post(self, address: Address, shown: dict[str, object], nonce: str = "") -> Done:
        if not shown["blocks"]:
            shown = {"text": shown["text"]}
        sent = await self._web.call(
            "chat.postMessage",
            channel=address.chat,
            thread_ts=address.thread or None,
            metadata=_metadata(nonce) if nonce else None,
            unfurl_links=False,
            unfurl_media=False,
            **shown,
        )
        try:
            return Done(needed(sent, "ts"))
        except Malformed as caught:
            raise Uncertain(f"chat.postMessage: {caught}") from None

    async def _revise(self, action: Revise) -> Done:
        frame = _is_frame(action.part)
        self._web.pace.edit(frame)
        await self._status.clear(action.address)
        await self.streams.end(action.message_id)
        try:
            await self._update(action)
        except Refused as refused:
            if str(refused) != CONFLICT:
                raise
            await self.streams.stop(action.address.chat, action.message_id, "")
            await self._update(action)
        self._status.written(action.address, frame)
        return Done(action.message_id)

    async def _update(self, action: Revise) -> None:
        await self._web.call(
            "chat.update",
            channel=action.address.chat,
            ts=_message(action.message_id),
            **content(action.part, action.keyboard),
        )

    async def _stream(self, action: Stream) -> Done:
        """As a growing text where that works, else as any other message."""
        address, message_id, streams = action.address, action.message_id, self.streams
        if message_id:
            if await streams.grow(action):
                return Done(message_id, growing=True)
            return await self._revise(Revise(address, message_id, action.part, action.keyboard))
        if streams.takes(action):
            if not action.text.strip() and streams.waits(action):
                return Done()
            if action.text.strip():
                await self._status.settle(address)
                if made := await streams.start(action):
                    self._status.written(address, preview=True)
                    return Done(made, growing=True)
        return await self._send(Send(address, action.part, action.keyboard, nonce=action.nonce))

    async def _delete(self, action: Delete) -> Done:
        try:
            await self.streams.end(action.message_id)
            await self._web.call(
                "chat.delete", channel=action.address.chat, ts=_message(action.message_id)
            )
        except MessageGone:
            return Done()
        self.streams.forget(action.message_id)
        return Done()

    async def _send_file(self, action: SendFile) -> Done:
        await self._status.settle(action.address)
        try:
            ident = await upload(self._web, action.path, action.name)
        except Uncertain as error:  # an upload alone shows nothing to anybody
            raise NotSent(str(error)) from None
        self._uploads[action.nonce] = ident
        if len(self._uploads) > UPLOADS_KEPT:
            self._uploads.popitem(last=False)
        blocks = caption(action.caption, action.name, _mark(action.nonce))
        try:
            await self._share(action, ident, blocks=blocks)
        except FormatRefused:  # nothing was shared
            await self._share(action, ident, initial_comment=comment(action.caption))
        self._status.written(action.address, preview=False)
        return Done(await self._shown_as(ident, action.address.chat))

    async def _share(self, action: SendFile, ident: str, **words: object) -> None:
        await self._web.call(
            "files.completeUploadExternal",
            files=[{"id": ident, "title": action.name}],
            channel_id=action.address.chat,
            thread_ts=action.address.thread or None,
            **words,
        )

    async def _shown_as(self, ident: str, channel: str) -> str:
        """The message of a file that was just shared; Slack may need a moment to know it."""
        for pause in (0.0, *SHARED_PAUSES):
            if pause:
                await self._clock.sleep(pause)
            try:
                if ts := shared_as(await self._web.call("files.info", file=ident), channel):
                    return ts
            except SendError:
                return ""  # it is sent all the same
        return ""

    async def _react(self, action: React) -> Done:
        """At most one of our signs stands at a message: the new one comes, the old ones go."""
        if not action.message_id:  # a slash command is no message
            return Done()
        key = (action.address.chat, action.message_id)
        wanted, before = RECEIPTS.get(action.receipt, ""), self._reacted.get(key)
        if wanted and wanted != before:
            await self._sign("reactions.add", key, wanted)
        old = [before] if before is not None else [] if wanted else [*RECEIPTS.values()]
        for name in old:
            if name and name != wanted:
                await self._sign("reactions.remove", key, name)
        self._reacted[key] = wanted
        if len(self._reacted) > REACTED_KEPT:
            self._reacted.popitem(last=False)
        return Done()

    async def _sign(self, method: str, key: tuple[str, str], name: str) -> None:
        try:
            await self._web.call(method, channel=key[0], timestamp=_message(key[1]), name=name)
        except Refused as refused:
            if str(refused) not in ("already_reacted", "no_reaction"):
                raise

    async def _retitle(self, action: Retitle) -> Done:
        address = action.address
        if not (address.chat.startswith("D") and address.thread):
            raise Refused(_NO_TITLES)
        await self._web.call(
            "assistant.threads.setTitle",
            channel_id=address.chat,
            thread_ts=address.thread,
            title=_title(action.title),
        )
        return Done()

    async def _answer_press(self, action: AnswerPress) -> Done:
        """Seen only by the one who pressed or commanded; nothing to say needs no call."""
        if not (action.text.strip() or action.parts):
            return Done()
        try:
            url, channel, user, thread = map(str, json.loads(action.press))
        except (ValueError, TypeError):
            raise Refused("this press cannot be answered") from None
        text = cut(clean(action.text), TEXT_MOST)
        for part in (*action.parts, *([Part(text)] if text.strip() else [])):
            shown = content(part)
            if not shown["blocks"]:
                shown = {"text": shown["text"]}
            if thread or not url or not await self._respond(url, shown):
                await self._web.call(
                    "chat.postEphemeral",
                    channel=channel,
                    user=user,
                    thread_ts=thread or None,
                    **shown,
                )
        return Done()

    async def _respond(self, url: str, shown: dict[str, object]) -> bool:
        """Answer at the address that came with the press, which knows no threads; False: it takes
        no answer any more.
        """
        said = {"response_type": "ephemeral", "replace_original": False, **shown}
        try:
            async with self._web.session.post(url, json=said) as answer:
                return answer.status == 200
        except LIBRARY as caught:
            raise translate(caught, "the answer to a press") from None

    async def _find(self, action: Find) -> Done:
        """Look for a message by its metadata, or by the file that was uploaded for it."""
        address = action.address
        file = self._uploads.get(action.nonce, "")
        oldest = stamp_of(action.since - FIND_SLACK + min(0, self._web.ahead))
        cursor, doubtful, unnamed = "", False, list[str]()
        for _ in range(FIND_PAGES):
            page = await self._web.call(
                "conversations.replies" if address.thread else "conversations.history",
                channel=address.chat,
                ts=address.thread or None,
                oldest=oldest,
                limit=FIND_PAGE,
                include_all_metadata=True,
                cursor=cursor or None,
            )
            try:
                for message in objects(page, "messages"):
                    if _carries(message, action.nonce, file):
                        return Done(string(message, "ts"))
                    doubtful = doubtful or (not file and _unmarked(message, self._web.user))
                    if action.streamed and self._unnamed(message, address):
                        unnamed.append(string(message, "ts"))
                cursor = string(maybe(page, "response_metadata") or {}, "next_cursor")
            except Malformed as caught:
                self._may_be_told_later(action)
                raise Uncertain(f"Slack's history has an odd shape: {caught}") from None
            if not cursor:
                break
        if len(unnamed) == 1 and not cursor:
            return Done(unnamed[0])
        if cursor or doubtful:
            raise Refused(_UNTOLD)  # nor could it be later: whoever asks need not ask again
        if unnamed:
            self._may_be_told_later(action)
            raise Uncertain("which of the texts that still grow there it is, is not known yet")
        return Done()

    def _may_be_told_later(self, action: Find) -> None:
        """Streams get their mark as they end, and none lives long. Raises Refused after that."""
        if self._clock.now() + self._web.ahead - action.since > STREAMS_END:
            raise Refused(_UNTOLD)

    def _unnamed(self, message: Json, address: Address) -> bool:
        """A message of ours that may be a stream whose start nobody heard of: those bear no mark
        before they end.
        """
        ts = string(message, "ts")
        ours = string(message, "user") == self._web.user and not string(message, "subtype")
        known = ts == address.thread or self.streams.was(ts) or bool(objects(message, "files"))
        marked = string(maybe(message, "metadata") or {}, "event_type") == EVENT_TYPE
        return ours and not known and not marked


def _is_frame(part: Part) -> bool:
    """What is not rendered is a preview's frame, which may be late; answers always are."""
    return not part.markup


def _metadata(nonce: str) -> Json:
    """What tells a message apart from all others of ours."""
    return {"event_type": EVENT_TYPE, "event_payload": {"nonce": nonce or "-"}}


def _mark(nonce: str) -> str:
    """What tells the message of a file apart; metadata it cannot carry."""
    return f"{FILE_MARK}{nonce}"


def _carries(message: Json, nonce: str, file: str) -> bool:
    """Whether a message was made by the send with this nonce."""
    metadata = maybe(message, "metadata") or {}
    sent = maybe(metadata, "event_payload") or {}
    if string(metadata, "event_type") == EVENT_TYPE and sent.get("nonce") == nonce:
        return True
    if any(block.get("block_id") == _mark(nonce) for block in objects(message, "blocks")):
        return True
    return bool(file) and any(one.get("id") == file for one in objects(message, "files"))


def _unmarked(message: Json, us: str) -> bool:
    """A file of ours whose message lost its mark: it may be any of those we sent."""
    marks = (string(block, "block_id") for block in objects(message, "blocks"))
    ours = string(message, "user") == us and bool(objects(message, "files"))
    return ours and not any(mark.startswith(FILE_MARK) for mark in marks)


def _message(message_id: str) -> str:
    try:
        milliseconds(message_id)
    except ValueError:
        raise MessageGone(f"{message_id or 'an empty id'} is no Slack message") from None
    return message_id


def _title(title: str) -> str:
    title = " ".join(clean(title).split())[:TITLE_MOST]
    if not title:
        raise Refused("a thread needs a name")
    return title
