-- Dynamic tables and materialized views.
CREATE TABLE tickets (id INT, city STRING, price NUMBER(6, 2), sold_at TIMESTAMP_NTZ);
INSERT INTO tickets VALUES (1, 'Bern', 20, '2023-06-01 10:00:00'), (2, 'Rome', 35.5, '2023-06-01 11:00:00');
CREATE OR REPLACE DYNAMIC TABLE city_tickets
  TARGET_LAG = '20 minutes'
  WAREHOUSE = report_wh
  AS
    SELECT city, COUNT(*) AS tickets, SUM(price) AS total FROM tickets GROUP BY city;
-- @rows 2
SELECT * FROM city_tickets;
CREATE DYNAMIC TABLE IF NOT EXISTS cheap_tickets
  TARGET_LAG = DOWNSTREAM
  WAREHOUSE = report_wh
  REFRESH_MODE = INCREMENTAL
  INITIALIZE = ON_CREATE
  COMMENT = 'below 30'
  AS SELECT id, IFF(price < 30, 'cheap', 'full') AS class, sold_at::DATE AS day FROM tickets WHERE price < 30;
CREATE TRANSIENT DYNAMIC TABLE top_tickets TARGET_LAG = '1 hour' WAREHOUSE = report_wh INITIALIZE = ON_SCHEDULE
  AS SELECT id, city FROM tickets QUALIFY ROW_NUMBER() OVER (PARTITION BY city ORDER BY price DESC) = 1;
CREATE STREAM city_st ON DYNAMIC TABLE city_tickets;
INSERT INTO tickets VALUES (3, 'Oslo', 12, '2023-06-02 09:00:00');
ALTER DYNAMIC TABLE city_tickets REFRESH;
-- @rows 1
SELECT * FROM city_st;
ALTER DYNAMIC TABLE city_tickets SUSPEND;
ALTER DYNAMIC TABLE city_tickets RESUME;
ALTER DYNAMIC TABLE city_tickets SET TARGET_LAG = '1 hour';
ALTER DYNAMIC TABLE city_tickets SET TARGET_LAG = DOWNSTREAM;
-- @refused WAREHOUSE
ALTER DYNAMIC TABLE city_tickets SET WAREHOUSE = other_wh;
-- @refused SWAP
ALTER DYNAMIC TABLE city_tickets SWAP WITH cheap_tickets;
SHOW DYNAMIC TABLES LIKE 'city_%';
DESC DYNAMIC TABLE city_tickets;
-- @refused ICEBERG
CREATE DYNAMIC ICEBERG TABLE ice TARGET_LAG = '20 minutes' WAREHOUSE = report_wh AS SELECT id FROM tickets;
-- @refused CLONE
CREATE DYNAMIC TABLE city_clone CLONE city_tickets;
-- @refused history
SELECT name, state FROM TABLE(INFORMATION_SCHEMA.DYNAMIC_TABLE_REFRESH_HISTORY(NAME_PREFIX => 'DB.S.'));
SHOW DYNAMIC TABLES LIKE 'city_%' IN SCHEMA mydb.default;
-- @refused GET_DDL
SELECT GET_DDL('dynamic_table', 'city_tickets');
-- @refused UNDROP
UNDROP DYNAMIC TABLE city_tickets;
CREATE DYNAMIC TABLE shown_tickets (id NUMBER NOT NULL, city VARCHAR WITH MASKING POLICY hide_city)
  TARGET_LAG = '1 hour' WAREHOUSE = report_wh AS SELECT id, city FROM tickets;
CREATE OR ALTER DYNAMIC TABLE shown_tickets TARGET_LAG = '1 hour' WAREHOUSE = report_wh AS SELECT id FROM tickets;
-- @rows 3
SELECT * FROM shown_tickets;
DROP DYNAMIC TABLE cheap_tickets;
CREATE MATERIALIZED VIEW rome_tickets COMMENT = 'of Rome' AS SELECT id, price FROM tickets WHERE city = 'Rome';
-- @rows 1
SELECT * FROM rome_tickets;
DROP MATERIALIZED VIEW rome_tickets;
