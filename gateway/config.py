"""Where settings come from, and everything that is wrong with them at once.

The environment wins over ``.env`` in the current folder, that one over ``.env`` in the home, and
that over what was saved in the database. What was saved never stops a start: a saved value that
cannot count is left out, and it is told which. It must not know what a setting is used for.
"""

from __future__ import annotations

import difflib
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dotenv.parser import parse_stream

from gateway.choices import EngineName, SlackMode, TelegramMode
from gateway.setting import Applies, Setting
from gateway.settings_table import PREFIX, Settings, table
from gateway.spotting import secrets_in
from gateway.trouble import Trouble
from gateway.values import MailServer, Secret, folder

__all__ = [
    "ADDING",
    "BadSettings",
    "Given",
    "Settings",
    "Settled",
    "Source",
    "Written",
    "home_of",
    "load",
    "read",
    "secrets_of",
    "settle",
    "written",
]

_HOME = "LANEWAY_HOME"
NO_HOME = f"{_HOME} is a folder that cannot be looked into:"
ADDING = frozenset({"admins", "members", "places", "bots", "admin_emails", "member_emails"})


class BadSettings(Trouble):
    """The settings cannot be used; every problem is named."""

    status = 2

    def __init__(self, problems: list[str]) -> None:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        super().__init__(f"the settings cannot be used:{listed}")
        self.problems = problems


class Source(StrEnum):
    """Where a value comes from, in words for people."""

    ENVIRONMENT = "the environment"
    FOLDER = ".env in this folder"
    HOME = ".env in the home"
    SAVED = "saved on the settings page"


@dataclass(frozen=True, slots=True)
class Given:
    """A value as it was written, and where."""

    value: str
    source: Source


@dataclass(frozen=True, slots=True)
class Written:
    """What the environment and the files say, and what is wrong with them."""

    given: Mapping[str, Given] = field(default_factory=dict)
    problems: Sequence[str] = ()

    def fixed(self, name: str) -> Given | None:
        """What is written of a setting and goes before what is saved, also when it is empty."""
        return self.given.get(name)


@dataclass(frozen=True, slots=True)
class Settled:
    """Settings as they count. ``left_out``: what was saved and does not count, and why.

    ``together``: what is wrong with the settings as a whole because something was left out.
    """

    settings: Settings
    left_out: Mapping[str, str] = field(default_factory=dict)
    together: Sequence[str] = ()


