"""Where the Codex program is found, and how to get it."""

from __future__ import annotations

from core.engines.installed import find

INSTALL = (
    "Install Codex (`npm install -g @openai/codex`, or `pip install openai-codex-cli-bin`), or set "
    "LANEWAY_CODEX_COMMAND to its full path."
)


def find_program(path: str | None = None) -> str:
    """On PATH, else the one that its Python package brings; "" for none."""
    return find("codex", "codex_cli_bin", "bin/codex", path)
