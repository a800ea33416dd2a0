"""What an engine has said in a turn: the words so far, within bounds.

What a thread can be shown ends somewhere; a longer answer is kept whole in a file as well, and the
file goes with it. It must not know turns, channels or the store.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TextIO

from core.messages import clean

log = logging.getLogger("laneway.turn")

SHOWN_MOST = 40_000  # characters; ten full messages on most platforms
FILE_MOST = 20_000_000  # characters of the file; nobody reads more


class Answer:
    """Collects pieces. ``spill`` is where the whole goes when it becomes too long to show."""

    def __init__(self, spill: Path) -> None:
        self._pieces: list[str] = []
        self._shown = 0  # characters kept in memory
        self._length = 0
        self._spill = spill
        self._file: TextIO | None = None
        self._broken = False

    def add(self, delta: str) -> None:
        """The next piece; pieces are joined as they are."""
        before, self._length = self._length, self._length + len(delta)
        if self._shown < SHOWN_MOST:
            kept = delta[: SHOWN_MOST - self._shown]
            self._pieces.append(kept)
            self._shown += len(kept)
        if self._length > SHOWN_MOST and not self._broken and before < FILE_MOST:
            self._keep(delta, first=before <= SHOWN_MOST)

    @property
    def text(self) -> str:
        """What can be shown and stored: cleaned, for an engine may cut a character in two."""
        return clean("".join(self._pieces))

    @property
    def whole(self) -> Path | None:
        """The file with all of it, when the text is only its beginning."""
        return self._spill if self._file is not None and not self._broken else None

    def close(self) -> None:
        """Nothing more comes."""
        if self._file is not None and not self._file.closed:
            try:
                self._file.close()
            except OSError as fault:
                self._give_up(fault)

    def _keep(self, delta: str, *, first: bool) -> None:
        try:
            if self._file is None:
                self._spill.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = self._spill.open("w", encoding="utf-8", errors="replace")
                self._spill.chmod(0o600)
            if first:
                delta = "".join(self._pieces) + delta[len(delta) - (self._length - SHOWN_MOST) :]
            self._file.write(delta)
        except OSError as fault:
            self._give_up(fault)

    def _give_up(self, fault: OSError) -> None:
        """A full disk costs the file, never the answer's beginning."""
        self._broken = True
        log.warning("the whole of a long answer could not be kept: %s", fault.strerror)
