-- name: approval.new
-- phase: 30
INSERT INTO approvals (id, lane, turn, engine_ref, tool, command, hash, state, delivery, asked_at,
    expires_at)
VALUES (:id, :lane, :turn, :engine_ref, :tool, :command, :hash, :state, :delivery, :asked_at,
    :expires_at);

-- name: approval.state
-- phase: 40
UPDATE approvals SET state = :state, decided_at = :at, decided_by = :by
WHERE id = :id AND state = 'asked';

-- name: approval.by_id
SELECT * FROM approvals WHERE id = :id;

-- name: approval.open
SELECT * FROM approvals WHERE state = 'asked' ORDER BY id;

-- name: approval.copy
-- phase: 40
INSERT INTO approval_copies (approval, delivery) VALUES (:approval, :delivery);

-- name: approval.copies
SELECT deliveries.* FROM approval_copies JOIN deliveries ON deliveries.id = delivery
WHERE approval = :approval ORDER BY delivery;

-- name: rule.save
-- order: strict
INSERT INTO always_rules (id, lane, engine, tool, command, hash, folder, made_at, made_by)
VALUES (:id, :lane, :engine, :tool, :command, :hash, :folder, :at, :by)
ON CONFLICT (lane, hash, folder) DO UPDATE SET
    made_at = excluded.made_at, made_by = excluded.made_by, revoked_at = NULL;

-- name: rule.revoke
-- order: strict
UPDATE always_rules SET revoked_at = :at WHERE id = :id;

-- name: rule.list
SELECT * FROM always_rules WHERE revoked_at IS NULL ORDER BY id;
