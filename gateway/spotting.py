"""What of a command line looks like a secret: keys, tokens and passwords that somebody wrote there.

Such a line is not shown, is stored as secrets are, and its secret is kept out of the log. It is a
guess that rather hides too much. Pure. It must not know settings, nor where a command is run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from urllib.parse import unquote, urlsplit

SHORTEST = 8  # characters; shorter ones are words such as "none"
_WORDS = "key|apikey|token|secret|password|passwd|pass|credential|credentials|authorization|bearer"
_NAME = re.compile(rf"-{{0,2}}([A-Za-z0-9]+[-_.])*({_WORDS})", re.IGNORECASE)
_HEADER = re.compile(rf"(?:{_WORDS})\s*:\s*(?:(?:bearer|basic|token)\s+)?(\S+)", re.IGNORECASE)
# How keys of well-known services begin.
_KNOWN = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-|gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|hf_|gsk_|AIza|AKIA"
    r"|eyJ)[A-Za-z0-9_.-]{8,}"
)
_ELSEWHERE = re.compile(r"[/~.$%]|[A-Za-z]:\\|[A-Z][A-Z0-9_]*$")  # a file, or a variable's name


def secrets_in(command: Iterable[str] | str) -> frozenset[str]:
    """The parts that look like secrets, of a line or of its words."""
    words = _words(command) if isinstance(command, str) else list(command)
    return frozenset(one for one in _found(words) if one)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quote that is not closed
        return line.split()


def _found(words: list[str]) -> Iterator[str]:
    for word, after in pairwise([*words, ""]):
        yield from _KNOWN.findall(word)
        name, equals, value = word.partition("=")
        if equals and _NAME.fullmatch(name):
            yield from _of_name(value)
        elif word.startswith("-") and _NAME.fullmatch(word) and not after.startswith("-"):
            yield from _of_name(after)
        elif header := _HEADER.search(word):
            yield from _of_name(header[1])
        if "://" in value or "://" in word:
            yield _password(value if "://" in value else word)


def _of_name(value: str) -> Iterator[str]:
    """What was given to a name that says secret, unless it only says where the secret is."""
    if len(value) >= SHORTEST and not _ELSEWHERE.match(value):
        yield value


def _password(address: str) -> str:
    try:
        return unquote(urlsplit(address).password or "")
    except ValueError:  # no address after all
        return ""
