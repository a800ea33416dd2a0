-- name: report.waiting
SELECT lane, sum(status = 'waiting') AS waiting FROM turns
WHERE status IN ('waiting', 'starting', 'running') GROUP BY lane;

-- name: report.sessions
SELECT s.lane, s.engine, s.session FROM sessions s
JOIN lanes l ON l.id = s.lane AND l.epoch = s.epoch
WHERE s.quarantined = '';

-- name: report.texts
-- What was said in these turns, a JSON array of numbers.
SELECT turn, text FROM messages
WHERE turn IN (SELECT value FROM json_each(:turns)) ORDER BY seq;

-- name: report.deliveries
-- How what was told of these turns stands.
SELECT DISTINCT turn, kind, state FROM deliveries
WHERE turn IN (SELECT value FROM json_each(:turns)) AND kind IN ('answer', 'file', 'notice');

-- name: report.open_turns
SELECT l.channel, count(*) FROM turns t JOIN lanes l ON l.id = t.lane
WHERE t.status IN ('waiting', 'starting', 'running') GROUP BY l.channel;

-- name: report.open_deliveries
SELECT l.channel, count(*) FROM deliveries d JOIN lanes l ON l.id = d.lane
WHERE d.state IN ('pending', 'in_flight', 'held') GROUP BY l.channel;

-- name: report.lane_engines
SELECT DISTINCT engine FROM lanes WHERE engine <> '';

-- name: report.roles
SELECT id, role FROM people;
