-- name: signin.save
-- order: strict
INSERT INTO signins (id, person, opened_at, seen_at, browser, network)
VALUES (:id, :person, :opened_at, :seen_at, :browser, :network)
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at;

-- name: signin.remove
-- order: strict
DELETE FROM signins WHERE id = :id;

-- name: signin.remove_of
-- order: strict
DELETE FROM signins WHERE person = :person;

-- name: signin.tidy
-- order: strict
DELETE FROM signins WHERE seen_at < :idle OR opened_at < :old;

-- name: signin.one
SELECT * FROM signins WHERE id = :id;

-- name: signin.of
SELECT * FROM signins WHERE person = :person ORDER BY seen_at DESC, id;

-- name: signin.all
SELECT * FROM signins ORDER BY person, seen_at DESC, id;

-- name: link.save
-- order: strict
INSERT INTO links (identity, account, at) VALUES (:identity, :account, :at)
ON CONFLICT (identity) DO UPDATE SET account = excluded.account, at = excluded.at;

-- name: link.remove
-- order: strict
DELETE FROM links WHERE identity = :identity;

-- name: link.list
SELECT * FROM links ORDER BY account, identity;

-- name: audit.save
INSERT INTO audit (at, person, act, about, detail)
VALUES (:at, :person, :act, :about, :detail);

-- name: audit.tidy
DELETE FROM audit WHERE at < :before;

-- name: audit.page
SELECT * FROM audit WHERE id < :before AND (:person = '' OR person = :person)
    AND (:act = '' OR act = :act)
ORDER BY id DESC LIMIT :limit;

-- name: audit.people
SELECT DISTINCT person FROM audit ORDER BY person;

-- name: audit.kinds
SELECT DISTINCT act FROM audit ORDER BY act;
