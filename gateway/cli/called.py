"""How the program is called from here, for words that tell people what to type next."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

NAME = "laneway"


def called(argument: str | None = None) -> str:
    """Its name where a shell finds it, else its path: ``make run`` puts it in no search path."""
    own = Path(argument or sys.argv[0])
    if own.name != NAME or not own.is_file() or shutil.which(NAME):
        return NAME
    here = os.path.relpath(own)
    return str(own) if here.startswith("..") else here
