"""The commands of ``laneway``: what each is called and means, and where it is written.

A module is imported when one of its commands is called, so that every command starts fast. It has
``main(options) -> int``, which returns the exit status and may raise Trouble, and
``arguments(parser)``; one with several commands has ``NAME`` and ``NAME_arguments`` for each.
"""

from __future__ import annotations

import argparse
import gc
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    module: str
    help: str
    shared: bool = False  # the module has other commands as well

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        found = self._find(f"{self.name}_arguments" if self.shared else "arguments")
        cast(Callable[[argparse.ArgumentParser], None], found)(parser)

    def main(self, options: argparse.Namespace) -> int:
        found = self._find(self.name if self.shared else "main")
        return cast(Callable[[argparse.Namespace], int], found)(options)

    def _find(self, name: str) -> object:
        gc.disable()  # what is imported stays: going through it again and again costs a tenth of it
        try:
            return getattr(importlib.import_module(self.module), name)
        finally:
            gc.enable()


COMMANDS = (
    Command("run", "gateway.cli.run", "start the gateway in the foreground"),
    Command("doctor", "gateway.cli.doctor", "check everything, and say how to mend it"),
    Command("say", "gateway.cli.say", "send a message and print the answer as it comes"),
    Command("lanes", "gateway.cli.listing", "list the lanes and what they do", shared=True),
    Command("turns", "gateway.cli.listing", "list what was asked and what became of it", True),
    Command("people", "gateway.cli.listing", "list the people who are known", shared=True),
    Command("jobs", "gateway.cli.jobs", "list what runs by the clock", shared=True),
    Command("job", "gateway.cli.jobs", "set up, pause, resume, run or cancel a job", shared=True),
    Command("usage", "gateway.cli.usage", "tokens and cost of each lane and person"),
    Command("pair", "gateway.cli.listing", "let a waiting person in", shared=True),
    Command("signin", "gateway.cli.signin", "print a link that signs in on the page, once"),
    Command("render", "gateway.cli.render", "show Markdown as the messages it becomes"),
    Command("when", "gateway.cli.when", "show the next times that a WHEN means"),
    Command("backup", "gateway.cli.copies", "copy the database, also while it runs", shared=True),
    Command("restore", "gateway.cli.copies", "put a copy in the database's place", shared=True),
)
