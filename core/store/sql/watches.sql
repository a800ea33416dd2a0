-- Watches: jobs that look again and again. Their rows are in jobs; here is what they remember.

-- name: watch.known
-- phase: 40
-- key: job
INSERT INTO watches (job, digest, text, held, failures, told)
VALUES (:job, :digest, :text, :held, :failures, :told)
ON CONFLICT (job) DO UPDATE SET digest = excluded.digest, text = excluded.text,
    held = excluded.held, failures = excluded.failures, told = excluded.told;

-- name: watch.looked
-- order: strict
-- It goes on; what ended meanwhile stays as it is, and what was paused or resumed when that is next.
UPDATE jobs SET settled_at = :settled_at, restored = 0,
    next_at = CASE WHEN coalesce(next_at, -1) = coalesce(:was, -1) THEN :next_at ELSE next_at END,
    asked_at = CASE WHEN asked_at = :asked_at THEN NULL ELSE asked_at END
WHERE id = :id AND state IN ('active', 'paused');

-- name: watch.said
-- order: strict
-- How it went with looking, where nothing was found.
UPDATE jobs SET last_result = :last_result WHERE id = :id AND state = 'active';

-- name: watch.of
SELECT * FROM watches WHERE job = :job;

-- name: watch.times
-- When each is next; a wish counts as now. Of a paused one that is its end.
SELECT id, next_at, asked_at, settled_at, turn FROM jobs WHERE kind = 'watch' AND state = 'active'
UNION ALL
SELECT id, until AS next_at, asked_at, settled_at, turn FROM jobs
    WHERE state IN ('active', 'paused') AND state = 'paused' AND kind = 'watch'
        AND (asked_at IS NOT NULL OR until IS NOT NULL);

-- name: tidy.watches
-- order: strict
-- What ended remembers nothing.
DELETE FROM watches WHERE job IN (
    SELECT id FROM jobs WHERE ended_at >= :since AND kind = 'watch');
