"""The Discord channel. Its library is loaded here, once, with what it says about itself kept quiet.

The library's voice parts want modules that Python gives up; none of them is used.
"""

from __future__ import annotations

import logging
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import discord as _library  # noqa: F401

# At its lowest level the library logs whole events: what people wrote, and what answers a press.
logging.getLogger("discord").setLevel(logging.WARNING)
