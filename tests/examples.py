"""How many random inputs a rule is tried with: few each time the suite runs, many when asked.

``HYPOTHESIS_PROFILE=thorough`` (``make thorough``) tries ten times as many, ``long`` a hundred.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

TIMES = {"usual": 1, "planted": 4, "thorough": 10, "long": 100}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "usual")


def tried(usual: int, **more: Any) -> settings:
    """``@tried(60)``: so many inputs, without a limit of time for one of them."""
    if PROFILE not in TIMES:
        raise ValueError(f"HYPOTHESIS_PROFILE is {PROFILE}, not one of {', '.join(TIMES)}")
    return settings(max_examples=usual * TIMES[PROFILE], deadline=None, **more)
