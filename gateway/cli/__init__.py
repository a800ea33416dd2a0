"""The command line, one file a group of commands, and what they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.config import Settings


class Failed(Exception):
    """A command could not do what was asked; the message says why and what to do."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def load_settings() -> Settings:
    """The settings, or Failed with every error of theirs at once and exit status 2."""
    from gateway.config import BadSettings, load

    try:
        return load()
    except BadSettings as error:
        listed = "".join(f"\n  - {problem}" for problem in error.problems)
        raise Failed(f"the settings cannot be used:{listed}", 2) from None
