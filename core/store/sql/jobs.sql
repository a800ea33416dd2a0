-- Jobs and their firings. A firing is claimed in the transaction that stores its turn, and claims
-- nothing twice: its key is the job and the instant it was due.

-- name: job.new
-- phase: 15
INSERT INTO jobs (id, lane, person, kind, state, said, zone, anchor, prompt, catch_up, if_busy,
    budget, made_by, request, made_at, next_at, settled_at, what, each_time, until)
VALUES (:id, :lane, :person, :kind, :state, :said, :zone, :anchor, :prompt, :catch_up, :if_busy,
    :budget, :made_by, :request, :made_at, :next_at, :settled_at, :what, :each_time, :until);

-- name: job.settled
-- Something was decided about its instants up to `settled_at`, when the next one was `was`.
-- phase: 40
UPDATE jobs SET turn = :turn, last_due = :last_due, last_result = :last_result, restored = 0,
    next_at = CASE WHEN coalesce(next_at, -1) = coalesce(:was, -1) THEN :next_at ELSE next_at END,
    settled_at = :settled_at,
    asked_at = CASE WHEN asked_at = :asked_at THEN NULL ELSE asked_at END
WHERE id = :id;

-- name: job.over
-- Its turn has ended.
-- order: strict
UPDATE jobs SET turn = NULL, failures = :failures, last_due = :last_due,
    last_result = :last_result
WHERE id = :id AND turn = :turn;

-- name: job.state
-- order: strict
UPDATE jobs SET state = :state, ended_at = :ended_at, next_at = :next_at, failures = 0,
    asked_at = NULL, last_result = CASE WHEN :last_result = '' THEN last_result
        ELSE :last_result END
WHERE id = :id AND state IN ('active', 'paused');

-- name: job.ask
-- order: strict
UPDATE jobs SET asked_at = :at WHERE id = :id AND state IN ('active', 'paused');

-- name: job.next
-- order: strict
UPDATE jobs SET next_at = :next_at, settled_at = :settled_at, asked_at = NULL, restored = 0
WHERE id = :id;

-- name: firing.new
-- phase: 30
INSERT INTO firings (job, due, at, state, turn, missed, result)
VALUES (:job, :due, :at, :state, :turn, :missed, :result);

-- name: firing.over
-- order: strict
UPDATE firings SET state = :state, result = :result
WHERE job = :job AND due = :due AND state = 'open';

-- name: job.by_id
SELECT * FROM jobs WHERE id = :id;

-- name: job.by_request
SELECT * FROM jobs WHERE lane = :lane AND request = :request AND request <> ''
    AND state IN ('active', 'paused');

-- name: job.due
-- Jobs with an instant that has come, or that somebody wants to run now. Watches look first.
SELECT * FROM jobs WHERE id IN (
    SELECT id FROM (SELECT id FROM jobs WHERE state = 'active' AND next_at <= :now
        AND next_at IS NOT NULL AND kind <> 'watch' ORDER BY next_at, id LIMIT :limit)
    UNION
    SELECT id FROM (SELECT id FROM jobs WHERE asked_at IS NOT NULL AND kind <> 'watch'
        ORDER BY asked_at LIMIT :limit))
ORDER BY next_at, id;

-- name: job.first
SELECT min(next_at) AS at FROM jobs
WHERE state = 'active' AND next_at IS NOT NULL AND kind <> 'watch';

-- name: job.open
-- Jobs with a turn that was not settled, and how far that is.
SELECT j.*, f.turn AS fired, f.due AS due, f.result AS began, t.status AS status, t.stop_kind AS stop,
    t.ended_at AS over_at, t.error AS error
FROM jobs j JOIN firings f ON f.turn = j.turn JOIN turns t ON t.id = j.turn
WHERE j.turn IS NOT NULL;

-- name: job.of_turn
SELECT j.*, f.turn AS fired, f.due AS due, f.result AS began, t.status AS status, t.stop_kind AS stop,
    t.ended_at AS over_at, t.error AS error
FROM firings f JOIN jobs j ON j.id = f.job JOIN turns t ON t.id = f.turn
WHERE f.turn = :turn;

-- name: job.cancelled
SELECT * FROM jobs WHERE turn IS NOT NULL AND state = 'cancelled';

-- name: job.restored
SELECT * FROM jobs WHERE restored = 1 AND kind <> 'watch' ORDER BY id;

-- name: job.ahead
-- Recurring jobs that are settled far ahead of the clock, which was wrong then.
SELECT * FROM jobs WHERE state = 'active' AND next_at > :ahead AND settled_at > :ahead
    AND kind <> 'watch';

-- name: job.of_lane
-- What is open, and what ended a while ago.
SELECT * FROM jobs WHERE lane = :lane
    AND (state IN ('active', 'paused') OR ended_at >= :since) ORDER BY id;

-- name: job.all
SELECT * FROM jobs WHERE id IN (
    SELECT id FROM jobs WHERE state IN ('active', 'paused')
    UNION ALL SELECT id FROM jobs WHERE ended_at >= :since)
ORDER BY id;

-- name: job.count
SELECT count(*) AS count FROM jobs WHERE person = :person AND state IN ('active', 'paused');

-- name: firing.of_job
SELECT * FROM firings WHERE job = :job ORDER BY due DESC LIMIT :limit;

-- name: lane.of_ids
-- A JSON array of their ids.
SELECT * FROM lanes WHERE id IN (SELECT value FROM json_each(:ids));

-- name: hold.jobs
-- phase: 40
-- What waits or runs is held as a turn; the job does not wait for it.
UPDATE jobs SET restored = 1, asked_at = NULL, turn = NULL WHERE state IN ('active', 'paused');

-- name: tidy.firings
-- What is settled stays settled: a job never looks back behind `settled_at`.
-- order: strict
DELETE FROM firings WHERE (job, due) IN (
    SELECT job, due FROM firings WHERE at < :before AND state <> 'open' ORDER BY at LIMIT :limit);

-- name: last.job
SELECT coalesce(max(id), 0) AS last FROM jobs;
