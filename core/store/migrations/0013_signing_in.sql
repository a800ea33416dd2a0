-- Codes that were asked for, how often somebody tried, and links that sign in once.

CREATE TABLE askings (                  -- an address in a browser that asked for a code
    id TEXT PRIMARY KEY,                -- keyed hash of both
    state TEXT NOT NULL,                -- JSON: keyed hashes of the codes, wrong tries
    at INTEGER NOT NULL                 -- last change, ms since 1970
) STRICT;
CREATE INDEX askings_at ON askings (at);

CREATE TABLE tries (                    -- what the limits of signing in have counted
    id TEXT PRIMARY KEY,                -- what is counted, and a keyed hash of whose
    times TEXT NOT NULL,                -- JSON: instants, the oldest first
    at INTEGER NOT NULL                 -- the newest of them
) STRICT;
CREATE INDEX tries_at ON tries (at);

CREATE TABLE signin_links (
    id TEXT PRIMARY KEY,                -- SHA-256 of the token, which only its reader has
    person TEXT NOT NULL,               -- web:ana@example.org, local:owner
    expires_at INTEGER                  -- NULL: good until it is used or the gateway starts again
) STRICT;
