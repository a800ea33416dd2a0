"""What single settings look like: each reader turns text into a typed value or says what is wrong.

Pure: no environment, no files. A reader raises ValueError whose message is plain words that go on
after the setting's name, such as "must be a duration like 90s, 15m, 6h or 2d".
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import tzinfo
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, available_timezones

import tzlocal

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LONGEST = 3650 * 86400.0  # seconds a setting may name; an instant so far away can still be shown
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Secret:
    """A value that is never shown by accident; only ``reveal`` gives it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(set)" if self._value else "Secret(empty)"

    def __str__(self) -> str:
        return "[secret]" if self._value else ""

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``count`` in ``per`` seconds."""

    count: int
    per: float


@dataclass(frozen=True, slots=True)
class SigninLimits:
    """How often somebody may try to sign in, by what is counted; None: as often as they like."""

    code: Rate | None = None
    network: Rate | None = None
    mail: Rate | None = None
    failure: Rate | None = None


class Tls(StrEnum):
    """How a mail server is spoken to."""

    STARTTLS = "smtp"
    TLS = "smtps"
    NONE = "smtp+plain"


@dataclass(frozen=True, slots=True)
class MailServer:
    tls: Tls
    host: str
    port: int
    user: str
    password: Secret


# Plain values -----------------------------------------------------------------------------


def text(value: str) -> str:
    return value


def secret(value: str) -> Secret:
    if any(mark.isspace() for mark in value):
        raise ValueError("must not contain blanks")
    if not (value.isascii() and value.isprintable()):  # it travels in a header
        raise ValueError("has a character that no key or token has: copy it anew")
    return Secret(value)


def slack_token(kind: str) -> Callable[[str], Secret]:
    """``kind``: how it begins. Slack has several, which are easily taken for each other."""

    def read(value: str) -> Secret:
        if re.match(r"xox|xapp-", value) and kind not in value[:16]:
            raise ValueError(f"is another token of Slack: this one starts with {kind}")
        return secret(value)

    return read


def on_off(value: str) -> bool:
    match value.lower():
        case "on" | "yes" | "true" | "1":
            return True
        case "off" | "no" | "false" | "0":
            return False
    raise ValueError("must be on or off")


def whole(least: int = 1, most: int = 1_000_000) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(value)

    return read


def duration(value: str) -> float:
    """Seconds; zero is allowed."""
    found = re.fullmatch(r"([0-9]{1,18})\s*([smhd])", value.lower())
    if found is None:
        raise ValueError("must be a duration like 90s, 15m, 6h or 2d")
    seconds = float(int(found[1]) * _UNITS[found[2]])
    if seconds > LONGEST:
        raise ValueError("is longer than ten years: write at most 3650d")
    return seconds


def some_duration(value: str) -> float:
    """Seconds, more than zero."""
    seconds = duration(value)
    if not seconds:
        raise ValueError("must be longer than zero")
    return seconds


def money(value: str) -> Decimal | None:
    """US dollars."""
    if not value:
        return None
    if not re.fullmatch(r"\$?[0-9]{1,9}(\.[0-9]{1,6})?", value):
        raise ValueError("must be an amount in US dollars like 1.50 or $1.50")
    return Decimal(value.removeprefix("$"))


def rate(value: str) -> Rate:
    count, slash, span = value.partition("/")
    if not slash or not re.fullmatch(r"[0-9]{1,6}", count.strip()) or not int(count):
        raise ValueError("must be a number per time span, like 5/1m")
    return Rate(int(count), some_duration(span.strip()))


def choice(kind: type[E]) -> Callable[[str], E]:
    def read(value: str) -> E:
        try:
            return kind(value.lower())
        except ValueError:
            names = ", ".join(kind)
            raise ValueError(f"must be one of {names}") from None

    return read


def optional(kind: type[E]) -> Callable[[str], E | None]:
    read = choice(kind)
    return lambda value: read(value) if value else None


def folder(value: str) -> Path:
    try:
        return Path(os.path.abspath(Path(value).expanduser()))
    except RuntimeError:
        raise ValueError(f"has {value!r}: nobody has that name, write the whole path") from None


def maybe_folder(value: str) -> Path | None:
    return folder(value) if value else None


def command(value: str) -> tuple[str, ...]:
    """A command line as its words, quoted as in a shell."""
    try:
        return tuple(shlex.split(value))
    except ValueError:
        raise ValueError("has a quote that is not closed") from None


def zone(value: str) -> tzinfo:
    if not value:
        return machine_zone()
    if value not in available_timezones():
        raise ValueError("must be a time zone like Europe/Berlin or UTC")
    return ZoneInfo(value)


def machine_zone() -> tzinfo:
    """The machine's zone, and UTC where the machine names none that is known."""
    try:
        return tzlocal.get_localzone()
    except (LookupError, ValueError):
        return ZoneInfo("UTC")


