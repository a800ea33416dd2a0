-- name: asking.save
-- order: strict
INSERT INTO askings (id, state, at) VALUES (:id, :state, :at)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, at = excluded.at;

-- name: asking.remove
-- order: strict
DELETE FROM askings WHERE id = :id;

-- name: asking.tidy
-- order: strict
DELETE FROM askings WHERE at < :before;

-- name: asking.list
SELECT id, state, at FROM askings ORDER BY at, id;

-- name: tries.save
-- order: strict
INSERT INTO tries (id, times, at) VALUES (:id, :times, :at)
ON CONFLICT (id) DO UPDATE SET times = excluded.times, at = excluded.at;

-- name: tries.remove
-- order: strict
DELETE FROM tries WHERE id = :id;

-- name: tries.tidy
-- order: strict
DELETE FROM tries WHERE at < :before;

-- name: tries.list
SELECT id, times, at FROM tries ORDER BY at, id;

-- name: signin.seen
-- order: strict
UPDATE signins SET seen_at = :at WHERE id = :id;

-- name: signin_link.save
-- order: strict
INSERT INTO signin_links (id, person, expires_at) VALUES (:id, :person, :expires_at);

-- name: signin_link.remove
-- order: strict
DELETE FROM signin_links WHERE id = :id;

-- name: signin_link.remove_of_start
-- order: strict
DELETE FROM signin_links WHERE expires_at IS NULL;

-- name: signin_link.tidy
-- order: strict
DELETE FROM signin_links WHERE expires_at < :now;

-- name: signin_link.one
SELECT id, person, expires_at FROM signin_links WHERE id = :id;
