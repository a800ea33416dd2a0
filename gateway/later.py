"""Settings that wait for a later version: which of them this one cannot do without a word.

They are in the table so that one ``.env`` fits every version. What somebody relies on is refused;
of the rest it is said once that it does nothing yet. It must not know what settings mean elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.settings_table import Settings, table

UNUSED = frozenset(
    {
        "metrics_token",
    }
)


def missing_here(settings: Settings) -> Iterator[str]:
    """What is asked for and not part of this version, so that the gateway could not do its work."""
    return iter(())


def unused_here(settings: Settings) -> tuple[str, ...]:
    """Names of settings that were changed and do nothing in this version."""
    plain = Settings()
    return tuple(
        row.name
        for row in table()
        if row.field in UNUSED and getattr(settings, row.field) != getattr(plain, row.field)
    )
