"""Migrations run once each, whole or not at all; queries fit the schema they find."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from core.store import migrate
from core.store.migrate import migrations, statements, version
from core.store.queries import Query, parse, queries


@pytest.fixture
def empty() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        yield connection


def test_an_empty_file_gets_every_migration_in_order(empty: sqlite3.Connection) -> None:
    migrate.migrate(empty, 5)
    found = empty.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()
    assert found == [(number, name) for number, name, _ in migrations()]
    assert version(empty) == migrations()[-1][0]


def test_migrating_again_changes_nothing(empty: sqlite3.Connection) -> None:
    migrate.migrate(empty, 5)
    before = list(empty.iterdump())
    migrate.migrate(empty, 6)
    assert list(empty.iterdump()) == before


def test_the_numbers_of_migrations_have_no_gap_and_no_double() -> None:
    assert [number for number, _, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_a_migration_that_fails_leaves_nothing_behind(
    empty: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = (*migrations(), (len(migrations()) + 1, "broken", "CREATE TABLE a (b TEXT);\nNO;\n"))
    monkeypatch.setattr(migrate, "migrations", lambda: broken)
    with pytest.raises(sqlite3.OperationalError):
        migrate.migrate(empty, 5)
    assert version(empty) == len(migrations())
    assert not empty.execute("SELECT 1 FROM sqlite_master WHERE name = 'a'").fetchall()


def test_what_was_allowed_before_rules_had_a_folder_is_asked_once_more(
    empty: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays on record, and can be allowed again."""
    every = migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: every[:10])
    migrate.migrate(empty, 5)
    empty.execute(
        "INSERT INTO lanes (id, channel, chat, thread, created_at) VALUES ('main', 'c', '1', '', 1)"
    )
    empty.execute(
        "INSERT INTO always_rules (id, lane, engine, tool, command, hash, made_at, made_by)"
        " VALUES (4, 'main', 'codex', 'shell', 'ls', 'abc', 7, 'local:ana')"
    )
    monkeypatch.setattr(migrate, "migrations", lambda: every)
    migrate.migrate(empty, 6)
    found = empty.execute("SELECT id, hash, folder, made_at, revoked_at FROM always_rules")
    assert found.fetchall() == [(4, "abc", "", 7, 7)]
    assert empty.execute(queries()["rule.list"].sql).fetchall() == []


def test_a_script_is_split_at_the_ends_of_its_statements() -> None:
    text = "-- a; b\nCREATE TABLE a (\n  b TEXT -- ;\n);\nCREATE TABLE c (d TEXT DEFAULT ';');\n"
    assert len(list(statements(text))) == 2


@pytest.mark.parametrize("name", sorted(queries()))
def test_a_query_fits_the_schema(empty: sqlite3.Connection, name: str) -> None:
    migrate.migrate(empty, 5)
    query = queries()[name]
    empty.execute(f"EXPLAIN {query.sql}", dict.fromkeys(query.names, 1))
    empty.execute(f"EXPLAIN {query.numbered}", [1] * len(query.names))


GROW = re.compile(
    r"SCAN (turns|messages|deliveries|seen|buttons|approvals|jobs|firings)( USING INDEX (.*))?$"
)
NEWEST = {"turn.latest", "message.recent"}  # by number from the end, and not far
SMALL = {
    *("turns_open", "deliveries_open", "deliveries_waiting", "approvals_open", "seen_aside"),
    *("jobs_open", "jobs_restored", "jobs_watching"),
}


@pytest.mark.parametrize("name", sorted(set(queries()) - NEWEST))
def test_a_query_never_reads_the_whole_of_a_table_that_grows(
    empty: sqlite3.Connection, name: str
) -> None:
    migrate.migrate(empty, 5)
    query = queries()[name]
    plan = empty.execute(f"EXPLAIN QUERY PLAN {query.numbered}", [1] * len(query.names)).fetchall()
    for *_, step in plan:
        found = GROW.match(step)
        assert not found or found[3] in SMALL, plan


def test_every_table_is_strict(empty: sqlite3.Connection) -> None:
    migrate.migrate(empty, 5)
    loose = empty.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict = 0"
        " AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    assert loose == []


def test_queries_are_read_with_their_marks() -> None:
    text = (
        "-- for the reader\n\n-- name: a.b\n-- phase: 7\n-- key: x y\n-- why\n"
        "UPDATE t SET z = :z WHERE x = :x AND y = :y AND z <> :z;\n\n"
        "-- name: c\n-- order: strict\nDELETE FROM t;\n"
    )
    first, second = parse(text)
    assert (first.name, first.phase, first.key, first.strict) == ("a.b", 7, ("x", "y"), False)
    assert first.names == ("z", "x", "y", "z")
    assert first.numbered == "UPDATE t SET z = ? WHERE x = ? AND y = ? AND z <> ?"
    assert (second.name, second.strict, second.sql) == ("c", True, "DELETE FROM t")


def test_rows_of_one_insert_leave_as_few_statements() -> None:
    query = Query("a", "INSERT INTO t (a, b)\nVALUES (:a, :b) ON CONFLICT DO NOTHING")
    rows = [{"a": n, "b": -n} for n in range(40_000)]
    found = list(query.statements(list(rows)))
    assert len(found) == 3
    assert all(len(parameters) <= 30_000 and not many for _, parameters, many in found)
    assert [value for _, parameters, _ in found for value in parameters][:4] == [0, 0, 1, -1]


def test_of_rows_with_one_key_the_last_leaves() -> None:
    query = Query("a", "UPDATE t SET a = :a WHERE b = :b", key=("b",))
    rows = [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 3, "b": 1}]
    assert list(query.statements(list(rows))) == [(query.numbered, [(3, 1), (2, 2)], True)]
