"""The key file of a home, and what is made of it: keys for purposes, sealed secrets.

The file holds 32 random bytes, for the owner alone, and is kept apart from backups of the database.
It must not know what is sealed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from pathlib import Path

from core.store.home import make_private

KEY_FILE = "laneway.key"
_BYTES = 32
_NONCE = 12
_FORM = "1:"  # how a sealed text is written; the number is for a later form


class WrongKey(Exception):
    """What was sealed cannot be opened: the key file is another one, or the text was changed."""


class Keys:
    """Made from the key file of a home."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @classmethod
    def of(cls, home: Path) -> Keys:
        """Read the key file, or make it; raises ValueError in plain words when it is no key."""
        path = home / KEY_FILE
        secret = _read(path)
        if not secret:
            secret = os.urandom(_BYTES)
            make_private(path)
            with path.open("r+b") as file:
                file.write(secret)
                file.flush()
                os.fsync(file.fileno())
        return cls(secret)

    @classmethod
    def there(cls, home: Path) -> Keys | None:
        """Of the key file that is there; nothing is made. Raises ValueError as ``of`` does."""
        secret = _read(home / KEY_FILE)
        return cls(secret) if secret else None

    @classmethod
    def passing(cls) -> Keys:
        """Keys that nothing keeps, for a gateway that has to do without its key file."""
        return cls(os.urandom(_BYTES))

    def for_purpose(self, purpose: str) -> bytes:
        """A key of its own for each purpose, from which no other can be found."""
        return hmac.digest(self._secret, purpose.encode(), hashlib.sha256)

    def seal(self, text: str, row: str) -> str:
        """``text`` so that only this key file opens it, and only as this row."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # where it is used

        nonce = os.urandom(_NONCE)
        sealed = AESGCM(self.for_purpose("sealed")).encrypt(nonce, text.encode(), row.encode())
        return _FORM + base64.b64encode(nonce + sealed).decode()

    def open(self, sealed: str, row: str) -> str:
        """What was sealed as ``row``; raises WrongKey."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            raw = base64.b64decode(sealed.removeprefix(_FORM), validate=True)
            opened = AESGCM(self.for_purpose("sealed")).decrypt(
                raw[:_NONCE], raw[_NONCE:], row.encode()
            )
        except (InvalidTag, ValueError) as fault:
            raise WrongKey(f"{row} was sealed with another key") from fault
        return opened.decode()


def _read(path: Path) -> bytes:
    """The key, or nothing when there is none."""
    try:
        secret = path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as fault:
        raise ValueError(f"{path} cannot be read: {fault.strerror}") from fault
    if secret and len(secret) != _BYTES:
        raise ValueError(
            f"{path} is no key of Laneway ({len(secret)} bytes instead of {_BYTES}): put the"
            " right one back, or remove it; secrets saved on the page must be entered anew then"
        )
    return secret
