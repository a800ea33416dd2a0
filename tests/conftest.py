"""What holds for all tests: where their folders are.

Hundreds of stores are made, and each of their commits would wait for the disk: with folders in
memory a run takes half of the time, and SQLite is asked for the same. ``--basetemp`` and
``PYTEST_DEBUG_TEMPROOT`` choose another place.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

MEMORY = Path("/dev/shm")
NEEDED = 4 * 2**30  # bytes; a home keeps 16 MB back, and those of a module stay until the end


def pytest_configure(config: pytest.Config) -> None:
    if not config.option.basetemp and "PYTEST_DEBUG_TEMPROOT" not in os.environ and _roomy():
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)
    if root := os.environ.get("PYTEST_DEBUG_TEMPROOT"):
        os.environ["TMPDIR"] = root  # of what is started as well
        tempfile.tempdir = None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Nothing stays in memory, unless something failed that somebody wants to look at."""
    if exitstatus == 0 and not hasattr(session.config, "workerinput"):
        factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        shutil.rmtree(factory.getbasetemp(), ignore_errors=True)


def _roomy() -> bool:
    """Whether the memory has room to spare, and lets programs be started that a test writes."""
    try:
        free = min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available)
        runs = not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    except OSError:
        return False
    with suppress(OSError, ValueError):  # "max" is no number: there is no limit
        free = min(free, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return runs and free >= NEEDED and os.access(MEMORY, os.W_OK)
