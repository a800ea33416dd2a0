-- What turns have used. One that is over, and told no cost after its prompt had left, has an
-- unknown one (`unpriced`).

-- name: usage.of_lane
SELECT count(*) AS turns, coalesce(sum(tokens_in), 0) AS tokens_in,
    coalesce(sum(tokens_out), 0) AS tokens_out, sum(cost) AS cost,
    coalesce(sum(prompted_at IS NOT NULL AND ended_at IS NOT NULL AND cost IS NULL), 0) AS unpriced
FROM lane_turns WHERE lane = :lane AND started_at >= :since;

-- name: usage.of_all
SELECT person, engine, model, count(*) AS turns, coalesce(sum(tokens_in), 0) AS tokens_in,
    coalesce(sum(tokens_out), 0) AS tokens_out, sum(cost) AS cost, sum(unpriced) AS unpriced
FROM used_turns WHERE started_at >= :since
GROUP BY person, engine, model ORDER BY person, engine, model;

-- name: usage.by_lane
SELECT lane, person, count(*) AS turns, coalesce(sum(tokens_in), 0) AS tokens_in,
    coalesce(sum(tokens_out), 0) AS tokens_out, sum(cost) AS cost, sum(unpriced) AS unpriced
FROM used_turns WHERE started_at >= :since
GROUP BY lane, person ORDER BY lane, person;

-- name: usage.of_days
-- Of turns that are over, by the spans [since, until) in which they began; :days: JSON, a pair each.
SELECT day.key AS nth, person, engine, model, count(*) AS turns,
    coalesce(sum(tokens_in), 0) AS tokens_in, coalesce(sum(tokens_out), 0) AS tokens_out,
    sum(cost) AS cost, sum(prompted_at IS NOT NULL AND cost IS NULL) AS unpriced
FROM json_each(:days) AS day CROSS JOIN turns INDEXED BY turns_used
    ON started_at >= json_extract(day.value, '$[0]') AND started_at < json_extract(day.value, '$[1]')
WHERE ended_at IS NOT NULL
GROUP BY day.key, person, engine, model;

-- name: usage.open
-- Of turns that are not over, each by itself: there are few.
SELECT started_at, person, engine, model, 1 AS turns, coalesce(tokens_in, 0) AS tokens_in,
    coalesce(tokens_out, 0) AS tokens_out, cost, 0 AS unpriced
FROM turns WHERE ended_at IS NULL AND status IN ('waiting', 'starting', 'running')
    AND started_at >= :since;

-- name: usage.last
-- When somebody had something done last, of turns that are over.
SELECT person, max(started_at) AS at FROM turns
WHERE ended_at IS NOT NULL AND started_at >= :since GROUP BY person;
