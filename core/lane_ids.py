"""How a lane is named. Pure; knows addresses and nothing else.

A lane's id is given once, from its first address, and never changes: when a chat moves, the
address column of the lane's row moves and the id stays. Its channel is fixed for ever.
"""

from __future__ import annotations

import re

from core.messages import Address

LOCAL = "local"  # the terminal's and the web chat's channel; its lanes are named by people
_LOCAL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def lane_id(address: Address) -> str:
    """The id of a lane that is first seen at ``address``: ``main``, ``telegram:-100…:36``."""
    return address.chat if address.channel == LOCAL else str(address)


def channel_of(lane: str) -> str:
    """The channel a lane belongs to."""
    channel, colon, _ = lane.partition(":")
    return channel if colon else LOCAL


def local_name(name: str) -> str:
    """``name`` if a local lane may be called so; otherwise ValueError in plain words."""
    if _LOCAL_NAME.fullmatch(name):
        return name
    raise ValueError(
        f"{name!r} cannot name a lane: use letters, digits, dot, dash and underscore, at most 64"
    )
