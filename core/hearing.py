"""Voice notes become text, by a transcription service that speaks as OpenAI's does.

One call a note, bounded in size and time. The key stands in the call's header and nowhere else. It
must not know turns, lanes or platforms; the HTTP library is loaded with the first note.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import logging
import random
import wave
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.clock import Clock
from core.engines.base import Finding
from core.messages import clean

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("laneway.turn")

MOST = 25_000_000  # bytes of a note; what such services take
PATIENCE = 120.0  # seconds for one note, all tries together
CONNECT = 10.0
TRIES = 3
PAUSE = 1.0  # seconds before the second try, doubled for the third
WAIT_MOST = 20.0  # seconds that a service may ask to wait
ANSWER_MOST = 1_000_000  # bytes
TEXT_MOST = 50_000  # characters
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
DEFAULT_MODEL = "whisper-1"
PATH = "/audio/transcriptions"
_SUFFIXES = {
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/mpeg": "mp3",
    "audio/mp4": "m4a",
    "audio/x-m4a": "m4a",
    "audio/aac": "m4a",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/webm": "webm",
    "video/webm": "webm",
    "video/mp4": "mp4",
    "audio/flac": "flac",
}
FIX = "Check LANEWAY_TRANSCRIBE_URL, LANEWAY_TRANSCRIBE_API_KEY and LANEWAY_TRANSCRIBE_MODEL."


class Unheard(Exception):
    """A note could not be made text; the message says why, as half a sentence for people."""


class _Again(Exception):
    """The service may take it a moment later. ``wait``: seconds it asks for."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


class Hearing:
    """Made once. ``url``: the service's base address, or the whole one of its transcriptions."""

    def __init__(
        self, url: str, key: str, model: str, clock: Clock, patience: float = PATIENCE
    ) -> None:
        base = url.rstrip("/")
        self._address = base if base.endswith("/transcriptions") else base + PATH
        self._key = key
        self._model = model or DEFAULT_MODEL
        self._clock = clock
        self._patience = patience  # seconds of the machine's own time: a socket knows no other
        self.host = urlsplit(url).hostname or "the transcription service"

    async def text(self, sound: bytes, mime: str) -> str:
        """What is said in a note; raises Unheard, also when nothing is."""
        if len(sound) > MOST:
            raise Unheard(f"it is larger than {MOST // 1_000_000} MB")
        heard = await self._ask(sound, mime)
        if not heard:
            raise Unheard("there are no words in it")
        return heard

    async def check(self) -> Finding:
        """For the doctor: a moment of silence is sent, and has to be taken."""
        name = "transcription"
        try:
            await self._ask(_silence(), "audio/wav")
        except Unheard as fault:
            return Finding(name, False, str(fault), FIX)
        return Finding(name, True, f"{self.host} takes voice notes with {self._model}")

    async def _ask(self, sound: bytes, mime: str) -> str:
        try:
            async with asyncio.timeout(self._patience), await self._client() as client:
                for attempt in range(TRIES):
                    try:
                        return await self._once(client, sound, mime)
                    except _Again as fault:
                        wait = PAUSE * 2**attempt * (0.5 + random.random() / 2)
                        wait = max(wait, fault.wait or 0.0)
                        if attempt + 1 == TRIES or wait > WAIT_MOST:
                            raise Unheard(str(fault)) from fault
                        log.info("transcription: %s; trying again", fault)
                        await self._clock.sleep(wait)
        except TimeoutError as late:
            raise Unheard("the transcription service did not answer in time") from late
        raise AssertionError("the last try returns or raises")

    async def _client(self) -> httpx.AsyncClient:
        try:
            return await asyncio.to_thread(self._make)
        except (ImportError, ValueError, OSError) as fault:
            log.error("no connection for transcription can be made: %r", fault)
            raise Unheard("the transcription service cannot be reached") from fault

    def _make(self) -> httpx.AsyncClient:
        library = importlib.import_module("httpx")
        here = self.host == "localhost" or self.host.startswith("127.") or self.host == "::1"
        client: httpx.AsyncClient = library.AsyncClient(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            # One limit for the whole note, above: a second one here that is as long would at times
            # come first, and then the note would be tried again with all of it anew.
            timeout=library.Timeout(None, connect=CONNECT),
            verify=not self._address.startswith("http://"),
            trust_env=not here,  # no proxy leads to a server on this machine
        )
        return client

    async def _once(self, client: httpx.AsyncClient, sound: bytes, mime: str) -> str:
        import httpx  # is loaded by now

        mime = mime.partition(";")[0].strip().lower() or "audio/ogg"
        note = (f"voice.{_SUFFIXES.get(mime, 'ogg')}", sound, mime)
        fields = {"model": self._model, "response_format": "json"}
        try:
            async with client.stream(
                "POST", self._address, data=fields, files={"file": note}
            ) as response:
                body = await _bounded(response)
        except httpx.HTTPError as fault:
            raise _Again("the transcription service cannot be reached") from fault
        except httpx.InvalidURL as fault:
            raise Unheard("the address of the transcription service is none") from fault
        return self._read(response.status_code, response.headers, body)

    def _read(self, status: int, headers: Any, body: bytes) -> str:
        if status == 200:
            return clean(_said(body))[:TEXT_MOST].strip()
        log.warning("transcription: %s answered with status %d", self.host, status)
        if status in (401, 403):
            raise Unheard("the transcription service does not accept the gateway's key")
        if status == 413:
            raise Unheard("it is too large for the transcription service")
        told = f"the transcription service does not work just now (status {status})"
        if status in AGAIN:
            raise _Again(told, _seconds(headers.get("retry-after", "")))
        raise Unheard(f"the transcription service refused it (status {status})")


async def _bounded(response: httpx.Response) -> bytes:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > ANSWER_MOST:
            raise Unheard("the transcription service answered too much")
    return body


def _said(body: bytes) -> str:
    """JSON with a text in it, or the text alone; some servers give that whatever is asked for."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        plain = body.decode("utf-8", "replace").strip()
        if plain.startswith("<"):
            raise Unheard("what answers is no transcription service") from None
        return plain
    text = told.get("text") if isinstance(told, dict) else told
    if not isinstance(text, str):
        raise Unheard("what answers is no transcription service")
    return text


def _seconds(told: str) -> float | None:
    try:
        return max(0.0, float(told))
    except ValueError:
        return None


def _silence() -> bytes:
    """Half a second of nothing."""
    made = io.BytesIO()
    with wave.open(made, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(b"\0\0" * 4000)
    return made.getvalue()
