-- name: setting.save
-- order: strict
INSERT INTO settings (name, value, saved_at, saved_by) VALUES (:name, :value, :at, :by)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, saved_at = excluded.saved_at,
    saved_by = excluded.saved_by;

-- name: setting.remove
-- order: strict
DELETE FROM settings WHERE name = :name;

-- name: setting.list
SELECT * FROM settings ORDER BY name;

-- name: pause.save
-- order: strict
INSERT INTO pauses (scope, reason, at, until) VALUES (:scope, :reason, :at, :until)
ON CONFLICT (scope) DO UPDATE SET reason = excluded.reason, at = excluded.at,
    until = excluded.until;

-- name: pause.remove
-- order: strict
DELETE FROM pauses WHERE scope = :scope;

-- name: pause.list
SELECT * FROM pauses ORDER BY scope;

-- name: unreadable.save
-- phase: 30
INSERT INTO unreadable (identity, channel, raw, error, at)
VALUES (:identity, :channel, :raw, :error, :at)
ON CONFLICT (identity) DO UPDATE SET raw = excluded.raw, error = excluded.error, at = excluded.at;

-- name: unreadable.list
SELECT * FROM unreadable ORDER BY at, identity LIMIT :limit;

-- name: process.save
-- order: strict
INSERT INTO processes (pid, created, lane, marker) VALUES (:pid, :created, :lane, :marker)
ON CONFLICT (pid, created) DO UPDATE SET lane = excluded.lane, marker = excluded.marker;

-- name: process.remove
-- order: strict
DELETE FROM processes WHERE pid = :pid AND created = :created;

-- name: process.list
SELECT * FROM processes ORDER BY created, pid;

-- What a restored backup holds back, and its release.

-- name: hold.turns
-- phase: 40
UPDATE turns SET held = 1 WHERE status IN ('waiting', 'starting', 'running');

-- name: hold.messages
-- phase: 40
UPDATE messages SET held = 1 WHERE turn IS NULL;

-- name: hold.deliveries
-- phase: 40
UPDATE deliveries SET state = CASE WHEN state = 'in_flight' AND target = '' THEN 'uncertain'
    ELSE 'held' END
WHERE state IN ('pending', 'in_flight', 'held') AND state <> 'held';

-- name: hold.processes
-- phase: 40
DELETE FROM processes;

-- name: hold.approvals
-- phase: 40
UPDATE approvals SET state = 'expired', decided_at = :at WHERE state = 'asked';

-- name: hold.notices
-- phase: 40
UPDATE deliveries SET state = 'withdrawn'
WHERE kind = 'waiting' AND (state = 'held' OR target = '' AND state IN ('sent', 'uncertain'));

-- name: hold.reached
-- phase: 40
UPDATE reached SET runs_from = :at;

-- name: release.turns
-- order: strict
UPDATE turns SET held = 0
WHERE status IN ('waiting', 'starting', 'running') AND held = 1;

-- name: release.messages
-- order: strict
UPDATE messages SET held = 0 WHERE turn IS NULL AND held = 1;

-- name: release.deliveries
-- order: strict
UPDATE deliveries SET state = 'pending'
WHERE state IN ('pending', 'in_flight', 'held') AND state = 'held';

-- What is deleted with age, a bounded number of rows a time.

-- name: tidy.seen
-- order: strict
DELETE FROM seen WHERE identity IN (
    SELECT identity FROM seen WHERE at < :before ORDER BY at LIMIT :limit);

-- name: tidy.buttons
-- order: strict
DELETE FROM buttons WHERE id IN (
    SELECT id FROM buttons WHERE created_at < :before ORDER BY created_at LIMIT :limit);

-- name: tidy.pairings
-- order: strict
DELETE FROM pairings WHERE expires_at < :before;

-- name: tidy.unreadable
-- order: strict
DELETE FROM unreadable WHERE identity IN (
    SELECT identity FROM unreadable WHERE at < :before ORDER BY at LIMIT :limit);

-- name: seen.aside
SELECT identity, at, error FROM seen WHERE error <> '' ORDER BY at DESC LIMIT :limit;

-- name: seen.set_aside
-- order: strict
INSERT INTO seen (identity, at, error) VALUES (:identity, :at, :error)
ON CONFLICT (identity) DO UPDATE SET error = excluded.error;

-- name: last.turn
SELECT coalesce(max(id), 0) AS last FROM turns;

-- name: last.message
SELECT coalesce(max(seq), 0) AS last FROM messages;

-- name: last.delivery
SELECT coalesce(max(id), 0) AS last FROM deliveries;

-- name: last.approval
SELECT coalesce(max(id), 0) AS last FROM approvals;

-- name: last.rule
SELECT coalesce(max(id), 0) AS last FROM always_rules;
