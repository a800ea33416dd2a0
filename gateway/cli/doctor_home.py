"""What ``laneway doctor`` looks at where Laneway lives: home, disk, database, gateway, page.

It changes nothing. It must not know what the settings mean beyond where things are.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterator
from pathlib import Path

from core.engines.base import Finding
from core.store import glance
from core.store.errors import Newer, StoreError
from core.store.home import LOCK
from gateway.page_address import listening_address
from gateway.paths import DATABASE
from gateway.settings_table import Settings
from gateway.socket_path import answers, socket_path
from gateway.web.listener import PortTaken, check

LITTLE_SPACE = 200_000_000  # bytes free below which a disk is called almost full
FULL = "free some space: nothing can be stored on a full disk"
RESTORE = "put a backup back: laneway restore --force FILE"
OTHER_PORT = "end what listens there, or choose another with LANEWAY_WEB_PORT"


def living(settings: Settings) -> list[Finding]:
    """All of it, in the order in which a start needs it."""
    home, database = settings.home, settings.home / DATABASE
    found = [_home(home)]
    if found[0].ok:
        found += _files(home)
    found.append(_disk(home))
    if os.access(database, os.R_OK):
        found.append(_database(database))
    running = answers(socket_path(home))
    found.append(Finding("gateway", True, "runs" if running else "does not run"))
    if not running and settings.web_port:
        found.append(_page(settings))
    return found


def _home(home: Path) -> Finding:
    if not os.path.isdir(home):
        above = _there(home)
        if os.access(above, os.W_OK | os.X_OK):
            return Finding("home", True, f"{home} is made at the first start")
        detail = f"{home} cannot be made: {above} cannot be written by {_user(os.geteuid())}"
        fix = "set LANEWAY_HOME to a folder of your own"
        return Finding("home", False, detail, fix)
    mode = home.stat().st_mode & 0o777
    if not os.access(home, os.W_OK | os.X_OK):
        return _unwritable("home", home, 0o700)
    closed = mode & 0o077 == 0
    fix = "" if closed else f"chmod 700 {home}"
    return Finding("home", closed, f"{home}, mode {mode:o}", fix)


def _files(home: Path) -> Iterator[Finding]:
    """What stands in the way of a start; the key file has a check of its own."""
    for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", LOCK):
        path = home / name
        if os.path.exists(path) and not _writable(path):
            yield _unwritable("database" if name != LOCK else "lock file", path, 0o600)


def _writable(path: Path) -> bool:
    """What its owner can read a start makes writable."""
    own = path.stat().st_uid == os.geteuid()
    return os.access(path, os.R_OK if own else os.R_OK | os.W_OK)


def _unwritable(what: str, path: Path, mode: int) -> Finding:
    there, me = path.stat(), os.geteuid()
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        detail = f"{path} lies on a disk that can only be read"
        fix = "mount it for writing, or set LANEWAY_HOME to a folder elsewhere"
        return Finding(what, False, detail, fix)
    detail = f"{path} cannot be written by {_user(me)}"
    if there.st_uid == me:
        return Finding(
            what, False, f"{detail}: mode {there.st_mode & 0o777:o}", f"chmod {mode:o} {path}"
        )
    owner = _user(there.st_uid)
    fix = f"run laneway as {owner}, or give it to {_user(me)}: chown {_user(me)} {path}"
    return Finding(what, False, f"{detail}: it belongs to {owner}", fix)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # of a container, say
        return f"user {number}"


def _there(path: Path) -> Path:
    """The nearest folder above that exists."""
    return next(one for one in (path, *path.parents) if os.path.isdir(one))


def _disk(home: Path) -> Finding:
    free = shutil.disk_usage(_there(home)).free
    fix = "" if free > LITTLE_SPACE else FULL
    return Finding("disk", free > LITTLE_SPACE, f"{free // 1_000_000} MB free", fix)


def _database(path: Path) -> Finding:
    try:
        whole = glance.whole(path)
    except Newer as fault:
        return Finding("database", False, str(fault), f"install that version, or {RESTORE}")
    except StoreError as fault:
        return Finding("database", False, str(fault), RESTORE)
    detail = "whole" if whole else "its structure is whole; it is too large to read it all here"
    return Finding("database", True, f"{path.name} ({path.stat().st_size // 1000} kB) is {detail}")


def _page(settings: Settings) -> Finding:
    """Whether a start could listen."""
    try:
        check(settings.web_host, settings.web_port)
    except PortTaken as fault:
        return Finding("page", False, str(fault), OTHER_PORT)
    return Finding("page", True, f"{listening_address(settings, settings.web_port)} is free")
