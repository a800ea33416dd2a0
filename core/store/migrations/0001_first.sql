-- Instants are integers: milliseconds since 1970 (UTC). JSON is text. Booleans are 0 and 1.

CREATE TABLE seen (
    identity TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    error TEXT NOT NULL DEFAULT ''          -- why this event was set aside
) STRICT;
CREATE INDEX seen_at ON seen (at);
CREATE INDEX seen_aside ON seen (at) WHERE error <> '';

CREATE TABLE lanes (
    id TEXT PRIMARY KEY,
    channel TEXT NOT NULL,
    chat TEXT NOT NULL,
    thread TEXT NOT NULL,
    direct INTEGER NOT NULL DEFAULT 0,
    title TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    engaged_at INTEGER NOT NULL DEFAULT 0,  -- last message accepted in an engaged thread
    listen TEXT NOT NULL DEFAULT 'all',     -- all | mention
    ended_at INTEGER NOT NULL DEFAULT 0,    -- end of the last turn
    epoch INTEGER NOT NULL DEFAULT 0,       -- raised by /new
    paused INTEGER NOT NULL DEFAULT 0,
    busy TEXT NOT NULL DEFAULT '',          -- '' : the setting
    engine TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    effort TEXT NOT NULL DEFAULT '',
    approvals TEXT NOT NULL DEFAULT '',
    workspace TEXT NOT NULL DEFAULT '',
    person TEXT NOT NULL DEFAULT '',        -- who wrote last
    UNIQUE (channel, chat, thread)
) STRICT;

CREATE TABLE turns (
    id INTEGER PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    kind TEXT NOT NULL,
    origin TEXT NOT NULL,
    person TEXT NOT NULL,
    label TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL,
    rank INTEGER NOT NULL,
    pieces INTEGER NOT NULL DEFAULT 1,
    last_piece INTEGER NOT NULL DEFAULT 0,
    offered_to INTEGER,
    epoch INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    unsent INTEGER NOT NULL DEFAULT 0,
    stop_kind TEXT NOT NULL DEFAULT '',
    stop_by TEXT NOT NULL DEFAULT '',
    held INTEGER NOT NULL DEFAULT 0,        -- came out of a backup, waits for its release
    of_turn INTEGER,                        -- what a continue, steer or side answer belongs to
    received_at INTEGER NOT NULL,
    started_at INTEGER,
    prompted_at INTEGER,
    ended_at INTEGER,
    engine TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    session TEXT NOT NULL DEFAULT '',
    answer TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    tokens_in INTEGER,
    tokens_out INTEGER,
    cost REAL
) STRICT;
CREATE INDEX turns_open ON turns (id) WHERE status IN ('waiting', 'starting', 'running');
-- By lane only once they are over: a third of the cost of accepting a message was this index.
CREATE INDEX turns_over ON turns (lane, id)
    WHERE status NOT IN ('waiting', 'starting', 'running');
CREATE VIEW lane_turns AS                   -- all turns, quick to search by lane
    SELECT * FROM turns WHERE status NOT IN ('waiting', 'starting', 'running')
    UNION ALL
    SELECT * FROM turns WHERE status IN ('waiting', 'starting', 'running');

-- What was said. A turn's prompt is its messages in order; one without a turn is being gathered.
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,
    identity TEXT NOT NULL,                 -- `seen` keeps it unique; found through its open turn
    lane TEXT NOT NULL REFERENCES lanes (id),
    turn INTEGER REFERENCES turns (id) DEFERRABLE INITIALLY DEFERRED,
    person TEXT NOT NULL,
    person_name TEXT NOT NULL DEFAULT '',
    message_id TEXT NOT NULL DEFAULT '',    -- the platform's, for reactions
    text TEXT NOT NULL,
    extra TEXT NOT NULL DEFAULT '{}',       -- JSON: files, quote, album
    held INTEGER NOT NULL DEFAULT 0,        -- was being gathered when the backup was made
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_of_turn ON messages (turn);
CREATE INDEX messages_gathered ON messages (lane) WHERE turn IS NULL;

