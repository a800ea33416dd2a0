"""From where a request comes: the address of the browser, also behind proxies. Pure.

A proxy adds to ``X-Forwarded-For`` at its right end; what stands further left was written by
whoever called it, and may be anything. So it is read from the right, and only as long as the one
who wrote it is trusted. ``Forwarded`` is never read: no two proxies would have to agree.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from gateway.values import Network, in_networks, plain_ip

UNKNOWN = "unknown"
_SITE = 64  # bits of an IPv6 address that name one customer of a provider
_PORT = re.compile(r"\[(.+)\](?::\d+)?|([^:]+):\d+")  # [2001:db8::1]:443, 198.51.100.7:443


def peer(remote: str, forwarded: Iterable[str], trusted: frozenset[Network]) -> str:
    """The address a request comes from; ``forwarded``: the values of X-Forwarded-For, in order."""
    known = _address(remote)
    entries = [entry for value in forwarded for entry in value.split(",")]
    while known != UNKNOWN and in_networks(known, trusted) and entries:
        before = _address(entries.pop())
        if before == UNKNOWN:
            break
        known = before
    return known


def network(address: str) -> str:
    """What counts as one somebody: an IPv4 address, the /64 of an IPv6 one."""
    if address == UNKNOWN or isinstance(plain_ip(address), ipaddress.IPv4Address):
        return address
    return str(ipaddress.ip_network(f"{address}/{_SITE}", strict=False))


def _address(text: str) -> str:
    """An address in its one way of writing; one of IPv4 written as IPv6 is the IPv4 address."""
    bare = text.strip()[:64]
    if (found := _PORT.fullmatch(bare)) is not None:
        bare = found[1] or found[2]
    try:
        return str(plain_ip(bare.partition("%")[0]))
    except ValueError:
        return UNKNOWN
