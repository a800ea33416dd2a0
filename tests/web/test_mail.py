"""The mails with codes: what they say, that they are encrypted, and what happens when none goes."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import logging
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosmtplib
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway import config, terminal
from gateway.choices import LogFormat
from gateway.config import Settings
from gateway.values import mail_server
from gateway.web import mail
from gateway.web.post import WAITING_MOST, Post
from gateway.web.signins import Letter
from tests.fakes.clock import START, FakeClock
from tests.fakes.mail_server import MailServer

LETTER = Letter("ana@example.org", "04291723", START, "Firefox on Windows", "198.51.100.7")
LOGIN = ("ana", "p@ss/word")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


def encrypted(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def settings(tmp_path: Path, **given: str) -> Settings:
    return config.load({"LANEWAY_HOME": str(tmp_path), **given}, tmp_path)


@asynccontextmanager
async def running(post: Post) -> AsyncIterator[None]:
    task = asyncio.create_task(post.run(), name="mail")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def test_a_mail_says_what_it_is_for_and_who_asked() -> None:
    written = mail.written(LETTER, "The lab <bot@example.org>", "lab.example.org")
    text = written.get_content()
    for part in ("04291723", "10 minutes", "Firefox on Windows", "198.51.100.7", "lab.example.org"):
        assert part in text
    assert "04291723" not in str(written["Subject"])
    assert written["To"] == "ana@example.org"
    assert written["From"] == "The lab <bot@example.org>"
    assert written["Auto-Submitted"] == "auto-generated"
    assert str(written["Message-ID"]).endswith("@example.org>")
    assert written["Date"].datetime.timestamp() == START // 1000
    assert written.get_content_type() == "text/plain"
    assert "://" not in text


@pytest.mark.parametrize(
    ("sender", "written"),
    [
        ("bot@example.org", "bot@example.org"),
        ("The lab <bot@example.org>", "The lab <bot@example.org>"),
        ("Lab, the <bot@example.org>", '"Lab, the" <bot@example.org>'),
        ('"Lab" <bot@example.org>', "Lab <bot@example.org>"),
        ("Läb <bot@example.org>", "=?utf-8?q?L=C3=A4b?= <bot@example.org>"),
    ],
)
def test_a_sender_may_have_any_name(sender: str, written: str) -> None:
    assert f"From: {written}\n" in mail.written(LETTER, sender, "").as_string()


@pytest.mark.parametrize("sender", ['a"b@example.org', "x,y@example.org", "a@b@example.org", "x"])
def test_a_sender_that_no_mail_can_have_is_said_in_plain_words(sender: str) -> None:
    with pytest.raises(mail.NotSent, match="LANEWAY_MAIL_FROM") as raised:
        mail.written(LETTER, sender, "")
    assert raised.value.final


@pytest.mark.parametrize(
    ("given", "user", "page", "sender"),
    [
        ("bot@example.org", "ana@lab.test", "lab.test", "bot@example.org"),
        ("", "ana@lab.test", "page.test", "ana@lab.test"),
        ("", "ana", "page.test", "laneway@page.test"),
        ("", "", "", "laneway@mail.lab.test"),
        ("", "", "192.0.2.1", "laneway@localhost"),
    ],
)
def test_mails_have_a_sender_also_where_none_is_set(
    given: str, user: str, page: str, sender: str
) -> None:
    login = f"{user.replace('@', '%40')}:x@" if user else ""
    server = mail_server(f"smtps://{login}mail.lab.test")
    assert server is not None
    assert mail.sender_of(given, server, page) == sender


async def test_starttls_with_a_login_and_a_certificate_that_is_checked(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with MailServer(encrypted(certificate), LOGIN) as server:
        address = f"smtp://ana:p%40ss%2Fword@localhost:{server.port}"
        to = mail_server(address)
        assert to is not None
        written = mail.written(LETTER, "bot@example.org", "")
        with pytest.raises(mail.NotSent, match=r"(?i)certificate"):
            await mail.send(written, to)  # nobody here has signed it
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await mail.send(written, to)
        assert server.code(await server.mail(0)) == "04291723"
        assert await mail.check(to) == f"localhost:{server.port}, encrypted, signed in"
        wrong = mail_server(f"smtp://ana:wrong@localhost:{server.port}")
        assert wrong is not None
        with pytest.raises(mail.NotSent, match="535") as raised:
            await mail.check(wrong)
        assert raised.value.signin
        assert raised.value.final
        assert "wrong" not in str(raised.value)
        other = mail_server(f"smtp://ana:p%40ss%2Fword@127.0.0.1:{server.port}")
        assert other is not None
        with pytest.raises(mail.NotSent, match=r"(?i)certificate"):
            await mail.check(other)  # it is good, and for another name


async def test_a_password_is_never_sent_to_a_server_that_does_not_encrypt() -> None:
    async with MailServer(login=LOGIN) as server:
        to = mail_server(f"smtp://ana:p%40ss%2Fword@localhost:{server.port}")
        assert to is not None
        with pytest.raises(mail.NotSent, match="STARTTLS"):
            await mail.check(to)


async def test_a_server_that_is_not_there_is_no_wrong_password_whatever_its_name_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def gone(*_: object, **__: object) -> None:
        raise aiosmtplib.SMTPConnectError("Error connecting to auth.example.org on port 46535")

    monkeypatch.setattr(aiosmtplib.SMTP, "connect", gone)
    to = mail_server("smtps://ana:password@auth.example.org:46535")
    assert to is not None
    with pytest.raises(mail.NotSent) as raised:
        await mail.check(to)
    assert not raised.value.signin


async def test_a_server_that_repeats_the_password_does_not_have_it_repeated() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 here\r\n")
        await reader.readline()
        writer.write(b"250-here\r\n250 AUTH PLAIN\r\n")
        line = (await reader.readline()).decode().strip()
        writer.write(f"535 no: {line} (p@ss/word)\r\n".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        to = mail_server(f"smtp+plain://ana:p%40ss%2Fword@127.0.0.1:{port}")
        assert to is not None
        with pytest.raises(mail.NotSent) as raised:
            await mail.check(to)
    assert str(raised.value) == "the server said 535 no: AUTH PLAIN …= (…)"


async def test_a_mail_waits_for_a_server_that_is_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    server = MailServer()
    await server.start()
    await server.stop()
    given = settings(tmp_path, LANEWAY_SMTP_URL=server.url)
    post = Post(lambda: given, clock)
    with caplog.at_level(logging.INFO, "laneway.mail"):
        async with running(post):
            post.deliver(LETTER)
            async with asyncio.timeout(20):
                while not clock.sleeping:
                    await asyncio.sleep(0.001)
            async with server:
                await clock.advance(2)
                assert server.code(await server.mail(0)) == LETTER.code
    assert "mail to ana@example.org waits 2 s" in caplog.text
    assert LETTER.code not in caplog.text


async def test_a_mail_that_cannot_arrive_in_time_or_at_all_is_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    async with MailServer() as server:
        given = settings(tmp_path, LANEWAY_SMTP_URL=server.url)
        post = Post(lambda: given, clock, pauses=(0.0,))
        server.answers = ["550 no such mailbox", "451 try later"]
        with caplog.at_level(logging.INFO, "laneway.mail"):
            async with running(post):
                post.deliver(LETTER)
                async with asyncio.timeout(20):
                    while "no mail to" not in caplog.text:
                        await asyncio.sleep(0.001)
                assert "550" in caplog.text
                post.deliver(LETTER)  # refused for now, and taken the second time
                await server.mail(0)
                clock.jump(600)
                server.answers = ["451 try later"]
                post.deliver(LETTER)
                async with asyncio.timeout(20):
                    while caplog.text.count("no mail to") < 2:
                        await asyncio.sleep(0.001)
    assert len(server.mails) == 1
    assert LETTER.code not in caplog.text


async def test_a_slow_server_holds_up_no_other_mail(tmp_path: Path) -> None:
    first = asyncio.Event()
    held = iter([True])

    async def before() -> None:
        if next(held, False):
            await first.wait()

    async with MailServer(before=before) as server:
        given = settings(tmp_path, LANEWAY_SMTP_URL=server.url)
        post = Post(lambda: given, FakeClock())
        async with running(post):
            for number in range(3):
                post.deliver(Letter(f"x{number}@example.org", "12345678", START, "", ""))
            await server.mail(1)
            first.set()
            await server.mail(2)


async def test_a_full_queue_lets_the_oldest_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, clock = settings(tmp_path), FakeClock()
    post = Post(lambda: given, clock)
    for number in range(WAITING_MOST + 1):
        post.deliver(Letter(f"x{number}@example.org", f"{number:08}", START, "", ""))
    async with running(post):
        await clock.settle()
    said = capsys.readouterr().out
    assert "00000000" not in said
    assert f"x{WAITING_MOST}@example.org: {WAITING_MOST:08}" in said


@pytest.mark.parametrize("form", ["text", "json"])
async def test_without_a_mail_server_codes_are_on_the_terminal_and_in_no_log(
    tmp_path: Path,
    form: str,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    given, clock = settings(tmp_path, LANEWAY_LOG_FORMAT=form), FakeClock()
    post = Post(lambda: given, clock)
    with caplog.at_level(logging.DEBUG):
        async with running(post):
            post.deliver(LETTER)
            await clock.settle()
    out, err = capsys.readouterr()
    assert LETTER.code in (err if form == "json" else out)
    assert LETTER.code not in (out if form == "json" else err)
    assert LETTER.code not in json.dumps([record.getMessage() for record in caplog.records])


def test_a_terminal_that_is_gone_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        monkeypatch.setattr("sys.stdout", gone)
        terminal.tell("12345678", LogFormat.TEXT)
        assert "12345678" not in caplog.text
        assert "terminal" in caplog.text
        monkeypatch.undo()
        with contextlib.suppress(BrokenPipeError):
            gone.close()
