"""Output that nobody reads holds nobody up; what is read is whole and in order."""

from __future__ import annotations

import argparse
import gc
import io
import os
import threading
from collections.abc import Iterator

import pytest

from gateway.cli import run
from gateway.config import BadSettings
from gateway.outlet import KEPT_MOST, Outlet, outlet

LINES = [f"line {number} " + "x" * 200 + "\n" for number in range(2000)]  # far beyond a pipe


@pytest.fixture
def pipe() -> Iterator[tuple[io.FileIO, io.FileIO]]:
    reads, writes = os.pipe()
    with io.FileIO(reads, "r") as reader, io.FileIO(writes, "w") as writer:
        yield reader, writer


def read(reader: io.FileIO, size: int) -> str:
    heard = b""
    while len(heard) < size:
        heard += os.read(reader.fileno(), 65_536)
    return heard.decode()


def test_what_is_read_at_once_is_written_at_once(pipe: tuple[io.FileIO, io.FileIO]) -> None:
    reads, writes = pipe
    out = Outlet(writes.fileno())
    print("a code: ä", file=out, flush=True)
    assert read(reads, 3) == "a code: ä\n"
    assert not [one for one in threading.enumerate() if one.name == "standard output"]


def test_whoever_does_not_read_holds_nobody_up_and_misses_nothing(
    pipe: tuple[io.FileIO, io.FileIO],
) -> None:
    reads, writes = pipe
    out = Outlet(writes.fileno())
    for line in LINES:
        out.write(line)
    whole = "".join(LINES)
    assert read(reads, len(whole)) == whole
    out.leave()
    out.write("and on\n")
    assert read(reads, 1) == "and on\n"


def test_what_is_beyond_measure_is_counted(pipe: tuple[io.FileIO, io.FileIO]) -> None:
    reads, writes = pipe
    out = Outlet(writes.fileno(), most=50_000)
    for line in LINES:
        out.write(line)
    heard = ""
    while "missing" not in heard:
        heard += read(reads, 1)
    *kept, told = heard.splitlines(keepends=True)
    assert kept == LINES[: len(kept)]
    assert told == f"({len(LINES) - len(kept)} lines are missing: nobody read them)\n"


def test_an_end_waits_a_moment_and_no_longer(pipe: tuple[io.FileIO, io.FileIO]) -> None:
    reads, writes = pipe
    out = Outlet(writes.fileno())
    for line in LINES:
        out.write(line)
    out.leave(0.01)
    read(reads, len("".join(LINES)))
    out.leave()


def test_a_reader_that_is_gone_is_said(pipe: tuple[io.FileIO, io.FileIO]) -> None:
    reads, writes = pipe
    out = Outlet(writes.fileno())
    reads.close()
    with pytest.raises(BrokenPipeError):
        out.write("hello\n")


def test_a_reader_that_leaves_later_ends_the_waiting(pipe: tuple[io.FileIO, io.FileIO]) -> None:
    reads, writes = pipe
    out = Outlet(writes.fileno())
    for line in LINES:
        out.write(line)
    reads.close()
    out.leave(5)
    with pytest.raises(BrokenPipeError):
        out.write("hello\n")


def test_files_and_what_is_no_real_stream_are_written_as_ever(
    pipe: tuple[io.FileIO, io.FileIO], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (tmp_path_factory.mktemp("out") / "log").open("w") as file:
        assert outlet(file) is None
    assert outlet(io.StringIO()) is None
    assert outlet(None) is None
    with os.fdopen(os.dup(pipe[1].fileno()), "w") as stream:
        made = outlet(stream)
        assert made is not None
        assert (made.encoding.lower(), made.isatty()) == ("utf-8", False)
    assert KEPT_MOST > 2**20


def test_a_gateway_writes_like_that_from_its_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def look() -> None:
        said.append("looked")
        raise BadSettings(["none"])

    monkeypatch.setattr("gateway.outlet.install", lambda: said.append("installed"))
    monkeypatch.setattr("gateway.saved.look", look)
    try:
        with pytest.raises(BadSettings):
            run.main(argparse.Namespace())
    finally:
        gc.enable()
    assert said == ["installed", "looked"]
