"""What one setting is: a field of ``Settings`` that carries its name, reader, default and meaning.

It must not know which settings there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Applies(StrEnum):
    """When a saved value takes effect in a gateway that runs."""

    AT_ONCE = "at once"
    RECONNECTS = "at once, with a new connection"
    RELOADS = "from the next turn of the engine"
    NEXT_START = "at the next start"
    ENVIRONMENT = "only set in the environment or .env"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table. ``default`` is written as a person would write it."""

    name: str
    read: Callable[[str], object]
    default: str
    meaning: str
    group: str
    applies: Applies
    parts: tuple[str, ...] = ()  # the channels or engines that are renewed
    field: str = ""


_ROW = "setting"


class Group:
    """Makes the fields of one group: ``group(name, reader, default, meaning)``.

    ``applies`` and ``parts`` are those of the whole group, where a field says nothing else.
    """

    def __init__(self, group: str, applies: Applies = Applies.AT_ONCE, *parts: str) -> None:
        self._group = group
        self._applies = applies
        self._parts = parts

    def __call__(
        self,
        name: str,
        read: Callable[[str], T],
        default: str,
        meaning: str,
        applies: Applies | None = None,
        *parts: str,
    ) -> T:
        if applies is None:
            applies, parts = self._applies, self._parts
        row = Setting(name, read, default, meaning, self._group, applies, parts)
        # The reader's type is the field's type: a row that does not fit its annotation is found
        # by the type checker, which would not look inside the metadata.
        made: object = field(default_factory=lambda: read(default), metadata={_ROW: row})
        return cast(T, made)


def rows_in(table: Any) -> Iterator[Setting]:
    """Every row of a dataclass of such fields, in order, with the name of its field."""
    for one in fields(table):
        row: Setting = one.metadata[_ROW]
        yield replace(row, field=one.name)
