-- Who is signed in on the page, whose chat identities are theirs, and who did what.

CREATE TABLE signins (
    id TEXT PRIMARY KEY,                -- SHA-256 of the token, which only the browser has
    person TEXT NOT NULL,               -- web:ana@example.org, local:owner
    opened_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    browser TEXT NOT NULL DEFAULT '',   -- as the browser calls itself, shortened
    network TEXT NOT NULL DEFAULT ''    -- where it was opened from
) STRICT;
CREATE INDEX signins_of ON signins (person);
CREATE INDEX signins_seen ON signins (seen_at);

CREATE TABLE links (                    -- a chat identity belongs to a web account
    identity TEXT PRIMARY KEY,          -- telegram:700000001
    account TEXT NOT NULL,              -- web:ana@example.org
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX links_of ON links (account);

CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    person TEXT NOT NULL,               -- who did it; gateway: it did so by itself
    act TEXT NOT NULL,                  -- a word from a closed list, like setting.saved
    about TEXT NOT NULL DEFAULT '',     -- a person, a lane, a setting, ...
    detail TEXT NOT NULL DEFAULT ''     -- plain words; never a secret
) STRICT;
CREATE INDEX audit_at ON audit (at);
