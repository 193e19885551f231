-- Queries and short statements in forms that Spark does not have.
CREATE TABLE sample (a INT, b VARCHAR NULL);
INSERT INTO sample VALUES (1, 'x'), (2, NULL);
-- @rows 1
SELECT count() FROM sample;
SELECT CAST(a AS STRING NULL) FROM sample;
-- @rows 2
SELECT a, COUNT(b) OVER w AS n FROM sample WINDOW w AS (PARTITION BY b);
SELECT a FROM sample SAMPLE ROW (50);
-- @rows 2
SELECT a FROM sample SAMPLE ROW (10 ROWS);
-- @refused ANALYZE
ANALYZE TABLE sample;
-- @refused BITMAP
CREATE TABLE visits (page INT, users BITMAP);
-- @rows 1
SELECT number * 2 AS a, a * 2 AS double FROM numbers(3) WHERE (a + 1) % 3 = 0;
CREATE OR REPLACE TABLE sample_copy LIKE sample;
CREATE OR REPLACE TABLE sample_copy LIKE sample;
-- @refused FUSE_SNAPSHOT
SELECT snapshot_id, timestamp FROM FUSE_SNAPSHOT('default', 'sample');
-- @refused EXPLAIN ANALYZE
EXPLAIN ANALYZE SELECT * FROM sample;
CREATE STREAM sample_st ON TABLE sample;
INSERT INTO sample VALUES (3, 'y');
-- @rows 1
CALL system$stream_status('sample_st');
-- @refused system.streams
SELECT * FROM system.streams;
-- @rows 1
SHOW STREAMS WHERE mode = 'append_only';
