-- A pause of an engine may end by itself: when its limit of use is over.

ALTER TABLE pauses ADD COLUMN until INTEGER;  -- NULL: when somebody says so
