"""From where a request comes, what a browser is called, and what an address is."""

from __future__ import annotations

import pytest

from gateway.values import in_networks, network
from gateway.web import peer
from gateway.web.browsers import browser_name
from gateway.web.mailbox import NoAddress, mailbox

PROXY = frozenset({network("127.0.0.1"), network("10.0.0.0/8"), network("::1")})


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("::ffff:91.108.6.87", True),
        ("91.108.6.87", True),
        ("::ffff:91.108.8.1", False),
        ("::ffff:5b6c:0657", True),
        ("::ffff:91.108.3.255", False),
        ("91.108.4.0", True),
        ("91.108.7.255", True),
        ("2001:db8::1", False),
        ("", False),
        ("unknown", False),
    ],
)
def test_an_ipv4_address_written_as_ipv6_is_that_address(address: str, inside: bool) -> None:
    for written in ("91.108.4.0/22", "::ffff:91.108.4.0/118"):
        assert in_networks(address, [network(written)]) is inside


@pytest.mark.parametrize(
    ("remote", "forwarded", "found"),
    [
        ("198.51.100.1", ["1.2.3.4"], "198.51.100.1"),  # nobody who is believed
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["1.2.3.4, 198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["1.2.3.4", "198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["1.2.3.4, 198.51.100.7, 10.1.2.3"], "198.51.100.7"),
        ("::1", ["2001:db8::7"], "2001:db8::7"),
        ("::ffff:127.0.0.1", ["::ffff:198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["10.0.0.5, 10.0.0.6"], "10.0.0.5"),
        ("127.0.0.1", ["198.51.100.7, nonsense"], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.7,"], "127.0.0.1"),
        ("127.0.0.1", ["evil, 10.0.0.6"], "10.0.0.6"),
        ("127.0.0.1", ["198.51.100.7:4711"], "198.51.100.7"),
        ("127.0.0.1", ["[2001:db8::7]:443"], "2001:db8::7"),
        ("127.0.0.1", ["[2001:db8::7]"], "2001:db8::7"),
        ("127.0.0.1", ["1" * 100_000], "127.0.0.1"),
        ("", ["198.51.100.7"], "unknown"),
        ("somewhere", [], "unknown"),
        ("fe80::1%eth0", [], "fe80::1"),
    ],
)
def test_the_rightmost_address_that_no_trusted_proxy_has_is_the_client(
    remote: str, forwarded: list[str], found: str
) -> None:
    assert peer.peer(remote, forwarded, PROXY) == found


@pytest.mark.parametrize(
    ("address", "one"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("unknown", "unknown"),
    ],
)
def test_an_ipv6_customer_is_one_network(address: str, one: str) -> None:
    assert peer.network(address) == one


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; rv:130.0) Gecko/20100101 Firefox/130.0",
         "Firefox on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1",
         "Safari on iPhone"),
        ("Mozilla/5.0 (X11; Linux x86_64) Chrome/130.0 Safari/537.36 Edg/130.0", "Edge on Linux"),
        ("Mozilla/5.0 (Linux; Android 15) Chrome/130.0 Mobile Safari/537.36", "Chrome on Android"),
        ("curl/8.5", "curl"),
        ("Linux", "a browser on Linux"),
        ("", "an unknown browser"),
        ("\r\nBcc: mal@evil.test <b>", "an unknown browser"),
    ],
)  # fmt: skip
def test_a_browser_is_called_by_a_name_from_a_list(header: str, name: str) -> None:
    assert browser_name(header) == name


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        (" Ana@Example.ORG ", "ana@example.org"),
        ("ana+x@example.org", "ana+x@example.org"),
        ("ana@xn--exmple-cua.org", "ana@xn--exmple-cua.org"),
        ("\u212aatrin@example.org", ""),  # becomes a plain k when it is folded
        ("@example.org", ""),
        ("ana@", ""),
        ("a@b@example.org", ""),
        ("ana@example..org", ""),
        (".ana@example.org", ""),
        ("a..b@example.org", ""),
        (" " + "a" * 242 + "@example.org", "a" * 242 + "@example.org"),
    ],
)
def test_addresses_are_compared_trimmed_and_in_lower_case(typed: str, address: str) -> None:
    assert mailbox(typed) == address


@pytest.mark.parametrize("typed", ["", "ana", "a@b.c\n", "\ud800@b.c", "a" * 251 + "@b.c"])
def test_what_cannot_be_an_address_is_refused(typed: str) -> None:
    with pytest.raises(NoAddress):
        mailbox(typed)
