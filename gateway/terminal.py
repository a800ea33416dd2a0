"""What is for the eyes at the gateway's own terminal alone: sign-in codes and links.

It never goes through the log, which may be kept and shipped elsewhere. Where the log is JSON every
line of the standard output has to be JSON too, so it goes to the standard error then.
"""

from __future__ import annotations

import logging
import sys

from gateway.choices import LogFormat
from gateway.cli.border import harmless

log = logging.getLogger("laneway")


def tell(text: str, form: LogFormat) -> None:
    """Print it now. A terminal that is gone ends nothing: the log says that it is."""
    try:
        print(harmless(text), file=sys.stderr if form is LogFormat.JSON else sys.stdout, flush=True)
    except (OSError, ValueError) as fault:  # closed by whoever read it
        log.error("nothing can be printed on the terminal: %s", type(fault).__name__)
