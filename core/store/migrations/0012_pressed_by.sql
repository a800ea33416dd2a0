-- Who pressed for a turn to go on, or to be asked again; '': nobody did.

ALTER TABLE turns ADD COLUMN pressed_by TEXT NOT NULL DEFAULT '';
