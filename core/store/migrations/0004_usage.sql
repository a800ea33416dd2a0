-- What turns that are over have used, so that summing it up reads no answers. It is written when a
-- turn ends and never when a message is accepted.

CREATE INDEX turns_used ON turns
    (started_at, lane, person, engine, model, tokens_in, tokens_out, cost, prompted_at, ended_at)
    WHERE ended_at IS NOT NULL;
CREATE VIEW used_turns AS                   -- all turns that began, quick to search by that
    SELECT started_at, lane, person, engine, model, tokens_in, tokens_out, cost,
        prompted_at IS NOT NULL AND cost IS NULL AS unpriced
    FROM turns WHERE ended_at IS NOT NULL
    UNION ALL
    SELECT started_at, lane, person, engine, model, tokens_in, tokens_out, cost, 0
    FROM turns WHERE ended_at IS NULL AND status IN ('waiting', 'starting', 'running');
