"""The doctor sees what would keep a gateway from starting in its home, and says how to mend it."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from core.engines.base import Finding
from core.store.store import Store
from gateway import config
from gateway.cli import doctor, doctor_home
from gateway.cli.doctor_names import misspelled
from gateway.config import BadSettings
from gateway.paths import DATABASE
from gateway.web.listener import PortTaken, check, listen
from tests.fakes.clock import FakeClock


def looked_at(home: Path, **settings: str) -> list[Finding]:
    given = {"LANEWAY_HOME": str(home), "LANEWAY_WEB_PORT": "0", **settings}
    return doctor_home.living(config.load(given, cwd=home.parent))


def wrong(home: Path, **settings: str) -> list[Finding]:
    return [one for one in looked_at(home, **settings) if not one.ok]


@contextmanager
def only(path: Path, mode: int) -> Iterator[None]:
    """With these rights, where rights count: they do not for a root that may do anything."""
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        if os.access(path, os.R_OK | os.W_OK):
            pytest.skip("whoever runs this may write everywhere")
        yield
    finally:
        path.chmod(before)


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """One that a gateway has used."""
    made = tmp_path / "home"
    async with Store.open(made / DATABASE, FakeClock()):
        return made


def test_a_home_that_is_well_has_nothing_to_mend(home: Path) -> None:
    found = looked_at(home)
    assert all(one.ok for one in found)
    assert [one.name for one in found] == ["home", "disk", "database", "gateway"]


def test_a_home_that_cannot_be_written_is_found(home: Path) -> None:
    with only(home, 0o500):
        (found,) = wrong(home)
    assert (found.name, found.fix) == ("home", f"chmod 700 {home}")


def test_a_home_that_cannot_be_made_is_found(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    with only(above, 0o500):
        (found,) = wrong(above / "home" / "deep")
    assert f"{above} cannot be written" in found.detail
    assert "LANEWAY_HOME" in found.fix


def test_a_home_that_cannot_be_looked_into_ends_every_command_in_words(home: Path) -> None:
    with only(home, 0):
        for asked in (home, home / "inside"):
            with pytest.raises(BadSettings, match="cannot be looked into"):
                config.load({"LANEWAY_HOME": str(asked)}, cwd=home.parent)


def test_a_database_that_cannot_be_read_is_found(home: Path) -> None:
    with only(home / DATABASE, 0):
        (found,) = wrong(home)
    assert (found.name, found.fix) == ("database", f"chmod 600 {home / DATABASE}")


def test_a_database_that_a_newer_version_wrote_needs_that_version(home: Path) -> None:
    with closing(sqlite3.connect(home / DATABASE)) as database, database:
        database.execute("INSERT INTO migrations VALUES (9999, 'later', 0)")
    (found,) = wrong(home)
    assert "newer Laneway" in found.detail
    assert "install that version" in found.fix


def test_a_damaged_database_is_replaced_with_a_command_that_works(home: Path) -> None:
    (home / DATABASE).write_bytes(b"no database" * 1000)
    (found,) = wrong(home)
    assert "damaged" in found.detail
    assert "laneway restore --force FILE" in found.fix


def test_a_gateway_can_start_while_its_port_is_looked_at() -> None:
    with closing(listen("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with socket.socket() as looked:
        looked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        looked.bind(("127.0.0.1", port))  # as check does, in the middle of it
        check("127.0.0.1", port)
        with closing(listen("127.0.0.1", port)), pytest.raises(PortTaken):
            check("127.0.0.1", port)


def test_a_port_that_is_taken_is_found_before_a_start(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        (found,) = wrong(home, LANEWAY_WEB_PORT=port)
    assert found.name == "page"
    assert "LANEWAY_WEB_PORT" in found.fix
    free = looked_at(home, LANEWAY_WEB_PORT=port)[-1]
    assert (free.ok, free.detail) == (True, f"http://127.0.0.1:{port} is free")


def test_a_taken_port_is_named_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken) as refused:
            listen("127.0.0.1", port)
    assert str(refused.value).count(str(port)) == 1
    assert "Address already in use" in str(refused.value)


def test_a_disk_without_room_is_found_before_the_home_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_home, "LITTLE_SPACE", 1 << 62)
    (found,) = wrong(tmp_path / "home")
    assert (found.name, found.fix) == ("disk", doctor_home.FULL)


def test_a_name_that_nobody_reads_is_found(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("export LANWAY_ADMINS=telegram:1\nTELEGRAM_TOKEN=x\nLANEWAY_ENGINE=demo\n")
    environ = {"laneway_home": "/x", "LANEWAY_MAX_TURNS": "1", "LANE": "5", "LANGUAGE": "de"}
    found = misspelled(environ, (file, file, tmp_path / "none"))
    assert [(one.detail, one.fix) for one in found] == [
        ("laneway_home (the environment) is not read", "did you mean LANEWAY_HOME?"),
        (f"LANWAY_ADMINS ({file}) is not read", "did you mean LANEWAY_ADMINS?"),
    ]


def test_what_is_mended_in_the_same_way_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    doctor._show(doctor._wrong(["LANEWAY_A is wrong", "LANEWAY_B is wrong"]))
    shown = capsys.readouterr().out
    assert shown.count("FAIL") == 2
    assert shown.count("→") == 1
