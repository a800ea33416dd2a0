-- Queries are named. `phase` is their place within one commit (rows that others refer to go first),
-- `key` says that of several rows with one key only the last matters, and `order: strict` that the
-- query must keep its place among all rows of the commit. Queries of one commit that touch the same
-- columns are one query, differ in phase, or are strict.
-- Turns of a lane are read from lane_turns, open ones with the three states in so many words: that
-- is what the indexes are made for. A test refuses a query that reads a whole table.

-- name: lane.new
-- phase: 10
INSERT INTO lanes (id, channel, chat, thread, direct, title, created_at, owner)
VALUES (:id, :channel, :chat, :thread, :direct, :title, :at, :owner)
ON CONFLICT DO NOTHING;

-- name: lane.facts
-- phase: 40
-- key: id
UPDATE lanes SET ended_at = :ended, epoch = :epoch, paused = :paused WHERE id = :id;

-- name: lane.engaged
-- phase: 40
-- key: id
UPDATE lanes SET engaged_at = :at WHERE id = :id;

-- name: lane.address
-- order: strict
UPDATE lanes SET channel = :channel, chat = :chat, thread = :thread WHERE id = :id;

-- name: lane.left_behind
-- Its messages stay where the chat was: no id of them may be taken for one of the new place.
-- order: strict
UPDATE deliveries SET
    message_id = CASE WHEN message_id = '' THEN '' ELSE :mark || message_id END,
    target = CASE WHEN target = '' OR target LIKE '#%' THEN target ELSE :mark || target END,
    reply_to = ''
WHERE lane = :id;

-- name: lane.read_elsewhere
-- What still waits for its answer was written where the chat was, and is not reacted to.
-- order: strict
UPDATE messages SET message_id = ''
WHERE (lane = :id AND turn IS NULL) OR turn IN (
    SELECT id FROM turns WHERE lane = :id AND status IN ('waiting', 'starting', 'running'));

-- name: lane.set_busy
-- phase: 40
-- key: id
UPDATE lanes SET busy = :value WHERE id = :id;

-- name: lane.set_engine
-- phase: 40
-- key: id
UPDATE lanes SET engine = :value WHERE id = :id;

-- name: lane.set_model
-- phase: 40
-- key: id
UPDATE lanes SET model = :value WHERE id = :id;

-- name: lane.set_effort
-- phase: 40
-- key: id
UPDATE lanes SET effort = :value WHERE id = :id;

-- name: lane.set_approvals
-- phase: 40
-- key: id
UPDATE lanes SET approvals = :value WHERE id = :id;

-- name: lane.set_workspace
-- phase: 40
-- key: id
UPDATE lanes SET workspace = :value WHERE id = :id;

-- name: lane.set_listen
-- phase: 40
-- key: id
UPDATE lanes SET listen = :value WHERE id = :id;

-- name: lane.set_title
-- phase: 40
-- key: id
UPDATE lanes SET title = :value WHERE id = :id;

-- name: lane.titled
-- Of a name that nobody gave: it counts only where there is none.
-- order: strict
UPDATE lanes SET title = :value WHERE id = :id AND title = '';

-- name: lane.set_person
-- phase: 40
-- key: id
UPDATE lanes SET person = :value WHERE id = :id;

-- name: lane.wrote
-- phase: 11
INSERT INTO writers (person, lane) VALUES (:person, :lane) ON CONFLICT DO NOTHING;

-- name: lane.writers
SELECT person FROM writers WHERE lane = :lane;

-- name: lane.theirs
-- Lanes that these people (a JSON array) began or have written in.
SELECT * FROM lanes WHERE id IN (
    SELECT id FROM lanes WHERE owner <> '' AND owner IN (SELECT value FROM json_each(:people))
    UNION SELECT lane FROM writers WHERE person IN (SELECT value FROM json_each(:people)));

-- name: lane.by_id
SELECT * FROM lanes WHERE id = :id;

-- name: lane.at
SELECT * FROM lanes WHERE channel = :channel AND chat = :chat AND thread = :thread;

-- name: lane.of_place
SELECT * FROM lanes WHERE channel = :channel AND chat = :chat ORDER BY id;

-- name: lane.direct_of
SELECT * FROM lanes WHERE channel = :channel AND direct = 1 AND person = :person
ORDER BY thread LIMIT 1;

-- name: lane.of_open
-- Lanes with turns that are not over.
SELECT * FROM lanes WHERE id IN (
    SELECT lane FROM turns
    WHERE status IN ('waiting', 'starting', 'running') AND held = :held);

-- name: lane.all
SELECT * FROM lanes ORDER BY id;
