"""Named queries: reads sql/*.sql once and knows each query's place within a commit.

Knows no connection. How a query is marked stands at the head of sql/lanes.sql.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

MARK = re.compile(r"^-- (name|phase|key|order): *(.*?) *$")


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    sql: str
    phase: int = 50
    key: tuple[str, ...] = ()
    strict: bool = False


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
