"""What somebody types as their address. Pure."""

from __future__ import annotations

import re

LONGEST = 254
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_WORD = r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
_PLAIN = re.compile(rf"{_WORD}(\.{_WORD})*@[a-z0-9-]+(\.[a-z0-9-]+)*")


class NoAddress(Exception):
    """It cannot be an address; the message says why."""


def mailbox(typed: str) -> str:
    """The address as it is compared: trimmed, in lower case. Raises NoAddress.

    Empty for what may be an address and is none that we send to: signs beyond ASCII, quotes, ...
    """
    if _CONTROL.search(typed):
        raise NoAddress("an address has no control characters in it; type it by hand")
    address = typed.strip()
    if len(address) > LONGEST:
        raise NoAddress(f"an address has at most {LONGEST} characters")
    if "@" not in address:
        raise NoAddress("this is no mail address: it has no @")
    # Before anything is folded: some signs beyond ASCII become ASCII then.
    lower = address.lower() if address.isascii() else ""
    return lower if _PLAIN.fullmatch(lower) else ""
