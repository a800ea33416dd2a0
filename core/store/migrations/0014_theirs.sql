-- Whose lanes are whose, and what the page keeps where no platform does.

-- Who began a direct chat; a lane that people name belongs to them alone.
ALTER TABLE lanes ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE lanes SET owner = 'local:owner' WHERE channel = 'local';
CREATE INDEX lanes_of_owner ON lanes (owner) WHERE owner <> '';

CREATE INDEX lanes_newest ON lanes (max(created_at, ended_at));

CREATE TABLE writers (                      -- who has written in a lane, ever
    person TEXT NOT NULL,
    lane TEXT NOT NULL REFERENCES lanes (id),
    PRIMARY KEY (person, lane)
) STRICT, WITHOUT ROWID;
CREATE INDEX writers_of_lane ON writers (lane);
INSERT INTO writers SELECT DISTINCT person, lane FROM messages WHERE person <> '';

CREATE TABLE spoken (                       -- what was said and became no turn, such as a command
    identity TEXT PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    message_id TEXT NOT NULL,
    person TEXT NOT NULL,
    person_name TEXT NOT NULL DEFAULT '',
    text TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX spoken_of_lane ON spoken (lane, at);

CREATE TABLE uploads (                      -- files that came by the page; their bytes lie in the home
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL,
    name TEXT NOT NULL,
    mime TEXT NOT NULL DEFAULT '',
    size INTEGER NOT NULL,
    at INTEGER NOT NULL,
    lane TEXT NOT NULL DEFAULT ''           -- of the message that names it; '': none does yet
) STRICT;
CREATE INDEX uploads_unused ON uploads (person, at) WHERE lane = '';
CREATE INDEX uploads_old ON uploads (at) WHERE lane = '';
