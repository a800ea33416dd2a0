"""The address that people open to see the page."""

from __future__ import annotations

from gateway.settings_table import Settings

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # browsers cannot open these


def page_address(settings: Settings, port: int) -> str:
    """The public one where it is set; else where this machine listens."""
    return settings.web_url or listening_address(settings, port)


def listening_address(settings: Settings, port: int) -> str:
    """Where this machine reaches it, whatever is in front."""
    host = _EVERYWHERE.get(settings.web_host, settings.web_host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
