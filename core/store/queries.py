"""Named queries: reads sql/*.sql once and knows each query's place within a commit.

Writes go out with numbered parameters, and an INSERT of many rows as one statement: a third of a
commit's time went into names and into the start of statements. How a query is marked stands at
the head of sql/lanes.sql. Knows no connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import chain
from operator import itemgetter

MARK = re.compile(r"^-- (name|phase|key|order): *(.*?) *$")


PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
ONE_ROW = re.compile(r"\bVALUES\s*(\(\?(?:,\s*\?)*\))")
VARIABLES = 30_000  # SQLite takes 32,766 in one statement

Values = Mapping[str, object]
Statement = tuple[str, Sequence[object], bool]  # text, parameters, whether those are many rows


@dataclass(frozen=True, slots=True)
class Query:
    """One named query. ``sql`` has names for its parameters, ``numbered`` question marks."""

    name: str
    sql: str
    phase: int = 50
    key: tuple[str, ...] = ()
    strict: bool = False
    numbered: str = field(init=False)
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(PARAMETER.findall(self.sql)))
        object.__setattr__(self, "numbered", PARAMETER.sub("?", self.sql))

    def statements(self, rows: list[Values]) -> Iterator[Statement]:
        """What to execute for these rows, in their order; of equal keys only the last."""
        if self.key and len(rows) > 1:
            key = itemgetter(*self.key)
            rows = list({key(values): values for values in rows}.values())
        if not self.names:
            yield self.numbered, (), False
            return
        if len(self.names) == 1:
            name = self.names[0]
            filled: list[Sequence[object]] = [(values[name],) for values in rows]
        else:
            filled = list(map(itemgetter(*self.names), rows))
        if len(filled) == 1:
            yield self.numbered, filled[0], False
        elif self.strict or not ONE_ROW.search(self.numbered):
            yield self.numbered, filled, True
        else:
            at_once = VARIABLES // len(self.names)
            for start in range(0, len(filled), at_once):
                some = filled[start : start + at_once]
                yield self._of_many(len(some)), list(chain.from_iterable(some)), False

    def _of_many(self, count: int) -> str:
        return ONE_ROW.sub(
            lambda found: "VALUES " + ",".join([found[1]] * count), self.numbered, count=1
        )


def parse(text: str) -> list[Query]:
    """The queries of one file. What stands before the first name is for the reader."""
    queries: list[Query] = []
    marks: dict[str, str] = {}
    lines: list[str] = []

    def finish() -> None:
        if marks:
            queries.append(
                Query(
                    marks["name"],
                    "\n".join(lines).strip().removesuffix(";"),
                    int(marks.get("phase", 50)),
                    tuple(marks["key"].split()) if "key" in marks else (),
                    marks.get("order") == "strict",
                )
            )

    for line in text.splitlines():
        mark = MARK.match(line)
        if mark and mark[1] == "name":
            finish()
            marks, lines = {"name": mark[2]}, []
        elif mark:
            marks[mark[1]] = mark[2]
        elif not line.startswith("--"):
            lines.append(line)
    finish()
    return queries


@cache
def queries() -> dict[str, Query]:
    """All queries by name."""
    found: dict[str, Query] = {}
    for file in sorted(files("core.store").joinpath("sql").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".sql"):
            for query in parse(file.read_text("utf-8")):
                if query.name in found:
                    raise ValueError(f"two queries are named {query.name}")
                found[query.name] = query
    return found
