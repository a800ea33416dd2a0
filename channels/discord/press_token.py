"""What answers an interaction, as text that can be kept. It must not know how that is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from core.channel import Refused


@dataclass(frozen=True, slots=True)
class Token:
    """The way back to who pressed. Its secret is good for 15 minutes."""

    number: str
    secret: str
    application: str
    command: bool

    def __str__(self) -> str:
        kind = "c" if self.command else "b"
        return f"{kind}:{self.number}:{self.application}:{self.secret}"

    @classmethod
    def read(cls, press: str) -> Self:
        """The token of a press. Raises Refused when it is none."""
        parts = press.split(":", 3)
        if len(parts) != 4 or parts[0] not in ("c", "b") or not parts[1].isdecimal():
            raise Refused("this is no press on Discord")
        return cls(parts[1], parts[3], parts[2], parts[0] == "c")
