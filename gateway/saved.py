"""What was saved on the settings page: opened, sealed again, and joined with what is written.

Secrets are sealed with the key file of the home. One that another key sealed counts as not set,
and is named; nothing that was saved ever stops a start. It must not know what a setting does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.store import glance, rows
from core.store.errors import StoreError
from core.store.records import SettingRow
from core.store.rows import Row
from gateway.config import Settings, Settled, Written, home_of, settle, written
from gateway.editors import Kind, holds_secret, kind_of
from gateway.keys import Keys, WrongKey
from gateway.paths import DATABASE
from gateway.setting import Setting

SEALED = "sealed:"  # how a sealed value begins in the database
LOST = "was sealed with another key file, so it counts as not set: enter it anew"


@dataclass(frozen=True, slots=True)
class Saved:
    """Rows as they are stored, and their values as they were typed. Holds secrets."""

    rows: Mapping[str, SettingRow] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)  # what cannot be opened, and why


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings of a home as a command sees them, and where they come from."""

    settled: Settled
    written: Written
    saved: Saved
    key_trouble: str = ""

    @property
    def settings(self) -> Settings:
        return self.settled.settings


def opened(stored: Mapping[str, SettingRow], keys: Keys | None) -> Saved:
    """Values of rows; without keys no secret can be opened."""
    values: dict[str, str] = {}
    lost: dict[str, str] = {}
    for name, row in stored.items():
        if not row.value.startswith(SEALED):
            values[name] = row.value
            continue
        try:
            if keys is None:
                raise WrongKey(name)
            values[name] = keys.open(row.value.removeprefix(SEALED), _place(name))
        except WrongKey:
            lost[name] = LOST
    return Saved(stored, values, lost)


def row_of(setting: Setting, value: str, keys: Keys, at: int, by: str) -> Row:
    """How a value is stored."""
    name = setting.name
    secret = kind_of(setting) is Kind.SECRET or holds_secret(value) or value.startswith(SEALED)
    stored = SEALED + keys.seal(value, _place(name)) if secret else value
    return rows.setting(SettingRow(name, stored, at, by))


def _place(name: str) -> str:
    return f"settings:{name}"


def look(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Loaded:
    """The settings of this process with those that were saved; raises BadSettings.

    It changes nothing. A database that cannot be read counts as empty: whoever works with it says
    what is wrong with it.
    """
    said = written(environ, cwd)
    # Not by settling what is written alone: what is wrong then is only told together with what is
    # saved, and nothing that is written makes a home that cannot be named.
    home = home_of(said.given)
    stored: Mapping[str, SettingRow] = {}
    if os.path.isfile(home / DATABASE):  # false as well where nothing in it may be looked at
        try:
            stored = glance.settings(home / DATABASE)
        except StoreError:
            stored = {}
    keys, trouble = None, ""
    if any(row.value.startswith(SEALED) for row in stored.values()):
        try:
            keys = Keys.there(home)
        except ValueError as fault:
            trouble = str(fault)
    saved = opened(stored, keys)
    return Loaded(settle(said, saved.values, saved.lost), said, saved, trouble)


def load(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Settings:
    """The same, where only the settings matter."""
    return look(environ, cwd).settings


def problems(settled: Settled, key_trouble: str = "") -> list[str]:
    """What of the saved settings does not count, in words."""
    found = [key_trouble] if key_trouble else []
    for name, why in settled.left_out.items():
        words = why if name in why else f"{name} {why}"
        found.append(f"{words} (saved on the settings page, left out)")
    return [*dict.fromkeys(found), *settled.together]