CREATE TABLE sessions (
    lane TEXT NOT NULL REFERENCES lanes (id),
    engine TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    session TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    quarantined TEXT NOT NULL DEFAULT '',   -- why it may never be used again
    PRIMARY KEY (lane, engine)
) STRICT;

CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    turn INTEGER REFERENCES turns (id) DEFERRABLE INITIALLY DEFERRED,
    kind TEXT NOT NULL,                     -- answer | notice | waiting | command | card | preview | file
    seq INTEGER NOT NULL DEFAULT 0,         -- part of an answer
    part TEXT NOT NULL,                     -- JSON: text, markup; or path, name of a file
    keyboard TEXT NOT NULL DEFAULT '[]',    -- JSON
    reply_to TEXT NOT NULL DEFAULT '',
    target TEXT NOT NULL DEFAULT '',        -- the message to edit instead of sending
    message_id TEXT NOT NULL DEFAULT '',    -- what came of it
    state TEXT NOT NULL,                    -- pending | in_flight | sent | uncertain | failed | withdrawn | held
    error TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    sent_at INTEGER
) STRICT;
CREATE INDEX deliveries_open ON deliveries (id) WHERE state IN ('pending', 'in_flight', 'held');
CREATE INDEX deliveries_waiting ON deliveries (id) WHERE kind = 'waiting';
CREATE INDEX deliveries_of_turn ON deliveries (turn, kind);
CREATE INDEX deliveries_of_lane ON deliveries (lane, kind);

CREATE TABLE buttons (
    id TEXT PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    turn INTEGER,
    action TEXT NOT NULL,
    data TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX buttons_at ON buttons (created_at);

CREATE TABLE approvals (
    id INTEGER PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    turn INTEGER NOT NULL REFERENCES turns (id) DEFERRABLE INITIALLY DEFERRED,
    engine_ref TEXT NOT NULL,               -- the engine's id of the question
    tool TEXT NOT NULL,
    command TEXT NOT NULL,
    hash TEXT NOT NULL,                     -- of engine, tool and command
    state TEXT NOT NULL,                    -- asked | allowed | denied | expired | cancelled
    delivery INTEGER,                       -- the card
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX approvals_open ON approvals (id) WHERE state = 'asked';

CREATE TABLE always_rules (
    id INTEGER PRIMARY KEY,
    lane TEXT NOT NULL REFERENCES lanes (id),
    engine TEXT NOT NULL,
    tool TEXT NOT NULL,
    command TEXT NOT NULL,
    hash TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    revoked_at INTEGER,
    UNIQUE (lane, hash)
) STRICT;

CREATE TABLE people (
    id TEXT PRIMARY KEY,                    -- telegram:700000001
    name TEXT NOT NULL DEFAULT '',
    role TEXT NOT NULL DEFAULT '',          -- '' | member | admin; the environment adds to it
    zone TEXT NOT NULL DEFAULT '',
    added_at INTEGER NOT NULL,
    added_by TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE pairings (
    code TEXT PRIMARY KEY,
    person TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL DEFAULT '',
    asked_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE TABLE places (
    id TEXT PRIMARY KEY,                    -- telegram:-100…
    title TEXT NOT NULL DEFAULT '',
    added_at INTEGER NOT NULL,
    added_by TEXT NOT NULL
) STRICT;

CREATE TABLE moves (                        -- a migrated chat's old id counts for the new one for ever
    old TEXT PRIMARY KEY,
    new TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    saved_by TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE pauses (
    scope TEXT PRIMARY KEY,                 -- all | engine:NAME ; a lane's stands in its row
    reason TEXT NOT NULL DEFAULT '',
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE unreadable (
    identity TEXT PRIMARY KEY,
    channel TEXT NOT NULL,
    raw TEXT NOT NULL,
    error TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE TABLE processes (                    -- engine processes; what a crash left is removed at the start
    pid INTEGER NOT NULL,
    created REAL NOT NULL,                  -- the system's start time of the process, against reuse
    lane TEXT NOT NULL,
    marker TEXT NOT NULL,
    PRIMARY KEY (pid, created)
) STRICT;
