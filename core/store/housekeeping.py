"""What is thrown away because nothing asks for it any more. Called once in a while."""

from __future__ import annotations

from core.store.store import Store

DAY = 86_400_000  # ms
IDENTITIES_KEPT = 30 * DAY  # platforms deliver again for at most a day
BUTTONS_KEPT = 90 * DAY
AT_ONCE = 5_000  # rows of one kind and call, so that nobody waits for it


async def tidy(store: Store) -> None:
    """Delete known identities, old buttons and expired pairings; the rest stays."""
    now = store.clock.now()
    await store.save(
        ("tidy.seen", {"before": now - IDENTITIES_KEPT, "most": AT_ONCE}),
        ("tidy.buttons", {"before": now - BUTTONS_KEPT, "most": AT_ONCE}),
        ("tidy.pairings", {"before": now}),
    )
