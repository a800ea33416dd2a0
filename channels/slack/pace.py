"""How often each method may be called: Slack counts them by method, for the whole workspace.

A penalty of one method never holds up another, so core, which knows chats, cannot keep it. Edits
are the scarce ones: frames of previews leave some of them for answers.
"""

from __future__ import annotations

from core.channel import RateLimited
from core.clock import Clock

RATE, BURST, SPARED = 0.8, 20.0, 6.0  # edits a second and at once; kept for what is no frame
_LEAST = 1.0  # seconds


class Pace:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._left = BURST
        self._at = clock.monotonic()

    def check(self, method: str) -> None:
        """Raises RateLimited while a penalty of this method lasts."""
        if (left := self.left(method)) > 0:
            raise RateLimited(left)

    def left(self, method: str) -> float:
        """Seconds for which a penalty of this method still lasts."""
        return max(0.0, self._until.get(method, 0.0) - self._clock.monotonic())

    def limited(self, method: str, seconds: float) -> None:
        """Slack does not want this method for so long."""
        self._until[method] = max(self._until.get(method, 0.0), self._clock.monotonic() + seconds)

    def edit(self, frame: bool) -> None:
        """Count an edit. Raises RateLimited for a frame when few are left."""
        now = self._clock.monotonic()
        left = min(BURST, self._left + (now - self._at) * RATE)
        if frame and left < 1.0 + SPARED:
            raise RateLimited(max(_LEAST, (1.0 + SPARED - left) / RATE))
        self._left, self._at = max(0.0, left - 1.0), now
