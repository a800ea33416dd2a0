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

-- name: turn.spent
SELECT count(*) AS turns, coalesce(sum(coalesce(tokens_in, 0) + coalesce(tokens_out, 0)), 0)
    AS tokens, sum(cost) AS cost
FROM lane_turns WHERE lane = :lane AND started_at IS NOT NULL;
