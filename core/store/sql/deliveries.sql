-- name: delivery.new
-- phase: 30
INSERT INTO deliveries (id, lane, turn, kind, seq, part, keyboard, reply_to, target, message_id,
    state, error, created_at, sent_at)
VALUES (:id, :lane, :turn, :kind, :seq, :part, :keyboard, :reply_to, :target, :message_id,
    :state, :error, :created_at, :sent_at);

-- name: delivery.state
-- phase: 40
UPDATE deliveries SET state = :state,
    message_id = CASE WHEN :message_id = '' THEN message_id ELSE :message_id END,
    error = :error, sent_at = coalesce(:sent_at, sent_at)
WHERE id = :id;

-- name: delivery.part
-- phase: 40
-- key: id
UPDATE deliveries SET part = :part WHERE id = :id;

-- name: delivery.target
-- phase: 40
-- key: id
UPDATE deliveries SET target = :target WHERE id = :id;

-- name: delivery.by_id
SELECT * FROM deliveries WHERE id = :id;

-- name: delivery.open
SELECT * FROM deliveries
WHERE state IN ('pending', 'in_flight', 'held') AND state <> 'held' ORDER BY id;

-- name: delivery.held
SELECT * FROM deliveries
WHERE state IN ('pending', 'in_flight', 'held') AND state = 'held' ORDER BY id;

-- name: delivery.of_turn
SELECT * FROM deliveries WHERE turn = :turn ORDER BY kind, seq, id;

-- name: delivery.previews_open
-- What turns that are not over show of themselves.
SELECT d.* FROM turns t JOIN deliveries d ON d.turn = t.id AND d.kind = 'preview'
WHERE t.status IN ('waiting', 'starting', 'running') AND t.held = :held AND d.message_id <> ''
    AND d.state = 'sent'
ORDER BY d.id;

-- name: delivery.waiting_shown
SELECT * FROM deliveries
WHERE kind = 'waiting' AND target = '' AND state IN ('pending', 'in_flight', 'sent', 'uncertain')
ORDER BY id;

-- name: button.new
-- phase: 30
INSERT INTO buttons (id, lane, turn, action, data, created_at)
VALUES (:id, :lane, :turn, :action, :data, :at);

-- name: button.by_id
SELECT * FROM buttons WHERE id = :id;
