"""The web address, taken before anything else starts, so that a clash is said at once.

Apart from the application, because that is imported only when the channels listen already.
"""

from __future__ import annotations

import socket

TOOLS_PATH = "/mcp"  # on the listener for agents: where the gateway's tools are


class PortTaken(Exception):
    """The web address cannot be used; the message says which and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """The listening socket, taken before anything else starts, so that a clash is said at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as fault:
        # asyncio and socket add the address to it once more.
        reason = (fault.strerror or str(fault)).partition(" (while")[0]
        raise PortTaken(
            f"cannot listen on {host}:{port} ({reason}). Is another gateway running? "
            "Choose another address with LANEWAY_WEB_HOST and LANEWAY_WEB_PORT."
        ) from fault
