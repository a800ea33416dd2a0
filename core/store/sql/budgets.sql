-- Caps on money, and what was spent on which day. A cap is always written as a whole.

-- name: budget.save
-- phase: 45
-- key: id
INSERT INTO budgets (id, lane, dollars, why, set_by, made_at, until, state, turn, spent, returns)
VALUES (:id, :lane, :dollars, :why, :set_by, :made_at, :until, :state, :turn, :spent, :returns)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, turn = excluded.turn,
    spent = excluded.spent, returns = excluded.returns;

-- name: budget.open
SELECT * FROM budgets WHERE state IN ('waiting', 'reserved', 'used') ORDER BY id;

-- name: budget.of_turn
SELECT * FROM budgets WHERE turn = :turn ORDER BY id DESC LIMIT 1;

-- name: spent.save
-- phase: 45
-- key: turn day
INSERT INTO spent (turn, day, person, cost) VALUES (:turn, :day, :person, :cost)
ON CONFLICT (turn, day) DO UPDATE SET cost = excluded.cost;

-- name: spent.since
SELECT turn, day, person, cost FROM spent WHERE day >= :day;

-- name: spent.of_open
-- Earlier days of turns that are not over.
SELECT turn, day, person, cost FROM spent WHERE day < :day AND turn IN (
    SELECT id FROM turns WHERE status IN ('waiting', 'starting', 'running'));

-- name: tidy.budgets
-- order: strict
DELETE FROM budgets WHERE id IN (
    SELECT id FROM budgets WHERE made_at < :before
    AND state NOT IN ('waiting', 'reserved', 'used') ORDER BY made_at LIMIT :limit);

-- name: tidy.spent
-- order: strict
DELETE FROM spent WHERE (turn, day) IN (
    SELECT turn, day FROM spent WHERE day < :day ORDER BY day LIMIT :limit);

-- name: last.budget
SELECT coalesce(max(id), 0) AS last FROM budgets;
