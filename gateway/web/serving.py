"""A connection of the page: patient with people, and not for ever with who never finishes asking.

The server's own limits are on sizes and on silence between two requests; here are those on the time
that the head of a request may take, on how many come at once, and on the rest of a body after its
answer: that is read and thrown away, or whoever sends it would never see the answer. It must not
know what is asked.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from functools import cache

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

FEWEST, MOST = 64, 4096  # connections at once
HEAD_WITHIN = 20.0  # seconds in which a request's head has to be here, or the rest of its body


@cache
def connections_most() -> int:
    """Half of the files that the process may have open: agents and the store need some as well."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return FEWEST if soft < 2 * FEWEST else min(MOST, soft // 2)


class Patient(H11Protocol):
    """The server's own connection, with that limit."""

    _waits: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > connections_most():
            transport.abort()
            return
        # Head and body are two writes. The loop would set this itself, but not for sockets whose
        # protocol was left to the system to choose, and then each answer waits for 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._look()

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except (h11.ProtocolError, UnicodeDecodeError):
            self.transport.abort()  # noise in the middle of an answer, or in an address
            return
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _look(self) -> None:
        theirs, answered = self.conn.their_state, self.conn.our_state is h11.DONE
        if not (theirs is h11.IDLE or (theirs is h11.SEND_BODY and answered)):
            self._stop()
        elif self._waits is None and not self.transport.is_closing():
            self._waits = self.loop.call_later(HEAD_WITHIN, self.transport.abort)

    def _stop(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None
