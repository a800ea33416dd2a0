-- What is always allowed is allowed in the folder it was given for, and in no other.

CREATE TABLE rules_before (
    id INTEGER PRIMARY KEY, lane TEXT, engine TEXT, tool TEXT, command TEXT, hash TEXT,
    made_at INTEGER, made_by TEXT, revoked_at INTEGER
) STRICT;
INSERT INTO rules_before
    SELECT id, lane, engine, tool, command, hash, made_at, made_by, revoked_at FROM always_rules;
DROP TABLE always_rules;

CREATE TABLE always_rules (
    id INTEGER PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    engine TEXT NOT NULL,
    tool TEXT NOT NULL,
    command TEXT NOT NULL,
    hash TEXT NOT NULL,
    folder TEXT NOT NULL,                   -- resolved; '': it was not written down
    made_at INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    revoked_at INTEGER,
    UNIQUE (lane, hash, folder)
) STRICT;

-- Of the earlier ones nobody knows the folder, so they end: the agent asks once more.
INSERT INTO always_rules
    SELECT id, lane, engine, tool, command, hash, '', made_at, made_by,
        coalesce(revoked_at, made_at)
    FROM rules_before;
DROP TABLE rules_before;
