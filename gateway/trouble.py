"""What ends a command with words instead of a traceback."""

from __future__ import annotations


class Trouble(Exception):
    """The command cannot do its work; the message says why and what to do."""

    status = 1


class Refused(Trouble):
    """What was typed means nothing."""

    status = 2
