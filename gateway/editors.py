"""How settings are edited: what each is called, which editor fits it, what may be shown of it.

Pure. It must not know where values come from or what they do.
"""

from __future__ import annotations

import types
import typing
from datetime import tzinfo
from decimal import Decimal
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from gateway.setting import Setting
from gateway.settings_table import PREFIX, Settings
from gateway.spotting import secrets_in
from gateway.values import MailServer, Secret


class Kind(StrEnum):
    """An editor of the page."""

    TEXT = "text"
    CHOICE = "choice"
    ON_OFF = "on_off"
    NUMBER = "number"
    DURATION = "duration"
    MONEY = "money"
    LIST = "list"  # one entry a line
    ZONE = "zone"
    SECRET = "secret"  # written, never read


_KINDS: dict[type, Kind] = {
    bool: Kind.ON_OFF,
    int: Kind.NUMBER,
    float: Kind.DURATION,
    Decimal: Kind.MONEY,
    frozenset: Kind.LIST,
    tzinfo: Kind.ZONE,
    Secret: Kind.SECRET,
    MailServer: Kind.SECRET,
    str: Kind.TEXT,
    tuple: Kind.TEXT,
    Path: Kind.TEXT,
}
_SPELLED = {
    "Acp": "ACP", "Api": "API", "Url": "address", "Smtp": "Mail server", "Openai": "OpenAI",
    "Id": "ID", "Env": "variables", "Claude": "Claude Code", "Emails": "mail addresses",
    "Readonly": "read-only", "Base": "address",
}  # fmt: skip
_CALLED = {
    "LANEWAY_HOME": "Data directory",
    "LANEWAY_TELEGRAM_TOKEN": "Bot token",
    "LANEWAY_SLACK_BOT_TOKEN": "Bot token",
    "LANEWAY_SLACK_APP_TOKEN": "App token",
    "LANEWAY_DISCORD_TOKEN": "Bot token",
    "LANEWAY_TELEGRAM_API_BASE": "Bot API address",
    "LANEWAY_SLACK_API_BASE": "Web API address",
    "LANEWAY_DISCORD_API_BASE": "API address",
    "LANEWAY_DISCORD_AUTO_THREAD": "A mention opens a thread",
    "LANEWAY_TELEGRAM_MODE": "How updates arrive",
    "LANEWAY_SLACK_MODE": "How events arrive",
    "LANEWAY_SLACK_STREAMS": "Growing answers",
    "LANEWAY_BOTS": "Other bots",
    "LANEWAY_BOT_TURNS": "How often bots are answered",
    "LANEWAY_ENGINE": "Default engine",
    "LANEWAY_ACP_READONLY_MODE": "ACP read-only mode",
    "LANEWAY_OPENAI_BASE_URL": "OpenAI-compatible server",
    "LANEWAY_OPENAI_CONTEXT": "OpenAI conversation length",
    "LANEWAY_ENGINE_ENV": "Variables for engines",
    "LANEWAY_WORKSPACE": "Shared workspace",
    "LANEWAY_APPROVALS": "Approval mode",
    "LANEWAY_APPROVERS": "Who approves",
    "LANEWAY_APPROVAL_TIMEOUT_UNATTENDED": "Approval timeout, unattended",
    "LANEWAY_WHEN_BUSY": "Message in a busy lane",
    "LANEWAY_MAX_TURNS": "Turns at once",
    "LANEWAY_MAX_TURNS_PER_PERSON": "Turns at once per person",
    "LANEWAY_MAX_SIDE": "Side answers at once",
    "LANEWAY_BUDGET_PERSON_DAY": "Daily budget per person",
    "LANEWAY_BUDGET_DAY": "Daily budget of all",
    "LANEWAY_TURN_IDLE_TIMEOUT": "Longest silence of a turn",
    "LANEWAY_TURN_TIMEOUT": "Longest turn",
    "LANEWAY_STOP_GRACE": "Grace of a stop",
    "LANEWAY_DRAIN_TIMEOUT": "Time to finish at shutdown",
    "LANEWAY_AFTER_CRASH": "After a crash",
    "LANEWAY_PREVIEW": "Live previews",
    "LANEWAY_RECEIPTS": "Receipts",
    "LANEWAY_MIN_INTERVAL": "Least interval",
    "LANEWAY_AGENT_JOBS": "Jobs made by agents",
    "LANEWAY_WATCH_PRIVATE": "Watch private addresses",
    "LANEWAY_CATCH_UP": "Catch up missed runs",
    "LANEWAY_TRANSCRIBE_URL": "Transcription service",
    "LANEWAY_TRANSCRIBE_API_KEY": "Its key",
    "LANEWAY_TRANSCRIBE_MODEL": "Its model",
    "LANEWAY_WEB_HOST": "Listening address",
    "LANEWAY_WEB_PORT": "Listening port",
    "LANEWAY_WEB_URL": "Public address",
    "LANEWAY_ADMIN_EMAILS": "Admins’ mail addresses",
    "LANEWAY_MEMBER_EMAILS": "Members’ mail addresses",
    "LANEWAY_SIGNIN_LIMITS": "Sign-in limits",
    "LANEWAY_SMTP_URL": "Mail server",
    "LANEWAY_MAIL_FROM": "Sender of mails",
    "LANEWAY_METRICS_TOKEN": "Token for metrics",
    "LANEWAY_TIMEZONE": "Time zone",
}


