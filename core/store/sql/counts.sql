-- How much of everything there is now, for whoever watches the gateway; each by an index.

-- name: counts.lanes
SELECT count(*) AS count FROM lanes;

-- name: counts.deliveries
SELECT state, count(*) AS count FROM deliveries
WHERE state IN ('pending', 'in_flight', 'held') GROUP BY state;

-- name: counts.jobs
-- Open ones by kind and state.
SELECT kind, state, count(*) AS count FROM jobs
WHERE state IN ('active', 'paused') GROUP BY kind, state;

-- name: counts.overdue
SELECT count(*) AS count FROM jobs
WHERE state = 'active' AND next_at IS NOT NULL AND next_at < :before;
