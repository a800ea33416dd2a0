-- name: person.save
-- order: strict
INSERT INTO people (id, name, role, zone, added_at, added_by)
VALUES (:id, :name, :role, :zone, :at, :by)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role, zone = excluded.zone,
    added_at = excluded.added_at, added_by = excluded.added_by;

-- name: person.zone
-- order: strict
INSERT INTO people (id, zone, added_at) VALUES (:id, :zone, :at)
ON CONFLICT (id) DO UPDATE SET zone = excluded.zone;

-- name: person.remove
-- order: strict
DELETE FROM people WHERE id = :id;

-- name: person.list
SELECT * FROM people ORDER BY id;

-- name: pairing.save
-- order: strict
INSERT INTO pairings (code, person, name, asked_at, expires_at)
VALUES (:code, :person, :name, :at, :expires_at)
ON CONFLICT (person) DO UPDATE SET code = excluded.code, name = excluded.name,
    asked_at = excluded.asked_at, expires_at = excluded.expires_at;

-- name: pairing.remove
-- order: strict
DELETE FROM pairings WHERE person = :person;

-- name: pairing.list
SELECT * FROM pairings ORDER BY asked_at, code;

-- name: place.save
-- order: strict
INSERT INTO places (id, title, added_at, added_by) VALUES (:id, :title, :at, :by)
ON CONFLICT (id) DO UPDATE SET title = excluded.title, added_at = excluded.added_at,
    added_by = excluded.added_by;

-- name: place.remove
-- order: strict
DELETE FROM places WHERE id = :id;

-- name: place.list
SELECT * FROM places ORDER BY id;

-- name: move.save
-- order: strict
INSERT INTO moves (old, new, at) VALUES (:old, :new, :at)
ON CONFLICT (old) DO UPDATE SET new = excluded.new, at = excluded.at;

-- name: move.list
SELECT * FROM moves ORDER BY at, old;
