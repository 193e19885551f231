-- Upkeep of tables.
CREATE TABLE readings (sensor STRING, day STRING) PARTITIONED BY (day);
INSERT INTO readings VALUES ('roof', '2026-01-05'), ('roof', '2026-01-06'), ('cellar', '2026-01-06');
TRUNCATE TABLE readings PARTITION (day = '2026-01-06');
-- @rows 1
SELECT * FROM readings;
TRUNCATE TABLE readings PARTITION (day > '2026-01-01' AND day < '2026-02-01');
-- @rows 0
SELECT * FROM readings;
DESC HISTORY readings LIMIT 10;
-- @refused DESC HISTORY
DESC HISTORY readings WHERE version > 1;
DESC EXTENDED readings;
-- @refused RESTORE
RESTORE DYNAMIC TABLE per_day TO TIMESTAMP AS OF '2026-01-05 06:00:00';
-- @translated the table is younger than the point in time
RESTORE TABLE readings TO TIMESTAMP AS OF CAST('2023-06-01 00:00:00' AS TIMESTAMP);
-- @refused SHOW PARTITIONS
SHOW PARTITIONS readings;
-- @refused LIMIT
UPDATE readings SET sensor = 'attic' WHERE day > '2026-01-01' ORDER BY day LIMIT 1;
-- @refused ANALYZE
ANALYZE TABLE readings COMPUTE STATISTICS;
-- @rows 0
SELECT sensor FROM readings TABLESAMPLE ROW (50);
ALTER TABLE readings SET PROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE readings CHANGE COLUMN sensor place STRING COMMENT 'where it is';
-- @rows 0
SELECT place FROM readings;
