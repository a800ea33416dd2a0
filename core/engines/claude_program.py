"""Where the Claude Code program is: looked for without importing anything of it."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

INSTALL = (
    "Install Claude Code (`npm install -g @anthropic-ai/claude-code`, or `pip install "
    "'laneway[claude]'`), or set LANEWAY_CLAUDE_COMMAND to its full path."
)


def find_program(path: str | None = None) -> str:
    """The program: on PATH, else the one inside the optional library; "" for none."""
    if found := shutil.which("claude", path=path):
        return found
    spec = find_spec("claude_agent_sdk")  # of a package without parents this imports nothing
    for place in (spec and spec.submodule_search_locations) or ():
        program = Path(place) / "_bundled" / "claude"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    return ""
