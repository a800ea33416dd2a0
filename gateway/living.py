"""The settings of a gateway that runs: who saves what, and who is told when they change.

The one owner of the present settings. A change is checked as a whole, stored with its audit rows in
one commit, and then applied; two who change the same are told of each other. It must not know what
a setting does (see applying.py), nor HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from core.clock import Clock
from core.store import reads, rows, web
from core.store.records import SettingRow
from core.store.rows import Row
from core.store.store import Store
from gateway import saved
from gateway.config import ADDING, BadSettings, Settings, Settled, Written, contradictions, settle
from gateway.control import OWNER
from gateway.editors import Kind, advice, holds_secret, kind_of, shown
from gateway.keys import Keys
from gateway.saved import Saved
from gateway.setting import Applies, Setting
from gateway.settings_table import table

log = logging.getLogger("laneway")

_UNREADABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
SAVED = "setting.saved"  # the act
ACTS_LOOKED = 500  # of the audit, for who removed what
SHOWN_MOST = 200  # characters of a value in the audit

Effect = Callable[[Settings, Settings], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Change:
    """What somebody wants saved: a value, or None for what counts without it.

    ``based``: the revision of the value they have seen, 0 when nothing was saved.
    """

    value: str | None
    based: int = 0


@dataclass(frozen=True, slots=True)
class Clash:
    """Somebody else changed it meanwhile. ``value`` is theirs; None: nothing is saved any more."""

    name: str
    by: str
    at: int  # ms
    value: str | None
    revision: int


class Wrong(Exception):
    """Nothing was saved: what is wrong, by the name of the setting."""

    def __init__(self, wrong: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {why}" for name, why in wrong.items()))
        self.wrong = wrong


class Clashed(Exception):
    """Nothing was saved: others were faster."""

    def __init__(self, clashes: Sequence[Clash]) -> None:
        super().__init__(", ".join(clash.name for clash in clashes))
        self.clashes = clashes


class Living:
    """One for the process. Made by ``open`` when the store is there."""

    def __init__(
        self, store: Store, clock: Clock, said: Written, keys: Keys, key_trouble: str = ""
    ) -> None:
        self.written = said
        self.key_trouble = key_trouble  # why no secret can be saved or opened
        self.keys = keys
        self.saved = Saved()
        self.settled = Settled(Settings())
        self._store = store
        self._clock = clock
        self._rows = {row.name: row for row in table()}
        self._effects: list[Effect] = []
        self._saving = asyncio.Lock()
        self._given = False  # as a whole, so that nothing can be changed

    @classmethod
    async def open(
        cls, store: Store, clock: Clock, settings: Settings, said: Written | None
    ) -> Living:
        """With what is stored; without ``said`` the settings are as they were given, for good."""
        try:
            keys, trouble = await asyncio.to_thread(Keys.of, settings.home), ""
        except ValueError as fault:
            keys, trouble = Keys.passing(), str(fault)
        made = cls(store, clock, said or Written(), keys, trouble)
        if said is None:
            made.settled, made._given = Settled(settings), True
            return made
        made._read(await reads.settings(store))
        made._warn()
        return made

    @property
    def settings(self) -> Settings:
        return self.settled.settings

    def on_change(self, effect: Effect) -> None:
        """Await ``effect`` with the old and the new settings, after they were stored."""
        self._effects.append(effect)

    def problems(self) -> list[str]:
        """What of the saved settings does not count, in words."""
        return saved.problems(self.settled, self.key_trouble)

    def fixed(self, setting: Setting) -> bool:
        """Whether nothing that is saved here would count."""
        if setting.applies is Applies.ENVIRONMENT:
            return True
        return setting.field not in ADDING and self.written.fixed(setting.name) is not None

    def with_changes(self, changes: Mapping[str, Change]) -> Settled:
        """How the settings would be; raises Wrong. Nothing is saved."""
        wrong = {name: why for name, one in changes.items() if (why := self._refusal(name, one))}
        if wrong:
            raise Wrong(wrong)
        if not changes:
            return self.settled
        values = dict(self.saved.values)
        lost = {name: why for name, why in self.saved.lost.items() if name not in changes}
        for name, change in changes.items():
            values.pop(name, None)
            if change.value:
                values[name] = change.value
        try:
            wanted = settle(self.written, values, lost)
        except BadSettings as bad:  # without what is saved now, what is written does not fit
            first = next(iter(changes))
            raise Wrong({_blamed("", why, changes) or first: why for why in bad.problems}) from bad
        self._whole(changes, wanted)
        return wanted

    async def save(self, changes: Mapping[str, Change], by: str) -> Settings:
        """Check, store and apply; returns the settings as they are now.

        Raises Clashed when somebody else was faster, and Wrong.
        """
        async with self._saving:
            changes = {name: one for name, one in changes.items() if self._differs(name, one)}
            if clashes := await self._clashes(changes):
                raise Clashed(clashes)
            wanted = self.with_changes(changes)
            if not changes:
                return self.settings
            old = self.settings
            await self._store.save(*self._written_rows(changes, wanted, by))
            self._read(await reads.settings(self._store))
            log.info("%s changed settings: %s", by, ", ".join(sorted(changes)))
            for effect in self._effects:
                await effect(old, self.settings)
            return self.settings

    # Inside -------------------------------------------------------------------------------

    def _read(self, stored: Mapping[str, SettingRow]) -> None:
        self.saved = saved.opened(stored, None if self.key_trouble else self.keys)
        self.settled = settle(self.written, self.saved.values, self.saved.lost)

    def _warn(self) -> None:
        for problem in self.problems():
            log.warning("settings: %s", problem)
        for setting in table():
            given = self.written.fixed(setting.name)
            value = given.value if given else self.saved.values.get(setting.name, "")
            if words := advice(setting, value):
                log.warning("%s: %s", setting.name, words)

    def revision(self, name: str) -> int:
        """Of what is saved; 0 when nothing is."""
        row = self.saved.rows.get(name)
        return row.saved_at if row else 0

    def _differs(self, name: str, change: Change) -> bool:
        if name in self.saved.lost:
            return True
        return (change.value or None) != self.saved.values.get(name)

    async def _clashes(self, changes: Mapping[str, Change]) -> list[Clash]:
        found = []
        for name, change in changes.items():
            revision = self.revision(name)
            if name in self._rows and change.based != revision:
                found.append(await self._clash(name, revision))
        return found

    async def _clash(self, name: str, revision: int) -> Clash:
        row = self.saved.rows.get(name)
        if row is not None:
            value = shown(self._rows[name], self.saved.values.get(name, ""))
            return Clash(name, row.saved_by, row.saved_at, value, revision)
        for act in await web.acts(self._store, 2**62, ACTS_LOOKED, act=SAVED):
            if act.about == name:
                return Clash(name, act.person, act.at, None, revision)
        return Clash(name, "", 0, None, revision)

    def _refusal(self, name: str, change: Change) -> str:
        """Why this cannot be saved as it is; "" when it can."""
        row = self._rows.get(name)
        if row is None:
            return "is no setting"
        if self._given:
            return "was given to this gateway for good, so it cannot be changed here"
        if change.value and _UNREADABLE.search(change.value):
            return "has a line break or a sign that cannot be seen in it; type it by hand"
        if row.applies is Applies.ENVIRONMENT:
            return "can only be set in the environment or in .env, before the start"
        if change.value and self.fixed(row):
            given = self.written.fixed(name)
            return f"is set in {given.source if given else 'the environment'}, which goes first"
        if change.value:
            try:
                row.read(change.value)
            except ValueError as fault:
                return str(fault)
            if self.key_trouble and (kind_of(row) is Kind.SECRET or holds_secret(change.value)):
                return f"cannot be kept safe now: {self.key_trouble}"
        return ""

    def _whole(self, changes: Mapping[str, Change], wanted: Settled) -> None:
        """Raises Wrong for what does not fit together and did before."""
        wrong = {
            name: why
            for name, why in wanted.left_out.items()
            if name in changes or name not in self.settled.left_out
        }
        before = {why for _, why in contradictions(self.settings)}
        for names, why in contradictions(wanted.settings):
            if why not in before:
                about = [name for name in names if name in changes] or [next(iter(changes))]
                wrong |= dict.fromkeys(about, why)
        if wrong:
            raise Wrong({_blamed(name, why, changes): why for name, why in wrong.items()})

    def _written_rows(self, changes: Mapping[str, Change], wanted: Settled, by: str) -> list[Row]:
        found: list[Row] = []
        for name, change in changes.items():
            now = max(self._clock.now(), self.revision(name) + 1)
            setting = self._rows[name]
            if change.value:
                found.append(saved.row_of(setting, change.value, self.keys, now, by))
            else:
                found.append(rows.remove_setting(name))
            found.append(web.act(now, by, SAVED, name, self._told(setting, change)))
        if wanted.settings.admin_emails and not self.settings.admin_emails:
            found.append(web.remove_signins_of(OWNER))  # an admin has a mailbox now
        return found

    def _told(self, setting: Setting, change: Change) -> str:
        """A change in words for the audit; nothing of a secret."""
        before = self.saved.values.get(setting.name, "")
        secret = kind_of(setting) is Kind.SECRET
        if not change.value:
            return "removed" if secret or holds_secret(before) else f"removed; was {_cut(before)}"
        if secret or holds_secret(change.value) or holds_secret(before):
            return "replaced" if setting.name in self.saved.rows else "set"
        return f"{_cut(before)} → {_cut(change.value)}" if before else _cut(change.value)


def _cut(value: str) -> str:
    return value if len(value) <= SHOWN_MOST else f"{value[:SHOWN_MOST]}…"


def _blamed(name: str, why: str, changes: Mapping[str, Change]) -> str:
    """Beside which of the changed fields a reason stands."""
    if name in changes:
        return name
    return next((one for one in changes if one in why), next(iter(changes), name))
