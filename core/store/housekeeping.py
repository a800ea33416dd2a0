"""What the store is rid of in time, and how long each kind is kept.

Rows to write, as in rows.py.
"""

from __future__ import annotations

from datetime import UTC, datetime

from core.store.rows import Row

KEPT = 30 * 24 * 3600 * 1000  # ms; platforms redeliver for a day or so
ACTS_KEPT = 365 * 24 * 3600 * 1000  # ms; what admins did
TIDIED_AT_ONCE = 2000


def tidy(now: int) -> tuple[Row, ...]:
    """Delete what has served its time: a bounded number of each kind, so call it now and then."""
    old = {"before": now - KEPT, "limit": TIDIED_AT_ONCE}
    day = datetime.fromtimestamp((now - KEPT) / 1000, UTC).date().isoformat()
    return (
        ("tidy.seen", old),
        ("tidy.buttons", old),
        ("tidy.unreadable", old),
        ("tidy.firings", old),
        ("tidy.watches", {"since": now - KEPT}),
        ("tidy.budgets", old),
        ("tidy.spent", {"day": day, "limit": TIDIED_AT_ONCE}),
        ("tidy.pairings", {"before": now}),
        ("audit.tidy", {"before": now - ACTS_KEPT}),
    )
