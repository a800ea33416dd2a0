"""Voice notes: what is said in them reaches the agent, or the person is told why it did not."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core import hearing
from core.engines.base import Abilities, Started, SteerSettled
from core.hearing import Hearing, Unheard
from core.messages import Address, FileKind, FileRef, Message
from tests.fakes.clock import QuickClock
from tests.fakes.engine import PuppetEngine
from tests.fakes.transcriber import Transcriber
from tests.runner.scene import ANA, Scene

KEY = "sk-secret-4711"
NOTE = FileRef("V1", FileKind.VOICE, "note.oga", "audio/ogg")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "PAUSE", 0.01)


@pytest.fixture
async def service() -> AsyncIterator[Transcriber]:
    async with Transcriber() as made:
        yield made


def hears(home: Path, service: Transcriber, engine: PuppetEngine | None = None) -> Scene:
    scene = Scene(
        home,
        engine,
        LANEWAY_TRANSCRIBE_URL=service.url,
        LANEWAY_TRANSCRIBE_API_KEY=KEY,
        LANEWAY_TRANSCRIBE_MODEL="ears-1",
    )
    scene.channel.files["V1"] = b"the sound"
    return scene


async def sends(scene: Scene, text: str = "", *files: FileRef) -> None:
    number = f"v{len(await scene.turns())}"
    await scene.parts.intake.accept(
        [
            Message(
                identity=f"local:{number}", message_id=number,
                address=Address(scene.channel.name, "main"), sender=ANA, sender_name="Ana",
                text=text, at=scene.clock.now(), direct=True, files=files or (NOTE,),
            )
        ]
    )  # fmt: skip


def says(text: str) -> tuple[int, str]:
    return 200, json.dumps({"text": text})


async def test_what_is_said_is_the_message_and_marked_as_a_transcript(
    tmp_path: Path, service: Transcriber
) -> None:
    service.script = [says(" book a table ")]
    async with hears(tmp_path, service) as scene:
        await sends(scene)
        run = await scene.engine.started()
        prompt = run.request.prompt
        assert prompt.startswith("(voice note, transcribed) book a table\n\nAttached voice note: ")
        assert "could not be read" not in prompt
        (file,) = run.request.attachments
        assert file.path.read_bytes() == b"the sound"
        run.answer_with("booked")
        await scene.until(lambda: scene.texts() == ["booked"])
    (asked,) = service.asked
    assert (asked.key, asked.model, asked.sound) == (f"Bearer {KEY}", "ears-1", b"the sound")
    assert (asked.name, asked.mime) == ("voice.ogg", "audio/ogg")


async def test_a_caption_comes_before_what_is_said(tmp_path: Path, service: Transcriber) -> None:
    async with hears(tmp_path, service) as scene:
        await sends(scene, "for tomorrow")
        run = await scene.engine.started()
        assert run.request.prompt.startswith("for tomorrow\n\n(voice note, transcribed) hello\n\n")
        run.answer_with("ok")
        await scene.until(lambda: scene.texts() == ["ok"])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (says("  "), "there are no words in it"),
        ((401, "no"), "does not accept the gateway's key"),
        ((413, "no"), "too large for the transcription service"),
        ((400, "no"), "refused it (status 400)"),
        ((200, "<html>hello</html>"), "no transcription service"),
        ((200, '{"segments": []}'), "no transcription service"),
    ],
)
async def test_a_note_that_cannot_be_heard_starts_nothing_and_the_reason_is_told(
    tmp_path: Path, service: Transcriber, answer: tuple[int, str], reason: str
) -> None:
    service.script = [answer]
    async with hears(tmp_path, service) as scene:
        await sends(scene)
        await scene.until(lambda: any(reason in text for text in scene.texts()))
        assert scene.engine.runs == []
        assert len(scene.texts()) == 1
        await scene.says("then in writing")
        (await scene.engine.started()).answer_with("ok")
        await scene.until(lambda: "ok" in scene.texts())


async def test_with_a_caption_an_unheard_note_is_only_remarked(
    tmp_path: Path, service: Transcriber
) -> None:
    service.script = [(400, "no")]
    async with hears(tmp_path, service) as scene:
        await sends(scene, "call me back")
        run = await scene.engine.started()
        assert run.request.prompt.startswith("call me back")
        assert "the recording could not be read" in run.request.prompt
        run.answer_with("ok")
        await scene.until(lambda: scene.texts() == ["ok"])


async def test_a_service_that_is_busy_is_asked_again(tmp_path: Path, service: Transcriber) -> None:
    service.script = [(503, "wait"), (429, "wait"), says("at last")]
    async with hears(tmp_path, service) as scene:
        await sends(scene)
        run = await scene.engine.started()
        assert "at last" in run.request.prompt
        run.answer_with("ok")
        await scene.until(lambda: scene.texts() == ["ok"])


async def test_a_message_into_the_running_turn_is_heard_as_well(
    tmp_path: Path, service: Transcriber
) -> None:
    able = PuppetEngine(Abilities(resume=True, steer=True))
    async with hears(tmp_path, service, able) as scene:
        await scene.says("/busy steer")
        await scene.says("work")
        run = await scene.engine.started()
        run.say(Started("s"))
        await scene.until(lambda: run.handed_over)
        await sends(scene)
        await scene.until(lambda: run.offered)
        turn, text = run.offered[0]
        assert text.startswith("(voice note, transcribed) hello")
        assert list((run.request.folder / "inbox").rglob("*note.oga"))
        run.say(SteerSettled(turn, taken=True))
        run.answer_with("ok")
        await scene.until(lambda: "ok" in scene.texts())


async def test_without_a_service_a_note_starts_nothing(tmp_path: Path) -> None:
    async with Scene(tmp_path) as scene:
        await sends(scene)
        await scene.until(lambda: any("no transcription service" in t for t in scene.texts()))
        assert await scene.turns() == []


async def test_the_key_is_in_no_message_and_no_log(
    tmp_path: Path, service: Transcriber, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service.script = [(500, KEY), (500, KEY), (500, KEY)]
    async with hears(tmp_path, service) as scene:
        await sends(scene)
        await scene.until(lambda: any("does not work just now" in t for t in scene.texts()))
        assert KEY not in "".join(scene.texts())
    assert KEY not in caplog.text


# The service alone


def ears(service: Transcriber, **more: float) -> Hearing:
    return Hearing(service.url, KEY, "", QuickClock(10), **more)


async def test_what_is_too_large_is_not_sent(service: Transcriber) -> None:
    with pytest.raises(Unheard, match="larger than 25 MB"):
        await ears(service).text(b"x" * (hearing.MOST + 1), "audio/ogg")
    assert service.asked == []


async def test_a_service_that_says_nothing_is_given_up(service: Transcriber) -> None:
    service.silent = True
    with pytest.raises(Unheard, match="did not answer in time"):
        await ears(service, patience=0.2).text(b"x", "audio/ogg")


async def test_an_answer_without_end_is_given_up(service: Transcriber) -> None:
    service.script = [(200, "x" * (hearing.ANSWER_MOST + 1))]
    with pytest.raises(Unheard, match="too much"):
        await ears(service).text(b"x", "audio/ogg")


async def test_one_that_asks_to_wait_for_long_is_told_at_once(service: Transcriber) -> None:
    service.script, service.headers = [(429, "")], {"Retry-After": "3600"}
    with pytest.raises(Unheard, match="does not work just now"):
        await ears(service).text(b"x", "audio/ogg")
    assert len(service.asked) == 1


async def test_nobody_there_is_told(service: Transcriber) -> None:
    gone = Hearing("http://127.0.0.1:9/v1", "", "", QuickClock(10))
    with pytest.raises(Unheard, match="cannot be reached"):
        await gone.text(b"x", "audio/ogg")


async def test_plain_text_is_taken_and_whole_addresses_as_well(service: Transcriber) -> None:
    service.script = [(200, "plain words\n")]
    whole = Hearing(f"{service.url}/audio/transcriptions", "", "", QuickClock(10))
    assert await whole.text(b"x", "audio/mpeg; codecs=mp3") == "plain words"
    assert (service.asked[0].name, service.asked[0].key) == ("voice.mp3", "")
    assert service.asked[0].model == "whisper-1"


async def test_the_doctor_sends_a_moment_of_silence(service: Transcriber) -> None:
    service.script = [says(""), (401, "no")]
    well = await ears(service).check()
    assert (well.ok, service.asked[0].mime) == (True, "audio/wav")
    assert service.asked[0].sound.startswith(b"RIFF")
    wrong = await ears(service).check()
    assert not wrong.ok
    assert "LANEWAY_TRANSCRIBE_API_KEY" in wrong.fix
