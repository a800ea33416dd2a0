-- How far each platform was read, for those that do not send again what was missed.

CREATE TABLE marks (                        -- the newest accepted message of each lane
    lane TEXT PRIMARY KEY REFERENCES lanes (id),
    message_id TEXT NOT NULL,
    at INTEGER NOT NULL                     -- by the platform's clock
) STRICT, WITHOUT ROWID;

CREATE TABLE reached (                      -- up to here everything of a channel was accepted
    channel TEXT PRIMARY KEY,
    at INTEGER NOT NULL                     -- by the platform's clock
) STRICT, WITHOUT ROWID;
