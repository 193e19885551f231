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
CREATE STREAM sample_st ON TABLE sample;
INSERT INTO sample VALUES (3, 'y');
-- @rows 1
CALL system$stream_status('sample_st');
-- @refused system.streams
SELECT * FROM system.streams;
-- @rows 1
SHOW STREAMS WHERE mode = 'append_only';
