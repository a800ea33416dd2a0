"""Reads a command line; what is wrong with one is said with what to type instead."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """As argparse's own; its errors name the help, and its notes keep their lines."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\nSee: {self.prog} --help\n")


def unknown(word: str, names: Sequence[str]) -> str:
    """What to say about a command that there is none of."""
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), names, n=1, cutoff=0.5)
    return f"there is no command {word!r}" + (f"; did you mean {near[0]}?" if near else "")
