"""Our actions as calls of the Bot API, each made once.

It must not queue, pace or repeat anything: order and rate are the outbox's, retries too.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    MessageEntity,
    ReplyParameters,
    error,
)
from telegram.constants import ChatAction

from channels.markup.styled import shows
from channels.markup.telegram import quiet
from channels.telegram.errors import ODD_ANSWER, translate
from channels.telegram.fields import units
from channels.telegram.updates import DIRECT_TOPIC, GENERAL
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
from core.messages import Address, Keyboard, Part, Receipt, clean

TEXT_MOST, CAPTION_MOST, ANSWER_MOST, TITLE_MOST = 4096, 1024, 200, 128
UPLOAD_ANSWER = 60.0  # seconds: Telegram answers after it has looked into the file
_PHOTO_MOST = 10_000_000
_PHOTOS = (".jpg", ".jpeg", ".png", ".webp")
_NOT_A_PHOTO = ("photo_", "image_process_failed", "photo has too", "type of file", "can't process")

T = TypeVar("T")


class Calls:
    """Carries out actions through the library's Bot."""

    def __init__(self, bot: Bot, receipts: dict[Receipt, str], file_most: int) -> None:
        self._bot = bot
        self._receipts = receipts
        self._file_most = file_most

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
                return await self._typing(action.address)
            case React():
                return await self._react(action)
            case Retitle():
                return await self._retitle(action)
            case AnswerPress():
                return await self._answer_press(action)
            case OpenThread():
                return await self._open_thread(action)
            case Find():
                raise Refused("Telegram does not let a bot look for its messages")
            case Recall():
                raise Refused("Telegram does not let a bot read what was said before")
            case Stream():
                raise Refused("on Telegram a growing text is shown by edits")

    async def call(self, request: Awaitable[T]) -> T:
        """Await one call of the library; its errors become the port's."""
        try:
            return await request
        except error.TelegramError as caught:
            raise translate(caught, self._bot.token) from None
        except ODD_ANSWER as caught:
            raise Uncertain(
                f"Telegram's answer has an odd shape ({type(caught).__name__})"
            ) from None

    async def _send(self, action: Send) -> Done:
        text, entities = _shown(action.part)
        thread, direct = _thread(action.address)
        sent = await self.call(
            self._bot.send_message(
                chat_id=_chat(action.address),
                text=text,
                entities=entities,
                message_thread_id=thread,
                direct_messages_topic_id=direct,
                link_preview_options=LinkPreviewOptions(is_disabled=True),
                reply_parameters=_reply(action.reply_to),
                reply_markup=_keyboard(action.keyboard),
            )
        )
        return Done(str(sent.message_id))

    async def _send_file(self, action: SendFile) -> Done:
        try:
            size = action.path.stat().st_size
            if size > self._file_most:
                raise FileTooBig(action.name, self._file_most)
            if size <= _PHOTO_MOST and Path(action.name).suffix.lower() in _PHOTOS:
                try:
                    return await self._upload(action, photo=True)
                except Refused as refused:  # nothing was sent: it may go as a document
                    if not any(sign in str(refused).lower() for sign in _NOT_A_PHOTO):
                        raise
            return await self._upload(action, photo=False)
        except OSError as caught:
            raise Refused(f"{action.name} cannot be read: {caught.strerror}") from None

    async def _upload(self, action: SendFile, photo: bool) -> Done:
        thread, direct = _thread(action.address)
        caption, entities = _caption(action.caption)
        with action.path.open("rb") as opened:
            # Sent from the open file piece by piece, so that it is never in memory as a whole.
            carried = InputFile(opened, filename=action.name, read_file_handle=False)
            if photo:
                request = self._bot.send_photo(
                    chat_id=_chat(action.address),
                    photo=carried,
                    caption=caption,
                    caption_entities=entities,
                    message_thread_id=thread,
                    direct_messages_topic_id=direct,
                    read_timeout=UPLOAD_ANSWER,
                )
            else:
                request = self._bot.send_document(
                    chat_id=_chat(action.address),
                    document=carried,
                    caption=caption,
                    caption_entities=entities,
                    message_thread_id=thread,
                    direct_messages_topic_id=direct,
                    disable_content_type_detection=True,
                    read_timeout=UPLOAD_ANSWER,
                )
            sent = await self.call(request)
        return Done(str(sent.message_id))

    async def _revise(self, action: Revise) -> Done:
        text, entities = _shown(action.part)
        try:
            await self.call(
                self._bot.edit_message_text(
                    text=text,
                    entities=entities,
                    chat_id=_chat(action.address),
                    message_id=_message(action.message_id),
                    link_preview_options=LinkPreviewOptions(is_disabled=True),
                    reply_markup=_keyboard(action.keyboard),
                )
            )
        except Refused as refused:
            if "not modified" not in str(refused).lower():
                raise
        return Done(action.message_id)

    async def _delete(self, action: Delete) -> Done:
        try:
            await self.call(
                self._bot.delete_message(_chat(action.address), _message(action.message_id))
            )
        except MessageGone:
            return Done()
        return Done()

    async def _typing(self, address: Address) -> Done:
        # In General the sign is shown only when the id is given, though a send would be refused.
        thread = int(address.thread) if address.thread.isdecimal() else None
        await self.call(
            self._bot.send_chat_action(_chat(address), ChatAction.TYPING, message_thread_id=thread)
        )
        return Done()

    async def _react(self, action: React) -> Done:
        emoji = self._receipts.get(action.receipt, "")
        await self.call(
            self._bot.set_message_reaction(
                _chat(action.address), _message(action.message_id), [emoji] if emoji else []
            )
        )
        return Done()

    async def _retitle(self, action: Retitle) -> Done:
        chat, thread = _chat(action.address), action.address.thread
        title = _title(action.title)
        if not thread.isdecimal():
            raise Refused("only a topic can be named here")
        try:
            if thread == GENERAL:
                await self.call(self._bot.edit_general_forum_topic(chat, title))
            else:
                await self.call(self._bot.edit_forum_topic(chat, int(thread), name=title))
        except Refused as refused:
            if "not_modified" not in str(refused).lower():
                raise
        return Done()

    async def _answer_press(self, action: AnswerPress) -> Done:
        text = clean(action.text)[:ANSWER_MOST]
        try:
            await self.call(
                self._bot.answer_callback_query(
                    action.press, text=text or None, show_alert=action.alert
                )
            )
        except Refused as refused:
            words = str(refused).lower()
            if "query is too old" not in words and "query id is invalid" not in words:
                raise
        return Done()

    async def _open_thread(self, action: OpenThread) -> Done:
        made = await self.call(
            self._bot.create_forum_topic(_chat(action.address), _title(action.title))
        )
        return Done(str(made.message_thread_id))


