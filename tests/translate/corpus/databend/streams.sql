-- Streams: the guide and the reference. Their default is append-only.
CREATE OR REPLACE TABLE readings (
    sensor_id INT UNSIGNED,
    celsius DOUBLE,
    place VARCHAR NOT NULL DEFAULT 'hall'
) ENGINE = FUSE;
CREATE OR REPLACE STREAM readings_new
    ON TABLE readings;
INSERT INTO readings (sensor_id, celsius) VALUES (1, 21.5), (2, 19.7);
-- @rows 2
SELECT sensor_id, celsius, change$action, change$is_update
FROM readings_new;
-- @rows 2
SELECT * FROM readings_new;
CREATE OR REPLACE TABLE readings_latest AS
SELECT sensor_id, celsius
FROM readings_new;
-- @rows 0
SELECT * FROM readings_new; -- consumed
CREATE OR REPLACE STREAM readings_all
    ON TABLE readings
    APPEND_ONLY = false;
UPDATE readings SET celsius = 22 WHERE sensor_id = 1;
DELETE FROM readings WHERE sensor_id = 2;
-- @rows 0
SELECT * FROM readings_new;
-- @rows 3
SELECT sensor_id, celsius, change$action, change$is_update
FROM readings_all
ORDER BY change$row_id;
CREATE TABLE readings_copy AS SELECT * FROM readings WHERE 1 = 0;
INSERT INTO readings_copy SELECT * FROM readings_all;
INSERT INTO readings VALUES (3, 18.0, 'roof');
SELECT has_data FROM stream_status('readings_all');
SELECT sensor_id FROM readings_new WITH CONSUME;
INSERT INTO readings VALUES (4, 17.0, 'roof');
-- @rows 1
SELECT sensor_id FROM readings_new WITH (CONSUME = TRUE, MAX_BATCH_SIZE = 10);
MERGE INTO readings_copy c USING (
    SELECT sensor_id, celsius, place, change$action, change$is_update FROM readings_all
) s ON c.sensor_id = s.sensor_id
WHEN MATCHED AND s.change$action = 'INSERT' THEN UPDATE SET c.celsius = s.celsius
WHEN NOT MATCHED AND s.change$action = 'INSERT' THEN INSERT (sensor_id, celsius, place) VALUES (s.sensor_id, s.celsius, s.place);

CREATE STREAM IF NOT EXISTS readings_too ON TABLE readings AT (STREAM => readings_all) COMMENT = 'the same offset';
CREATE STREAM readings_at ON TABLE readings AT (OFFSET => 0) APPEND_ONLY = true;
-- @translated the table is younger than the point in time
CREATE STREAM readings_ts ON TABLE readings AT (TIMESTAMP => '2023-06-26 09:49:02.038483'::TIMESTAMP);
-- @translated the table is younger than the point in time
CREATE STREAM readings_5min ON TABLE readings AT (TIMESTAMP => DATE_SUB(MINUTE, 5, NOW()));
-- @refused snapshots
CREATE STREAM readings_snap ON TABLE readings AT (SNAPSHOT => '9828d23f74664ff3806f44bbc1925ea5');
SHOW STREAMS;
SHOW FULL STREAMS;
SHOW STREAMS LIKE 'readings%';
DESC STREAM readings_all;
DESCRIBE STREAM readings_all;
DROP STREAM readings_at;
DROP STREAM IF EXISTS readings_none;
ALTER TABLE readings SET OPTIONS (change_tracking = true);
SELECT sensor_id FROM readings CHANGES (INFORMATION => DEFAULT) AT (STREAM => readings_all);
BEGIN;
INSERT INTO readings_latest SELECT sensor_id, celsius FROM readings_all;
COMMIT;
SELECT * FROM readings AT (OFFSET => 0);
-- @wait
CREATE STREAM readings_ago ON TABLE readings AT (TIMESTAMP => DATE_SUB(SECOND, 1, NOW()));

-- An audit of changes, and one consumer for each target.
CREATE OR REPLACE TABLE users (id INT, name VARCHAR, level INT);
CREATE OR REPLACE STREAM users_st ON TABLE users APPEND_ONLY = FALSE COMMENT = 'to the audit';
CREATE TABLE users_audit (id INT, name VARCHAR, action VARCHAR, is_update BOOLEAN, noted TIMESTAMP);
INSERT INTO users VALUES (1, 'Ines', 1), (2, 'Omar', 2);
INSERT INTO users_audit SELECT id, name, change$action, change$is_update, now() FROM users_st;
UPDATE users SET level = 3 WHERE id = 1;
-- @rows 2
SELECT * FROM users_st ORDER BY change$row_id;
-- @rows 1
SELECT * FROM users_st WHERE change$action = 'INSERT';
SELECT u.id, s.level FROM users u JOIN users_st s ON u.id = s.id WHERE s.change$is_update = true;
MERGE INTO users_audit a USING (SELECT * FROM users_st WHERE change$action = 'INSERT') s ON a.id = s.id
    WHEN MATCHED THEN UPDATE SET a.name = s.name, a.action = s.change$action
    WHEN NOT MATCHED THEN INSERT (id, name, action) VALUES (s.id, s.name, s.change$action);
-- @rows 0
SELECT * FROM users_st;
DELETE FROM users WHERE id = 2;
-- @rows 1
SELECT id, change$action FROM users_st WITH (CONSUME = true);
-- @rows 0
SELECT id FROM users_st;
SHOW STREAMS FROM default;
SELECT * FROM stream_status('users_st');
CREATE OR REPLACE TABLE users_new AS SELECT id, name FROM users_st WHERE change$action = 'INSERT';
DROP STREAM users_st;
