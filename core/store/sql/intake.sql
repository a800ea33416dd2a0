-- What intake decides by what is stored, inside the transaction.

-- name: message.edit
-- Taken only while the message waits and no engine was offered it.
-- order: strict
UPDATE messages SET text = :text
WHERE identity = :identity AND (turn IS NULL OR turn IN (
    SELECT id FROM turns WHERE status IN ('waiting', 'starting', 'running')
    AND status = 'waiting' AND offered_to IS NULL));

-- name: message.late
-- A piece that came after its group: it joins the turn while that waits, else belongs to none yet.
-- order: strict
INSERT INTO messages (seq, identity, lane, turn, person, person_name, message_id, text, extra, at)
VALUES (:seq, :identity, :lane,
    (SELECT id FROM turns WHERE id = :turn AND status = 'waiting' AND offered_to IS NULL),
    :person, :person_name, :message_id, :text, :extra, :at);

-- name: seen.has
SELECT 1 FROM seen WHERE identity = :identity;

-- name: turn.last_answer
SELECT answer FROM lane_turns
WHERE lane = :lane AND answer <> '' AND kind <> 'side' ORDER BY id DESC LIMIT 1;

-- How far a platform was read.

-- name: mark.save
-- phase: 30
INSERT INTO marks (lane, message_id, at) VALUES (:lane, :message_id, :at)
ON CONFLICT (lane) DO UPDATE SET message_id = excluded.message_id, at = excluded.at
WHERE excluded.at >= marks.at;

-- name: mark.of_channel
-- Direct chats, and threads in which a message may be for us without a mention.
SELECT l.chat, l.thread, l.direct, m.message_id, m.at
FROM lanes l JOIN marks m ON m.lane = l.id
WHERE l.channel = :channel AND (l.direct = 1 OR (l.engaged_at >= :engaged AND l.listen = 'all'));

-- name: reached.save
-- phase: 30
INSERT INTO reached (channel, at) VALUES (:channel, :at)
ON CONFLICT (channel) DO UPDATE SET at = excluded.at WHERE excluded.at > reached.at;

-- name: reached.list
SELECT channel, at, runs_from FROM reached;