def load(
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    saved: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of this process, or BadSettings with all that is wrong."""
    return settle(written(environ, cwd), saved or {}).settings


def written(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Written:
    """What the environment and the files of this process say."""
    return Written(*read(os.environ if environ is None else environ, cwd or Path.cwd()))


def read(environ: Mapping[str, str], cwd: Path) -> tuple[dict[str, Given], list[str]]:
    """Every LANEWAY_ name that is set anywhere, and what is wrong with the files."""
    problems: list[str] = []
    given = {
        name: Given(value.strip(), Source.ENVIRONMENT)
        for name, value in environ.items()
        if name.startswith(PREFIX)
    }
    here = cwd / ".env"
    _add(given, here, Source.FOLDER, problems)
    home = home_of(given)
    if not _reachable(home):
        problems.append(
            f"{NO_HOME} {home}: it belongs to somebody else, or its mode keeps everybody out."
            " Run laneway as the user to whom it belongs, or set another folder"
        )
    elif os.path.isfile(home):
        problems.append(f"{_HOME} must be a folder: {home} is a file")
    elif home / ".env" != here:
        before = _HOME in given
        _add(given, home / ".env", Source.HOME, problems)
        moved = home_of(given) != home
        if not before:
            given.pop(_HOME, None)
        if moved:
            problems.append(
                f"{_HOME} in {home / '.env'} names another folder: a home cannot move itself;"
                " set it in the environment instead"
            )
    return given, problems


def _reachable(home: Path) -> bool:
    """Whether it is not there yet, or can be looked into."""
    try:
        os.stat(home)
    except PermissionError:
        return False
    except OSError:
        return True
    return not os.path.isdir(home) or os.access(home, os.R_OK | os.X_OK)


def home_of(given: Mapping[str, Given]) -> Path:
    """The home that is named, else the usual one; a name that cannot count is taken as it is."""
    named = (given[_HOME].value if _HOME in given else "") or "~/.laneway"
    try:
        return folder(named)
    except ValueError:
        return Path(named)


def _add(given: dict[str, Given], path: Path, source: Source, problems: list[str]) -> None:
    try:
        with path.open(encoding="utf-8-sig") as stream:
            lines = list(parse_stream(stream))
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {getattr(error, 'strerror', '') or 'not UTF-8'}")
        return
    found: dict[str, str] = {}
    for line in lines:
        if line.error:
            problems.append(f"{path}, line {line.original.line}: write NAME=value")
        elif line.key and line.key.startswith(PREFIX):
            found[line.key] = (line.value or "").strip()
            # A list may stand on several lines; what nobody sees was copied along with a value.
            if not all(sign.isprintable() or sign in "\t\n" for sign in found[line.key]):
                at = f"{path}, line {line.original.line}"
                problems.append(
                    f"{at}: {line.key} has a character that cannot be seen: write it anew"
                )
                del found[line.key]
    for name, value in found.items():
        given.setdefault(name, Given(value, source))


def settle(
    said: Written, saved: Mapping[str, str], lost: Mapping[str, str] | None = None
) -> Settled:
    """Typed settings of what is written and what was saved; an empty value counts as not set.

    ``lost``: saved ones that cannot even be read, and why. Raises BadSettings for what is written.
    """
    rows = {row.name: row for row in table()}
    problems = list(said.problems)
    typed: dict[str, Any] = {}
    unread: set[str] = set()
    for name, one in said.given.items():
        if name not in rows:
            problems.append(_unknown(name, one, list(rows)))
        elif one.value:
            try:
                typed[rows[name].field] = rows[name].read(one.value)
            except ValueError as error:
                problems.append(f"{name} ({one.source}) {error}")
                unread.add(name)
    left_out = dict(lost or {})
    more = _saved(rows, said, saved, left_out)
    while True:
        settings = replace(Settings(), **_joined(typed, rows, more))
        found = [(names, why) for names, why in contradictions(settings) if not unread & names]
        guilty = {name: why for names, why in found for name in names if name in more}
        if not guilty:
            break
        left_out |= guilty
        more = {name: value for name, value in more.items() if name not in guilty}
    together = [why for names, why in found if names & left_out.keys()]
    problems += [why for names, why in found if not names & left_out.keys()]
    if problems:
        raise BadSettings(problems)
    return Settled(settings, left_out, together)


def _saved(
    rows: Mapping[str, Setting], said: Written, saved: Mapping[str, str], left_out: dict[str, str]
) -> dict[str, Any]:
    """Saved values as they can be read, by name; the others go into ``left_out``."""
    read: dict[str, Any] = {}
    for name, value in saved.items():
        row = rows.get(name)
        if row is None or row.applies is Applies.ENVIRONMENT:
            left_out[name] = "is no setting that can be saved in this version"
        elif value and (row.field in ADDING or said.fixed(name) is None):
            try:
                read[name] = row.read(value)
            except ValueError as error:
                left_out[name] = str(error)
    return read


def _joined(
    typed: Mapping[str, Any], rows: Mapping[str, Setting], more: Mapping[str, Any]
) -> dict[str, Any]:
    """What is written and what is saved, by field; lists add up."""
    joined = dict(typed)
    for name, value in more.items():
        at = rows[name].field
        joined[at] = joined[at] | value if at in joined else value
    return joined


def _unknown(name: str, one: Given, known: list[str]) -> str:
    # Without what all of them begin with, which would make any two of them look alike.
    ends = [row.removeprefix(PREFIX) for row in known]
    near = difflib.get_close_matches(name.removeprefix(PREFIX), ends, 1, 0.7)
    hint = f"did you mean {PREFIX}{near[0]}?" if near else "see .env.example for those there are"
    return f"{name} ({one.source}) is no setting: {hint}"


def contradictions(settings: Settings) -> Iterator[tuple[set[str], str]]:
    """Settings that are good one by one but not together: the names they are about, and why."""
    yield from _webhooks(settings)
    yield from _engines(settings)
    slack = {"LANEWAY_SLACK_BOT_TOKEN", "LANEWAY_SLACK_APP_TOKEN"}
    if settings.slack_app_token and not settings.slack_bot_token:
        yield slack, "LANEWAY_SLACK_APP_TOKEN also needs LANEWAY_SLACK_BOT_TOKEN"
    socket = settings.slack_mode is SlackMode.SOCKET
    if socket and settings.slack_bot_token and not settings.slack_app_token:
        yield slack, "LANEWAY_SLACK_BOT_TOKEN also needs LANEWAY_SLACK_APP_TOKEN in socket mode"
    if settings.workspace == settings.home:
        yield (
            {_HOME, "LANEWAY_WORKSPACE"},
            "LANEWAY_WORKSPACE is the home itself: agents would work on the gateway's database;"
            " name another folder",
        )


def _webhooks(settings: Settings) -> Iterator[tuple[set[str], str]]:
    wanted = (
        (
            settings.telegram_mode is TelegramMode.WEBHOOK,
            "LANEWAY_TELEGRAM_MODE",
            "LANEWAY_TELEGRAM_WEBHOOK_SECRET",
            settings.telegram_webhook_secret,
        ),
        (
            settings.slack_mode is SlackMode.WEBHOOK,
            "LANEWAY_SLACK_MODE",
            "LANEWAY_SLACK_SIGNING_SECRET",
            settings.slack_signing_secret,
        ),
    )
    for webhook, mode, secret, value in wanted:
        if webhook and not value:
            yield (
                {mode, secret},
                f"{mode}=webhook also needs {secret}: anyone could send updates else",
            )
        if webhook and not settings.web_url:
            yield {mode, "LANEWAY_WEB_URL"}, f"{mode}=webhook also needs LANEWAY_WEB_URL"


def _engines(settings: Settings) -> Iterator[tuple[set[str], str]]:
    chosen = {
        "LANEWAY_ENGINE": settings.engine,
        "LANEWAY_FALLBACK_ENGINE": settings.fallback_engine,
    }
    for name, engine in chosen.items():
        if engine is EngineName.ACP and not settings.acp_command:
            yield {name, "LANEWAY_ACP_COMMAND"}, f"{name}=acp also needs LANEWAY_ACP_COMMAND"
        if engine is EngineName.OPENAI and not settings.openai_base_url:
            base = "LANEWAY_OPENAI_BASE_URL"
            yield {name, base}, f"{name}=openai also needs {base}"
        if engine is EngineName.OPENAI and not settings.openai_model:
            yield {name, "LANEWAY_OPENAI_MODEL"}, f"{name}=openai also needs LANEWAY_OPENAI_MODEL"
    if settings.fallback_engine is settings.engine:
        yield set(chosen), "LANEWAY_FALLBACK_ENGINE is the same as LANEWAY_ENGINE: name another"


def secrets_of(settings: Settings) -> frozenset[str]:
    """Every text that must never be seen, passwords inside addresses among them."""
    found: set[str] = set()
    for one in fields(settings):
        match getattr(settings, one.name):
            case Secret() as secret:
                found.add(secret.reveal())
            case MailServer(user=user, password=Secret() as password) if password:
                # As AUTH PLAIN hands it over, too: in base64 a part of it cannot be found.
                found |= {password.reveal(), f"\0{user}\0{password.reveal()}"}
            case str() as value if "://" in value:
                parts = urlsplit(value)
                if word := unquote(parts.password or ""):  # alone, and as it is handed over
                    found |= {word, f"{unquote(parts.username or '')}:{word}"}
            case tuple() as command:
                found |= secrets_in(command)
    found.add(settings.telegram_token.reveal().partition(":")[2])
    return frozenset(found - {""})


def example() -> str:
    """The text of ``.env.example``: every setting with its default."""
    lines = [
        "# Every setting of Laneway with its default. Copy this file to .env in the folder you",
        "# start from, or in LANEWAY_HOME, and uncomment what you change. The environment wins",
        "# over both. Durations read 90s, 15m, 6h, 2d; money reads 1.50 (US dollars); lists are",
        "# comma-separated.",
    ]
    group = ""
    for row in table():
        if row.group != group:
            group = row.group
            lines += ["", f"# --- {group} ---"]
        lines += ["", *textwrap.wrap(row.meaning, 97, initial_indent="# ", subsequent_indent="# ")]
        lines.append(f"#{row.name}={row.default}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(example())
