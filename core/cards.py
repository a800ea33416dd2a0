"""What an engine's question looks like: the words of its card, and the file for a long command.

A character that hides, or turns its neighbours around, is shown as an escape, so that no command
can look like another one. It must not know engines, channels, the store or who decides.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from core.wording import count, label, plain, quoted

TITLE = 80  # characters of what the engine calls its question
ON_CARD = 20_000  # characters; a longer command is a file, whatever a platform could show
HASH_SHOWN = 12  # characters of a command's hash by which the log names it
LAST_WORDS = 250  # characters a card keeps free for what was decided, and by whom

# Control characters but line ends and tabs, blanks that are not the blank, and all that Unicode
# calls ignorable: zero width, direction, tags. Of the variation selectors the one that every
# second emoji has is left as it is.
_HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)


@dataclass(frozen=True, slots=True)
class Question:
    """A command as people read it."""

    tool: str
    command: str
    escaped: int = 0  # characters that stand in it as escapes
    example: str = ""

    def on_card(self) -> str:
        """The card with the whole command."""
        return f"{self._heading()}\n{self.in_full()}"

    def in_full(self) -> str:
        """The command alone, line by line as it stands."""
        fence = "`" * max(3, _longest_run(self.command, "`") + 1)
        return f"{fence}\n{self.command}\n{fence}{self._remark()}"

    def in_file(self) -> str:
        """The card below the file with the command."""
        lines = count(self.command.count("\n") + 1, "line")
        return (
            f"{self._heading()}\nIt stands whole in the file above ({lines}, "
            f"{len(self.command)} characters). Read it before you allow it.{self._remark()}"
        )

    def _heading(self) -> str:
        """What the engine calls its question, unless that is the command once more."""
        title = label(self.tool, TITLE)
        if not title or title == label(self.command, TITLE):
            return "The agent asks to run this:"
        return f"The agent asks for permission: **{plain(title)}**"

    def _remark(self) -> str:
        if not self.escaped:
            return ""
        return (
            f"\n⚠️ Hidden in it: {count(self.escaped, 'character')} that cannot be seen or that "
            f"change how the rest looks, shown as escapes such as `{self.example}`."
        )


def question(tool: str, command: str) -> Question:
    found = _HIDDEN.findall(command)
    example = _escape(found[0]) if found else ""
    return Question(visible(tool), visible(command), len(found), example)


def in_full(text: str) -> str:
    """Words that somebody is to agree to: every line, and an escape for what nobody would see."""
    return question("", text).in_full()


def elsewhere(title: str, place: str, direct_of: str, what: str, person: str) -> str:
    """Above a copy of a card: in which thread it is asked, and for whose message."""
    if direct_of:
        where = f"In the direct chat of {plain(direct_of)}"
    else:
        where = f"In {quoted(title)} ({plain(place)})" if title.strip() else f"In {plain(place)}"
    asked = f"{where}, for {quoted(what)} of {plain(person)}."
    return f"{asked} No admin takes part there, so I ask you.\n\n"


def visible(text: str) -> str:
    """The text with an escape for every character that nobody would see."""
    return _HIDDEN.sub(lambda found: _escape(found[0]), text)


def spill(folder: Path, name: str, text: str) -> Path:
    """Write what does not fit on a card into a file that only we can read. Blocks; OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


def sweep(folder: Path) -> None:
    """Remove the files of questions that nobody can answer any more. Blocks; OSError."""
    if folder.is_dir():
        for entry in os.scandir(folder):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def _longest_run(text: str, char: str) -> int:
    return max((len(list(run)) for one, run in groupby(text) if one == char), default=0)