# Addresses on the network -----------------------------------------------------------------


def url(*schemes: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if not value:
            return ""
        try:
            parts = urlsplit(value)
            good = parts.scheme in schemes and parts.hostname and (parts.port or 1)
        except ValueError:
            good = False
        if not good or any(mark.isspace() for mark in value):
            raise ValueError(f"must be an address that starts with {schemes[-1]}://")
        return value

    return read


def base_url(*schemes: str) -> Callable[[str], str]:
    """The same, without the slash at the end."""
    read = url(*schemes)
    return lambda value: read(value).rstrip("/")


def page_url(value: str) -> str:
    """The page's public address as browsers name its origin, without a standard port."""
    if not (address := base_url("http", "https")(value)):
        return ""
    parts = urlsplit(address)
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("must be like https://laneway.example.org, with no name, ? or # in it")
    standard = {"http": 80, "https": 443}[parts.scheme]
    netloc = parts.netloc.lower()
    if parts.port == standard:
        netloc = netloc.removesuffix(f":{standard}")
    return parts._replace(netloc=netloc).geturl()


def mail_server(value: str) -> MailServer | None:
    if not value:
        return None
    wrong = ValueError(
        "must look like smtp://user:password@host:587, smtps://host or smtp+plain://localhost:25"
        " (%-encode special characters of the password)"
    )
    try:
        parts = urlsplit(value)
        tls, host, port = Tls(parts.scheme), parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if not host or parts.path.strip("/") or parts.query or parts.fragment:
        raise wrong
    if tls is Tls.NONE and not loopback(host):
        raise ValueError("smtp+plain sends passwords in the clear: only this machine is allowed")
    standard = {Tls.STARTTLS: 587, Tls.TLS: 465, Tls.NONE: 25}[tls]
    user, password = unquote(parts.username or ""), Secret(unquote(parts.password or ""))
    return MailServer(tls, host, port or standard, user, password)


def loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return plain_ip(host).is_loopback
    except ValueError:
        return False


def plain_ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An IP address; an IPv4 address written as IPv6 counts as the IPv4 address it is."""
    address = ipaddress.ip_address(value)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def in_networks(peer: str, networks: Iterable[Network]) -> bool:
    """Whether an address lies in one of the networks; what is no address lies in none."""
    try:
        address = plain_ip(peer)
    except ValueError:
        return False
    return any(address in network for network in networks)


def network(value: str) -> Network:
    try:
        net = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise ValueError(f"has {value!r}, which is no address or network") from None
    # Whose length that is nobody can tell: /22 of it has every loopback address in it.
    written = plain_ip(value.partition("/")[0])
    if written.version != net.version and net.prefixlen < 96:
        raise ValueError(f"has {value!r}: write an IPv4 network as one, like {written}/24")
    mapped = net.network_address.ipv4_mapped if isinstance(net, ipaddress.IPv6Network) else None
    if mapped is not None and net.prefixlen >= 96:
        return ipaddress.ip_network(f"{mapped}/{net.prefixlen - 96}")
    return net


# Lists ------------------------------------------------------------------------------------


def listed(read: Callable[[str], T]) -> Callable[[str], frozenset[T]]:
    """A comma-separated list; blanks around the entries and empty entries do not count."""

    def read_all(value: str) -> frozenset[T]:
        wrong: list[str] = []
        found: set[T] = set()
        for entry in filter(None, map(str.strip, value.split(","))):
            try:
                found.add(read(entry))
            except ValueError as error:
                wrong.append(str(error))
        if wrong:
            raise ValueError("; ".join(wrong))
        return frozenset(found)

    return read_all


_PEOPLE = {"telegram": r"[1-9][0-9]{0,18}", "slack": r"[UWB][A-Z0-9]+", "discord": r"[0-9]{15,20}"}
_PLACES = {"telegram": r"-[1-9][0-9]{0,18}", "slack": r"[CGD][A-Z0-9]+", "discord": r"[0-9]{15,20}"}
_LIKE = {"telegram": "telegram:700000001", "slack": "slack:U0ANA", "discord": "discord:9100…"}


def person(value: str) -> str:
    channel, colon, ident = value.partition(":")
    if not colon or channel not in _PEOPLE:
        raise ValueError(f"has {value!r}: write channel:id, like {_LIKE['telegram']}")
    if re.fullmatch(_PEOPLE[channel], ident):
        return value
    if channel == "telegram" and re.fullmatch(_PLACES[channel], ident):
        raise ValueError(f"has {value!r}: that is a group; groups go into LANEWAY_PLACES")
    raise ValueError(
        f"has {value!r}: write the id, like {_LIKE[channel]} (/whoami tells it); user names can"
        " change hands, so they are not taken"
    )


def place(value: str) -> str:
    channel, colon, ident = value.partition(":")
    if not colon or channel not in _PLACES:
        raise ValueError(f"has {value!r}: write channel:id, like telegram:-1001900000001")
    if re.fullmatch(_PLACES[channel], ident):
        return value
    if channel == "telegram" and ident.isascii() and ident.isdigit():
        raise ValueError(
            f"has {value!r}: ids of Telegram groups start with a minus; direct messages of"
            " admins and members need no entry"
        )
    raise ValueError(f"has {value!r}: write the id (/whoami tells it), not a name")


def mail_address(value: str) -> str:
    """An address, or @domain; compared trimmed and case-folded, ASCII only."""
    if not re.fullmatch(r"[!-?A-~]*@[A-Za-z0-9.-]+", value) or len(value) > 254:
        raise ValueError(f"has {value!r}: write an address, or @example.org for a whole domain")
    return value.lower()


def mail_sender(value: str) -> str:
    """One address, alone or behind a name."""
    address = r"[!-;=?A-~]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*"
    if value and not re.fullmatch(rf"{address}|[^<>\r\n]*<{address}>", value):
        raise ValueError("must be an address like laneway@example.org, or Name <address>")
    return value


def variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError(f"has {value!r}, which is no name of an environment variable")
    if value.startswith("LANEWAY_"):
        raise ValueError(f"has {value}: the gateway's own settings are not handed to engines")
    return value


def signin_limits(value: str) -> SigninLimits:
    limits = SigninLimits()
    for entry in filter(None, map(str.strip, value.split(","))):
        name, _, span = (part.strip() for part in entry.partition("="))
        if name not in ("code", "network", "mail", "failure"):
            raise ValueError(f"has {entry!r}: the parts are code, network, mail and failure")
        try:
            limits = replace(limits, **{name: rate(span)})
        except ValueError as error:
            raise ValueError(f"has {entry!r}, which {error}") from None
    return limits


def telegram_token(value: str) -> Secret:
    if value and not re.fullmatch(r"[0-9]+:[A-Za-z0-9_-]+", value):
        raise ValueError("must be the whole token as BotFather gave it: digits, colon, letters")
    return Secret(value)


def telegram_hook_secret(value: str) -> Secret:
    if value and not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", value):
        raise ValueError("must be 1 to 256 letters, digits, _ or -")
    return Secret(value)


def host(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._:-]+", value):
        raise ValueError("must be an address or a name to listen on, like 127.0.0.1")
    return value
