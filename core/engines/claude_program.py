"""Where the Claude Code program is found, and how to get it."""

from __future__ import annotations

from core.engines.installed import find

INSTALL = (
    "Install Claude Code (`npm install -g @anthropic-ai/claude-code`, or `pip install "
    "'laneway[claude]'`), or set LANEWAY_CLAUDE_COMMAND to its full path."
)


def find_program(path: str | None = None) -> str:
    """On PATH, else the one that its Python package brings; "" for none."""
    return find("claude", "claude_agent_sdk", "_bundled/claude", path)
