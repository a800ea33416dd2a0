-- What watches look at, and what they remember between two looks.

ALTER TABLE jobs ADD COLUMN what TEXT NOT NULL DEFAULT '';        -- and what they wait for, as written
ALTER TABLE jobs ADD COLUMN each_time INTEGER NOT NULL DEFAULT 0; -- it goes on after something was found
ALTER TABLE jobs ADD COLUMN until INTEGER;                        -- ms; when a watch ends

CREATE INDEX jobs_watching ON jobs (id) WHERE kind = 'watch' AND state = 'active';

CREATE TABLE watches (
    job INTEGER PRIMARY KEY REFERENCES jobs (id),
    digest TEXT NOT NULL,       -- of what was seen last
    text TEXT NOT NULL,         -- the same, as far as it is kept for telling what changed
    held INTEGER NOT NULL,      -- the condition was true
    failures INTEGER NOT NULL,  -- looks that failed, in a row
    told INTEGER NOT NULL       -- that was told
) STRICT;
