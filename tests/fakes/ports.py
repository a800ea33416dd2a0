"""Ports that stay free until somebody listens: those that no connection is given by itself.

``free_port()`` is for what has to know its port before it listens, or to listen on it again after
an outage. A port that the system chose may meanwhile be any other test's connection; these lie
below its range, and each process of a test run has some of its own.
"""

from __future__ import annotations

import itertools
import os
import random
import socket
from contextlib import suppress

LOWEST, EACH, PROCESSES = 20_000, 600, 20
_own = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PROCESSES
_turn = itertools.count(random.Random().randrange(EACH))  # another suite may run beside this one


def free_port() -> int:
    """The next one of this process on which nobody listens."""
    for number in itertools.islice(_turn, EACH):
        port = LOWEST + _own * EACH + number % EACH
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
