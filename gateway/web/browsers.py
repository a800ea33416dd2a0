"""What a browser calls itself, as words for people. Pure.

Only names that are known here come out: what a stranger wrote into the header never does.
"""

from __future__ import annotations

_PROGRAMS = (  # the first that is found: most call themselves by several names
    ("Edg", "Edge"), ("OPR/", "Opera"), ("SamsungBrowser", "Samsung Internet"),
    ("Firefox/", "Firefox"), ("FxiOS", "Firefox"), ("CriOS", "Chrome"), ("Chrome/", "Chrome"),
    ("Safari/", "Safari"), ("curl/", "curl"),
)  # fmt: skip
_SYSTEMS = (
    ("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("Windows", "Windows"),
    ("CrOS", "ChromeOS"), ("Mac OS X", "Mac"), ("Linux", "Linux"),
)  # fmt: skip


def browser_name(header: str) -> str:
    """Like ``Firefox on Windows``, of a User-Agent header."""
    program = next((name for sign, name in _PROGRAMS if sign in header), "")
    system = next((name for sign, name in _SYSTEMS if sign in header), "")
    if program and system:
        return f"{program} on {system}"
    return program or (f"a browser on {system}" if system else "an unknown browser")
