"""Which network addresses are public. Pure.

What is private, local to a machine or a link, or means another address in disguise is not.
"""

from __future__ import annotations

import ipaddress

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Nobody's, though some versions of the library take them for public.
_NOBODY = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")))


def is_public(address: str) -> bool:
    """Whether an IPv4 or IPv6 address can be reached from everywhere. Raises ValueError."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        if found in _NAT64:
            return _public(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
        hidden = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        inner = [one for one in hidden if one is not None]
        if found.ipv4_mapped is not None:
            return _public(found.ipv4_mapped)
        return _public(found) and all(map(_public, inner)) and not found.is_site_local
    return _public(found)


def _public(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    wrong = found.is_multicast or found.is_reserved or found.is_unspecified or found.is_loopback
    return found.is_global and not wrong and not any(found in net for net in _NOBODY)
