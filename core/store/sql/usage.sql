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