def _chat(address: Address) -> int:
    try:
        return int(address.chat)
    except ValueError:
        raise Refused(f"{address.chat} is no Telegram chat id") from None


def _message(message_id: str) -> int:
    try:
        return int(message_id)
    except ValueError:
        raise MessageGone(f"{message_id or 'an empty id'} is no Telegram message id") from None


def _thread(address: Address) -> tuple[int | None, int | None]:
    """Topic and direct-messages topic. General has an id, but a send with it is refused."""
    if address.thread.startswith(DIRECT_TOPIC):
        return None, int(address.thread.removeprefix(DIRECT_TOPIC))
    if address.thread in ("", GENERAL):
        return None, None
    try:
        return int(address.thread), None
    except ValueError:
        raise Refused(f"{address.thread} is no Telegram topic") from None


def _reply(message_id: str) -> ReplyParameters | None:
    if not message_id.isdecimal():
        return None
    return ReplyParameters(int(message_id), allow_sending_without_reply=True)


def _keyboard(keyboard: Keyboard) -> InlineKeyboardMarkup | None:
    if not keyboard:
        return None
    return InlineKeyboardMarkup(
        [
            [
                InlineKeyboardButton(
                    clean(button.label) or "…",
                    callback_data=button.id,
                    style=button.style.value or None,
                )
                for button in row
            ]
            for row in keyboard
        ]
    )


def _title(title: str) -> str:
    title = " ".join(clean(title).split())[:TITLE_MOST]
    if not title:
        raise Refused("a topic needs a name")
    return title


def _shown(part: Part) -> tuple[str, list[MessageEntity] | None]:
    """Text and entities of a part; a text that would show nothing becomes a visible sign."""
    text = clean(part.text)
    if not shows(text):
        return "…", None
    if part.markup and text == part.text:
        listed: list[dict[str, str | int]] = json.loads(part.markup)
    else:
        listed = quiet(text)  # plain text pings nobody either
    return text, [_entity(one) for one in listed] or None


def _entity(one: dict[str, str | int]) -> MessageEntity:
    extra = {key: str(one[key]) for key in ("url", "language", "custom_emoji_id") if key in one}
    return MessageEntity(str(one["type"]), int(one["offset"]), int(one["length"]), **extra)  # type: ignore[arg-type]  # the keys are names of text parameters


def _caption(part: Part | None) -> tuple[str | None, list[MessageEntity] | None]:
    """A caption as far as one fits; what is longer is cut visibly."""
    if part is None or not part.text.strip():
        return None, None
    text, entities = _shown(part)
    if units(text) <= CAPTION_MOST:
        return text, entities
    while units(text) >= CAPTION_MOST:
        text = text[: -max(1, (units(text) - CAPTION_MOST) // 2)]
    most = units(text)
    return text + "…", [e for e in entities or () if e.offset + e.length <= most] or None
