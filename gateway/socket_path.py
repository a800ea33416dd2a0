"""Where the gateway of a home listens for its owner's terminals. Used by both ends."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import tempfile
from pathlib import Path

LONGEST_LINE = 16 * 1024 * 1024  # bytes of one message over the socket
_LONGEST = 100  # bytes; the systems' limits for a socket path are 104 and 108


class UnsafeSocket(Exception):
    """The folder for the socket belongs to somebody else or is open to others."""


def socket_path(home: Path) -> Path:
    """``laneway.sock`` in the home, or, where that is too deep, in a private temporary folder."""
    inside = home / "laneway.sock"
    if len(os.fsencode(inside)) <= _LONGEST:
        return inside
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"laneway-{os.getuid()}-{name}" / "laneway.sock"


def answers(path: Path) -> bool:
    """Whether a gateway listens there; one that was killed leaves its socket behind."""
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(str(path))
        except OSError:
            return False
        return True


def private_folder(path: Path, home: Path) -> None:
    """Make the socket's temporary folder; refuse one that others could have made."""
    folder = path.parent
    if folder == home:
        return  # the store sees to the home itself
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UnsafeSocket(f"{folder} is not a private folder of yours; remove it and start again")
