-- Lists of tables, streams and refreshes.
CREATE TABLE arrivals (id INT, dock STRING);
ALTER TABLE arrivals SET PROPERTIES ('change_tracking' = 'true');
CREATE TABLE STREAM arrivals_st ON TABLE arrivals WITH PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY');
CREATE DYNAMIC TABLE per_dock REFRESH INTERVAL 10 MINUTE AS SELECT dock, count(*) AS n FROM arrivals GROUP BY dock;
-- @rows 1
SHOW TABLES WHERE is_dynamic = true;
-- @rows 0
SHOW TABLES WHERE is_materialized_view = true;
-- @rows 1
SHOW DYNAMIC TABLE REFRESH HISTORY WHERE name = 'per_dock' AND state = 'SUCCEED' LIMIT 5;
SHOW DYNAMIC TABLE REFRESH HISTORY WHERE name = 'per_dock' AND refresh_mode = 'INCREMENTAL';
-- @refused refresh_trigger
SHOW DYNAMIC TABLE REFRESH HISTORY WHERE name = 'per_dock' AND refresh_trigger = 'SYSTEM_SCHEDULED';
-- @rows 1
SHOW TABLE STREAMS WHERE table_name = 'arrivals';
-- @refused stream
CREATE DYNAMIC TABLE from_stream REFRESH INTERVAL 10 MINUTE AS SELECT id FROM arrivals_st;
