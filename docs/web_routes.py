"""Writes docs/web-routes.md: every route of the page with what it asks for, from the routes."""

from __future__ import annotations

import sys

from gateway.web.access import READING, Kind, Rule, Who, rule_of
from gateway.web.app import all_routes

HEAD = """\
# What the gateway answers over HTTP

Made from the routes themselves (`make routes`). A page that asks for a sign-in leads there and
back; everything else says 401 to who is not signed in, and 403 to whom it is not for. Every change
needs the page's own origin and JSON, except where another proof is named. A longer body is 413, one
that comes too slowly 408. All answers, also those of errors, forbid scripts and styles that are not
the gateway's own.

| route | for whom | what a change has to bring | body at most |
| --- | --- | --- | --- |
"""


def table() -> str:
    """The whole file."""
    rows = sorted(
        ((route.path, rule_of(route)) for route in all_routes()),
        key=lambda row: (row[0], sorted(row[1].methods)),
    )
    return HEAD + "".join(f"{_row(path, rule)}\n" for path, rule in rows)


def _row(path: str, rule: Rule) -> str:
    methods = ", ".join(sorted(rule.methods - {"HEAD"}))
    who = rule.who.value
    if rule.bearer:
        who += ", or with the token of the settings"
    if rule.methods <= READING:
        brings, most = "", ""
    else:
        brings, most = _brings(rule), _bytes(rule.body)
    return f"| `{methods} {path}` | {who} | {brings} | {most} |"


def _brings(rule: Rule) -> str:
    if rule.kind is not Kind.RAW:
        return "JSON, and no other origin" if rule.who is Who.ANYONE else "own origin, JSON"
    return "a secret or signature of its own" if rule.who is Who.ANYONE else "own origin"


def _bytes(number: int) -> str:
    for size, unit in ((1_048_576, "MiB"), (1024, "KiB")):
        if number >= size and not number % size:
            return f"{number // size} {unit}"
    return f"{number} bytes"


if __name__ == "__main__":
    sys.stdout.write(table())
