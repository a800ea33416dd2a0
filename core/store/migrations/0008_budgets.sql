-- Caps on money, each with its own life, and what turns have spent on which day.

CREATE TABLE budgets (
    id INTEGER PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    dollars REAL NOT NULL,
    why TEXT NOT NULL,                      -- next | job | continue
    set_by TEXT NOT NULL DEFAULT '',        -- person
    made_at INTEGER NOT NULL,
    until INTEGER,                          -- how long it waits for a turn; NULL: for ever
    state TEXT NOT NULL,        -- waiting | reserved | used | over | expired | replaced | off
    turn INTEGER,
    spent REAL NOT NULL DEFAULT 0,
    returns INTEGER NOT NULL DEFAULT 1      -- 0: something newer was said in its lane
) STRICT;
CREATE INDEX budgets_open ON budgets (id) WHERE state IN ('waiting', 'reserved', 'used');
CREATE INDEX budgets_of_turn ON budgets (turn) WHERE turn IS NOT NULL;
CREATE INDEX budgets_at ON budgets (made_at);

CREATE TABLE spent (
    turn INTEGER NOT NULL,
    day TEXT NOT NULL,                      -- of the gateway's zone: 2026-03-01
    person TEXT NOT NULL,
    cost REAL NOT NULL,                     -- US dollars, in all runs of the turn
    PRIMARY KEY (turn, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX spent_on ON spent (day, person, cost);
