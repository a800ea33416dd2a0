-- name: spoken.new
-- phase: 30
INSERT INTO spoken (identity, lane, message_id, person, person_name, text, at)
VALUES (:identity, :lane, :message_id, :person, :person_name, :text, :at) ON CONFLICT DO NOTHING;

-- name: upload.new
-- phase: 30
INSERT INTO uploads (id, person, name, mime, size, at)
VALUES (:id, :person, :name, :mime, :size, :at);

-- name: upload.named
-- phase: 40
UPDATE uploads SET lane = :lane WHERE id = :id AND lane = '';

-- name: upload.remove
-- order: strict
DELETE FROM uploads WHERE id = :id AND lane = '';

-- name: upload.by_id
SELECT * FROM uploads WHERE id = :id;

-- name: upload.unused
SELECT * FROM uploads WHERE person = :person AND lane = '' ORDER BY at;

-- name: upload.old
SELECT * FROM uploads WHERE lane = '' AND at < :before ORDER BY at;

-- name: thread.turns
SELECT * FROM lane_turns WHERE lane = :lane AND received_at <= :before ORDER BY id DESC LIMIT :limit;

-- name: thread.turns_again
SELECT * FROM turns WHERE id IN (SELECT value FROM json_each(:turns));

-- name: thread.last
SELECT t.* FROM json_each(:lanes) l JOIN turns t ON t.id = (
    SELECT max(o.id) FROM turns o
    WHERE o.lane = l.value AND o.status NOT IN ('waiting', 'starting', 'running'));

-- name: thread.said
SELECT * FROM messages WHERE turn IN (SELECT value FROM json_each(:turns)) ORDER BY seq;

-- name: thread.spoken
SELECT * FROM spoken WHERE lane = :lane AND at <= :before ORDER BY at DESC LIMIT :limit;

-- name: thread.made
SELECT * FROM deliveries WHERE id IN (
    SELECT id FROM deliveries
    WHERE lane = :lane AND target = '' AND created_at <= :before ORDER BY id DESC LIMIT :limit)
ORDER BY id DESC;

-- name: thread.changes
SELECT * FROM deliveries WHERE lane = :lane AND message_id <> ''
    AND message_id IN (SELECT value FROM json_each(:message_ids)) ORDER BY id;

-- name: lane.newest
SELECT * FROM lanes ORDER BY max(created_at, ended_at) DESC LIMIT :limit;

-- name: lane.like
SELECT * FROM lanes WHERE instr(lower(title), :words) OR instr(lower(id), :words)
ORDER BY max(created_at, ended_at) DESC LIMIT :limit;

-- name: lane.begun_by
SELECT * FROM lanes WHERE owner <> '' AND owner IN (SELECT value FROM json_each(:people))
    AND channel = :channel ORDER BY max(created_at, ended_at) DESC LIMIT :limit;

-- name: lane.some
SELECT * FROM lanes WHERE id IN (SELECT value FROM json_each(:lanes));

-- name: lane.writers_of
SELECT lane, person FROM writers WHERE lane IN (SELECT value FROM json_each(:lanes));
