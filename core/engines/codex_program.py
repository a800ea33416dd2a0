"""Where the Codex program is: looked for without importing anything of it."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

INSTALL = (
    "Install Codex (`npm install -g @openai/codex`, or `pip install openai-codex-cli-bin`), or set "
    "LANEWAY_CODEX_COMMAND to its full path."
)


def find_program(path: str | None = None) -> str:
    """The program: on PATH, else the one inside its Python package; "" for none."""
    if found := shutil.which("codex", path=path):
        return found
    spec = find_spec("codex_cli_bin")  # of a package without parents this imports nothing
    for place in (spec and spec.submodule_search_locations) or ():
        program = Path(place) / "bin" / "codex"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    return ""
