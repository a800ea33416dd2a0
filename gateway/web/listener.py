"""The web address, taken before anything else starts, so that a clash is said at once.

Apart from the application, because that is imported only when the channels listen already.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

TOOLS_PATH = "/mcp"  # on the listener for agents: where the gateway's tools are


class PortTaken(Exception):
    """The web address cannot be used; the message says which and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """The listening socket, taken before anything else starts, so that a clash is said at once."""
    with _said(host, port):
        return socket.create_server((host, port), family=_family(host), backlog=256)


def check(host: str, port: int) -> None:
    """Raise PortTaken where ``listen`` would; a gateway that starts meanwhile can listen there."""
    with _said(host, port), socket.socket(_family(host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if probe.family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        probe.bind((host, port))


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


@contextmanager
def _said(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        # asyncio and socket add the address to it once more.
        reason = (fault.strerror or str(fault)).partition(" (while")[0]
        raise PortTaken(
            f"cannot listen on {host}:{port} ({reason}). Is another gateway running? "
            "Choose another address with LANEWAY_WEB_HOST and LANEWAY_WEB_PORT."
        ) from fault
