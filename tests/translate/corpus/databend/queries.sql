-- Queries and short statements in forms that Spark does not have.
CREATE TABLE sample (a INT, b VARCHAR NULL);
INSERT INTO sample VALUES (1, 'x'), (2, NULL);
-- @rows 1
SELECT count() FROM sample;
SELECT CAST(a AS STRING NULL) FROM sample;
CREATE STREAM sample_st ON TABLE sample;
INSERT INTO sample VALUES (3, 'y');
-- @rows 1
CALL system$stream_status('sample_st');
-- @refused system.streams
SELECT * FROM system.streams;
-- @rows 1
SHOW STREAMS WHERE mode = 'append_only';
