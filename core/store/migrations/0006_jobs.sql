-- Schedules, wake-ups and watches, and what became of each of their firings.

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    person TEXT NOT NULL,                   -- whose rights its turns have
    kind TEXT NOT NULL,                     -- schedule | wakeup | watch
    state TEXT NOT NULL,                    -- active | paused | done | expired | failed | cancelled
    said TEXT NOT NULL,                     -- the WHEN as it was written
    zone TEXT NOT NULL,                     -- what local times in it mean
    anchor INTEGER NOT NULL,                -- the instant it was said: what "in 20m" counts from
    prompt TEXT NOT NULL,
    catch_up INTEGER,                       -- ms; NULL: the setting; 0: what was missed is skipped
    if_busy TEXT NOT NULL DEFAULT 'queue',  -- queue | skip
    budget REAL,                            -- US dollars for each run
    made_by TEXT NOT NULL DEFAULT 'person', -- person | agent
    request TEXT NOT NULL DEFAULT '',       -- an agent's own name for it
    made_at INTEGER NOT NULL,
    ended_at INTEGER,
    next_at INTEGER,                        -- the first instant that nothing was decided about
    settled_at INTEGER NOT NULL DEFAULT 0,  -- the last one that something was
    asked_at INTEGER,                       -- somebody wants it to run now
    turn INTEGER,                           -- the turn of it that waits or runs
    failures INTEGER NOT NULL DEFAULT 0,    -- in a row
    last_due INTEGER,
    last_result TEXT NOT NULL DEFAULT '',   -- in words
    restored INTEGER NOT NULL DEFAULT 0     -- came out of a backup: what fell due since may have run
) STRICT;
CREATE INDEX jobs_due ON jobs (next_at) WHERE state = 'active' AND next_at IS NOT NULL;
CREATE INDEX jobs_asked ON jobs (asked_at) WHERE asked_at IS NOT NULL;
CREATE INDEX jobs_running ON jobs (turn) WHERE turn IS NOT NULL;
CREATE INDEX jobs_restored ON jobs (id) WHERE restored = 1;
CREATE INDEX jobs_of_lane ON jobs (lane, state);
CREATE INDEX jobs_of_person ON jobs (person, state);
CREATE INDEX jobs_open ON jobs (id) WHERE state IN ('active', 'paused');
CREATE INDEX jobs_by_end ON jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX jobs_request ON jobs (lane, request)
    WHERE request <> '' AND state IN ('active', 'paused');

CREATE TABLE firings (                      -- each instant is claimed once for ever
    job INTEGER NOT NULL REFERENCES jobs (id),
    due INTEGER NOT NULL,
    at INTEGER NOT NULL,                    -- when it was decided
    state TEXT NOT NULL,    -- open | done | failed | stopped | interrupted | dropped | skipped | missed
    turn INTEGER REFERENCES turns (id) DEFERRABLE INITIALLY DEFERRED,
    missed INTEGER NOT NULL DEFAULT 0,      -- earlier instants that it stands for
    result TEXT NOT NULL DEFAULT '',        -- in words
    PRIMARY KEY (job, due)
) STRICT, WITHOUT ROWID;
CREATE INDEX firings_of_turn ON firings (turn) WHERE turn IS NOT NULL;
CREATE INDEX firings_at ON firings (at);
