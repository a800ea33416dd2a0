-- name: turn.save
-- phase: 20
-- key: id
INSERT INTO turns (id, lane, kind, origin, person, label, status, rank, pieces, last_piece,
    offered_to, epoch, attempts, unsent, stop_kind, stop_by, received_at)
VALUES (:id, :lane, :kind, :origin, :person, :label, :status, :rank, :pieces, :last_piece,
    :offered_to, :epoch, :attempts, :unsent, :stop_kind, :stop_by, :received_at)
ON CONFLICT (id) DO UPDATE SET
    lane = excluded.lane, kind = excluded.kind, label = excluded.label, status = excluded.status,
    rank = excluded.rank, pieces = excluded.pieces, last_piece = excluded.last_piece,
    offered_to = excluded.offered_to, epoch = excluded.epoch, attempts = excluded.attempts,
    unsent = excluded.unsent, stop_kind = excluded.stop_kind, stop_by = excluded.stop_by;

-- name: turn.of
-- phase: 40
-- key: id
UPDATE turns SET of_turn = :of_turn, pressed_by = :by WHERE id = :id;

-- name: turn.started
-- phase: 40
-- key: id
UPDATE turns SET started_at = :at, engine = :engine, model = :model WHERE id = :id;

-- name: turn.prompted
-- phase: 41
-- key: id
UPDATE turns SET prompted_at = :at, session = :session,
    model = CASE WHEN :model = '' THEN model ELSE :model END
WHERE id = :id;

-- name: turn.result
-- phase: 42
-- key: id
UPDATE turns SET ended_at = :at, answer = :answer, error = :error WHERE id = :id;

-- name: turn.ended
-- phase: 43
UPDATE turns SET ended_at = coalesce(ended_at, :at) WHERE id = :id;

-- name: turn.failed
-- phase: 43
UPDATE turns SET error = :error WHERE id = :id AND status = 'failed';

-- name: turn.usage
-- phase: 40
-- key: id
UPDATE turns SET tokens_in = :tokens_in, tokens_out = :tokens_out, cost = :cost WHERE id = :id;

-- name: turn.by_id
SELECT * FROM turns WHERE id = :id;

-- name: turn.open
SELECT * FROM turns
WHERE status IN ('waiting', 'starting', 'running') AND held = 0 ORDER BY id;

-- name: turn.held
SELECT * FROM turns
WHERE status IN ('waiting', 'starting', 'running') AND held = 1 ORDER BY id;

-- name: turn.of_lane
SELECT * FROM lane_turns WHERE lane = :lane ORDER BY id DESC LIMIT :limit;

-- name: turn.latest
SELECT * FROM turns ORDER BY id DESC LIMIT :limit;

-- name: turn.after
-- The newest main turn of a lane that started after this one.
SELECT * FROM lane_turns WHERE lane = :lane AND kind <> 'side' AND id <> :id
AND started_at > (SELECT coalesce(started_at, received_at) FROM turns WHERE id = :id)
ORDER BY started_at DESC LIMIT 1;

-- name: message.new
-- phase: 30
INSERT INTO messages (seq, identity, lane, turn, person, person_name, message_id, text, extra, at)
VALUES (:seq, :identity, :lane, :turn, :person, :person_name, :message_id, :text, :extra, :at);

-- name: message.turn
-- phase: 40
UPDATE messages SET turn = :turn WHERE seq = :seq;

-- name: message.join
-- phase: 41
UPDATE messages SET turn = :into WHERE turn = :turn;

-- name: message.of_turn
SELECT * FROM messages WHERE turn = :turn ORDER BY seq;

-- name: message.recent
SELECT * FROM messages WHERE identity = :identity AND (turn IS NULL OR turn IN (
    SELECT id FROM turns WHERE status IN ('waiting', 'starting', 'running')
    UNION SELECT id FROM (SELECT id FROM turns ORDER BY id DESC LIMIT 1000) AS newest));

-- name: message.waiting
-- A message whose turn is not over.
SELECT * FROM messages WHERE identity = :identity AND (turn IS NULL OR turn IN (
    SELECT id FROM turns WHERE status IN ('waiting', 'starting', 'running')));

-- name: message.of_open
-- What was said in the turns that are not over.
SELECT m.* FROM turns t JOIN messages m ON m.turn = t.id
WHERE t.status IN ('waiting', 'starting', 'running') AND t.held = :held ORDER BY m.seq;

-- name: message.of_lane
SELECT * FROM messages WHERE turn IN (
    SELECT id FROM lane_turns WHERE lane = :lane ORDER BY id DESC LIMIT :limit)
ORDER BY seq DESC LIMIT :limit;

-- name: message.people
SELECT DISTINCT person FROM messages WHERE turn IN (
    SELECT id FROM lane_turns WHERE lane = :lane ORDER BY id DESC LIMIT :limit);

-- name: message.gathered
SELECT * FROM messages WHERE turn IS NULL AND held = 0 ORDER BY seq;

-- name: session.save
-- phase: 40
INSERT INTO sessions (lane, engine, epoch, session, saved_at)
VALUES (:lane, :engine, :epoch, :session, :at)
ON CONFLICT (lane, engine) DO UPDATE SET
    epoch = excluded.epoch, session = excluded.session, saved_at = excluded.saved_at,
    quarantined = ''
WHERE excluded.epoch >= sessions.epoch
AND (sessions.quarantined = '' OR excluded.session <> sessions.session);

-- name: session.quarantine
-- order: strict
INSERT INTO sessions (lane, engine, epoch, session, saved_at, quarantined)
VALUES (:lane, :engine, 0, :session, 0, :reason)
ON CONFLICT (lane, engine) DO UPDATE SET quarantined = excluded.quarantined
WHERE sessions.session = excluded.session;

-- name: session.forget
-- order: strict
DELETE FROM sessions WHERE lane = :lane AND engine = :engine AND session = :session;

-- name: session.of_lane
SELECT * FROM sessions WHERE lane = :lane;

-- name: turn.promised
-- Cut off, and its thread was told that it goes on: there is no button for it. It did not, yet.
SELECT * FROM turns t
WHERE t.id > (SELECT coalesce(max(id), 0) - 1000 FROM turns) AND t.status = 'interrupted'
    AND t.kind = 'main' AND t.origin <> 'continue' AND t.held = 0 AND t.ended_at >= :since
    AND NOT EXISTS (SELECT 1 FROM buttons b WHERE b.turn = t.id AND b.action = 'continue')
    AND NOT EXISTS (SELECT 1 FROM seen s WHERE s.identity = 'continue:' || t.id)
ORDER BY t.id;
