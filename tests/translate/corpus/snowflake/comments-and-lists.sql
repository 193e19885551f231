-- COMMENT ON, CREATE OR ALTER, lists, and ALTER DYNAMIC TABLE with several settings.
CREATE TABLE visits (id INTEGER, page VARCHAR);
CREATE OR ALTER STREAM visits_st ON TABLE visits COMMENT = 'all visits';
COMMENT ON STREAM visits_st IS 'the visits';
COMMENT ON COLUMN visits.page IS 'without its host';
COMMENT IF EXISTS ON TABLE visits IS 'of pages';
CREATE VIEW pages AS SELECT DISTINCT page FROM visits;
COMMENT ON VIEW pages IS 'each page';
-- @rows 1
SHOW STREAMS IN SCHEMA;
SHOW STREAMS LIKE 'visits%' IN DATABASE;
-- @rows 2
SHOW COLUMNS IN TABLE visits;
CREATE DYNAMIC TABLE per_page TARGET_LAG = '1 hour' WAREHOUSE = w AS SELECT page, COUNT(*) AS n FROM visits GROUP BY page;
CREATE DYNAMIC TABLE busy TARGET_LAG = DOWNSTREAM WAREHOUSE = w AS SELECT page FROM per_page WHERE n > 9;
ALTER DYNAMIC TABLE per_page SET TARGET_LAG = '5 minutes', WAREHOUSE = w;
ALTER DYNAMIC TABLE per_page, busy REFRESH;
ALTER DYNAMIC TABLE per_page REFRESH COPY SESSION;
-- @refused refreshes
ALTER DYNAMIC TABLE per_page SET WAREHOUSE = other;
