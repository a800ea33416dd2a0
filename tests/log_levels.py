"""The levels that the gateway sets for the whole process, given back after a test."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from gateway import logs


@contextmanager
def given_back() -> Iterator[None]:
    """The root's level and those of the libraries end as they were."""
    ruled = [logging.getLogger(name) for name in (None, *logs.CHATTY, *logs.NEVER_BELOW_INFO)]
    before = [one.level for one in ruled]
    try:
        yield
    finally:
        for one, level in zip(ruled, before, strict=True):
            one.setLevel(level)
