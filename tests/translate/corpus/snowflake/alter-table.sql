-- ALTER TABLE and ALTER VIEW.
CREATE TABLE rooms (id INTEGER, name VARCHAR NOT NULL);
INSERT INTO rooms VALUES (1, 'hall');
ALTER TABLE rooms SET CHANGE_TRACKING = TRUE, DATA_RETENTION_TIME_IN_DAYS = 45;
ALTER TABLE rooms ADD COLUMN floor INTEGER DEFAULT 2, COLUMN seats INTEGER;
-- @rows 1
SELECT id FROM rooms WHERE floor = 2 AND seats IS NULL;
INSERT INTO rooms (id, name) VALUES (2, 'attic');
-- @rows 2
SELECT id FROM rooms WHERE floor = 2;
ALTER TABLE rooms MODIFY COLUMN name DROP NOT NULL;
ALTER TABLE rooms ALTER COLUMN name COMMENT 'as on the door';
ALTER TABLE rooms SET COMMENT = 'all rooms';
ALTER TABLE rooms UNSET COMMENT;
ALTER TABLE rooms CLUSTER BY (id);
ALTER TABLE rooms DROP CLUSTERING KEY;
-- @translated The table has no column mapping.
ALTER TABLE rooms RENAME COLUMN seats TO places;
-- @translated The table has no column mapping.
ALTER TABLE rooms DROP COLUMN seats;
-- @refused SET TAG
ALTER TABLE rooms SET TAG building = 'north', wing = 'east';
-- @refused DROP ALL ROW
ALTER TABLE rooms DROP ALL ROW ACCESS POLICIES;
ALTER TABLE rooms ADD PRIMARY KEY (id) RELY;
ALTER TABLE rooms DROP PRIMARY KEY;
ALTER TABLE IF EXISTS rooms SET CHANGE_TRACKING = FALSE;
ALTER TABLE rooms RENAME TO halls;
CREATE VIEW upstairs AS SELECT id FROM halls WHERE floor > 0;
ALTER VIEW IF EXISTS upstairs RENAME TO above;
-- @refused SET SECURE
ALTER VIEW above SET SECURE;
