-- ALTER TABLE.
CREATE TABLE default_rooms (id INT, name VARCHAR);
INSERT INTO default_rooms VALUES (1, 'hall');
ALTER TABLE default_rooms ADD COLUMN door VARCHAR(20) NOT NULL DEFAULT 'left';
-- @rows 1
SELECT id FROM default_rooms WHERE door = 'left';
ALTER TABLE default_rooms ADD COLUMN at DATE FIRST;
ALTER TABLE default_rooms COMMENT = 'all rooms';
ALTER TABLE default_rooms SET OPTIONS(change_tracking = true, data_retention_period_in_hours = 240);
ALTER TABLE default_rooms MODIFY COLUMN name COMMENT 'as on the door';
-- @refused SET OPTIONS
ALTER TABLE default_rooms SET OPTIONS(block_per_segment = 500);
-- @refused snapshot
ALTER TABLE default_rooms FLASHBACK TO (SNAPSHOT => 'c5c538d6b8bc42f483eefbddd000af7d');
-- @translated The table has no such history.
ALTER TABLE default_rooms FLASHBACK TO (TIMESTAMP => '2026-01-05 06:00:00'::TIMESTAMP);