@cache
def _types() -> dict[str, object]:
    return typing.get_type_hints(Settings)


def _plain(setting: Setting) -> type:
    """The type of a setting's value, without ``| None`` and what is inside of it."""
    hint = _types()[setting.field]
    if typing.get_origin(hint) is types.UnionType:
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    plain = typing.get_origin(hint) or hint
    assert isinstance(plain, type)
    return plain


def kind_of(setting: Setting) -> Kind:
    """Which editor fits; a type that none of them edits is a text."""
    plain = _plain(setting)
    return Kind.CHOICE if issubclass(plain, Enum) else _KINDS.get(plain, Kind.TEXT)


def choices_of(setting: Setting) -> tuple[str, ...]:
    """What can be chosen, in the order of the table; an empty one where nothing may be chosen."""
    plain = _plain(setting)
    if not issubclass(plain, StrEnum):
        return ()
    none = ("",) if not setting.default else ()
    return (*none, *(one.value for one in plain))


def label_of(setting: Setting) -> str:
    """What it is called, in words for people."""
    if setting.name in _CALLED:
        return _CALLED[setting.name]
    words = setting.name.removeprefix(PREFIX).split("_")
    spelled = [_SPELLED.get(word.capitalize(), word.lower()) for word in words]
    return spelled[0][:1].upper() + " ".join(spelled)[1:]


def holds_secret(value: str) -> bool:
    """Whether an address has a password in it, or a command line what looks like a secret."""
    if secrets_in(value):
        return True
    if "://" not in value:
        return False
    try:
        return bool(urlsplit(value).password)
    except ValueError:
        return True  # nobody can tell


def advice(setting: Setting, value: str) -> str:
    """What is to be said of a value that counts, but had better be another; "" when nothing."""
    if _plain(setting) is not tuple or not secrets_in(value):
        return ""
    return (
        "There is what looks like a secret in this command line, and everybody on this machine can"
        " see the command lines of what runs. Set it as a variable where the gateway is started,"
        " and name that variable in LANEWAY_ENGINE_ENV."
    )


def shown(setting: Setting, value: str) -> str:
    """A value as it may be seen; nothing of a secret."""
    return "" if kind_of(setting) is Kind.SECRET or holds_secret(value) else value


def entries(value: str) -> list[str]:
    """A list as it was written."""
    return [entry for entry in map(str.strip, value.split(",")) if entry]
