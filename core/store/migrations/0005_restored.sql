-- What was sent before a backup was restored may have been answered since the backup was made.

ALTER TABLE reached ADD COLUMN runs_from INTEGER NOT NULL DEFAULT 0;  -- earlier messages never run
