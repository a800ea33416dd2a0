"""Standard input and output as they really are: closed, full, or in another encoding."""

from __future__ import annotations

import errno
import io
import os
import sys

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def prepare() -> None:
    """Make them usable, whatever they are.

    One that is closed becomes nothing: else the next file that is opened would have its number,
    and what is meant for the terminal would be written into it.
    """
    for number, name, how in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            _fill(number)
            setattr(sys, name, open(number, how, encoding="utf-8", closefd=False))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that is not UTF-8 lacks some signs


def _fill(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def give_up() -> None:
    """Write nothing any more; Python must not complain at its end either."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def cannot_write(fault: OSError) -> bool:
    """Whether it is the output that failed; faults of other files name them."""
    return fault.filename is None and fault.errno in _UNWRITABLE


def typed() -> str:
    """All of standard input: UTF-8, or what the terminal's locale says."""
    raw = sys.stdin.buffer.read()
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode(sys.stdin.encoding or "utf-8", "replace")
