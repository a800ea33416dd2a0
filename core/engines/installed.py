"""Where an agent's program is installed: looked for without importing anything of it."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path


def find(program: str, package: str, inner: str, path: str | None = None) -> str:
    """The program: on PATH, else as ``inner`` of a Python package; "" for none."""
    if found := shutil.which(program, path=path):
        return found
    spec = find_spec(package)  # of a package without parents this imports nothing
    for place in (spec and spec.submodule_search_locations) or ():
        bundled = Path(place) / inner
        if bundled.is_file() and os.access(bundled, os.X_OK):
            return str(bundled)
    return ""
