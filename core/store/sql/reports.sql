-- name: report.waiting
SELECT lane, count(*) AS waiting FROM turns
WHERE status IN ('waiting', 'starting', 'running') AND status = 'waiting' GROUP BY lane;

-- name: report.sessions
SELECT s.lane, s.engine, s.session FROM sessions s
JOIN lanes l ON l.id = s.lane AND l.epoch = s.epoch
WHERE s.quarantined = '';
