-- The reference of CREATE STREAM and its clauses.
CREATE TABLE "MyOrders" ("Order Id" INT, amount NUMBER(10, 2));
CREATE TABLE orders (id INT, amount NUMBER(10, 2)) CHANGE_TRACKING = TRUE;
INSERT INTO orders VALUES (1, 10.5);
CREATE STREAM IF NOT EXISTS orders_st ON TABLE orders;
CREATE OR REPLACE STREAM orders_st ON TABLE orders COMMENT = 'to the copy';
CREATE STREAM quoted_st ON TABLE "MyOrders";
CREATE STREAM orders_in ON TABLE orders INSERT_ONLY = TRUE;
CREATE STREAM orders_all ON TABLE orders SHOW_INITIAL_ROWS = TRUE;
-- @rows 1
SELECT * FROM orders_all;
CREATE OR REPLACE STREAM orders_tagged WITH TAG (cost_center = 'sales') COPY GRANTS ON TABLE orders;
CREATE STREAM orders_from ON TABLE orders AT (STREAM => 'orders_st');
CREATE STREAM orders_clone CLONE orders_st;
CREATE OR REPLACE STREAM orders_clone CLONE orders_st COPY GRANTS;
SET at_now = (SELECT CURRENT_TIMESTAMP());
CREATE STREAM orders_var ON TABLE orders AT (TIMESTAMP => $at_now);
CREATE STREAM orders_zero ON TABLE orders AT (OFFSET => 0);
-- @wait
CREATE STREAM orders_ago ON TABLE orders AT (OFFSET => -1);
CREATE STREAM orders_before ON TABLE orders BEFORE (OFFSET => -1*1);
CREATE STREAM orders_diff ON TABLE orders AT (TIMESTAMP => DATEADD(second, -1, CURRENT_TIMESTAMP()));
CREATE STREAM orders_new_ago ON TABLE orders AT (TIMESTAMP => CURRENT_TIMESTAMP()::TIMESTAMP_TZ) APPEND_ONLY = TRUE;
-- @translated the table is younger than the point in time
CREATE STREAM orders_5min ON TABLE orders AT (OFFSET => -60*5);
-- @translated the table is younger than the point in time
CREATE STREAM orders_ts ON TABLE orders BEFORE (TIMESTAMP => TO_TIMESTAMP(40*365*86400));
-- @translated the table is younger than the point in time
CREATE STREAM orders_tz ON TABLE orders AT (TIMESTAMP => TO_TIMESTAMP_TZ('02/02/2023 01:02:03', 'mm/dd/yyyy hh24:mi:ss'));
-- @translated the table is younger than the point in time
CREATE STREAM orders_cast ON TABLE orders AT (TIMESTAMP => '2023-06-01 00:00:00'::TIMESTAMP_LTZ);
-- @refused STATEMENT
CREATE STREAM orders_stmt ON TABLE orders BEFORE (STATEMENT => '8e5d0ca9-005e-44e6-b858-a8f5b37c5726');

CREATE OR REPLACE VIEW large_orders AS SELECT id, amount FROM orders WHERE amount > 5;
CREATE STREAM large_st ON VIEW large_orders;
CREATE STREAM large_new ON VIEW large_orders APPEND_ONLY = TRUE;
CREATE SECURE VIEW small_orders CHANGE_TRACKING = TRUE AS SELECT id FROM orders WHERE amount <= 5;
ALTER VIEW small_orders SET CHANGE_TRACKING = TRUE;
CREATE STREAM small_st ON VIEW small_orders;
INSERT INTO orders VALUES (2, 20), (3, 3);
-- @rows 1
SELECT * FROM large_st;

-- @refused STAGE
CREATE STREAM files_st ON STAGE landing;
-- @refused EVENT
CREATE STREAM events_st ON EVENT TABLE app_events;
-- @refused external table
CREATE STREAM ext_st ON EXTERNAL TABLE ext_orders INSERT_ONLY = TRUE;
-- @refused external tables
CREATE EXTERNAL TABLE ext_orders (d DATE AS (value:c1::DATE)) LOCATION = @landing FILE_FORMAT = (TYPE = PARQUET);

ALTER STREAM orders_st SET COMMENT = 'for the copy of orders';
ALTER STREAM IF EXISTS orders_st UNSET COMMENT;
-- @refused APPEND_ONLY
ALTER STREAM orders_st SET APPEND_ONLY = TRUE;
-- @refused TAG
ALTER STREAM orders_st SET TAG cost_center = 'sales';
SHOW STREAMS;
SHOW TERSE STREAMS;
SHOW STREAMS LIKE 'orders%';
SHOW STREAMS IN ACCOUNT;
SHOW STREAMS LIKE 'orders%' IN ACCOUNT;
DESCRIBE STREAM orders_st;
DESC STREAM orders_st;
SHOW STREAMS LIKE 'large%';
SHOW STREAMS LIMIT 5;
DESCRIBE STREAM large_st;
ALTER STREAM IF EXISTS large_st SET COMMENT = 'orders above 5';
DROP STREAM orders_zero;
DROP STREAM orders_ago;
DROP STREAM IF EXISTS orders_in;
SELECT SYSTEM$STREAM_HAS_DATA('orders_st');
SELECT SYSTEM$STREAM_GET_TABLE_TIMESTAMP('orders_st');
SELECT * FROM TABLE(SYSTEM$STREAM_BACKLOG('orders_st'));
SELECT id, METADATA$ACTION, METADATA$ISUPDATE, METADATA$ROW_ID FROM large_st;
SELECT id FROM large_st WHERE METADATA$ACTION = 'INSERT' AND METADATA$ISUPDATE = 'FALSE';
CREATE TABLE large_copy (id INT, amount NUMBER(10, 2));
INSERT INTO large_copy SELECT id, amount FROM large_st WHERE METADATA$ACTION = 'INSERT';
-- @rows 0
SELECT * FROM large_st;
SELECT SYSTEM$STREAM_HAS_DATA('large_st') AS has_data;
SELECT TO_TIMESTAMP(0) < SYSTEM$STREAM_GET_TABLE_TIMESTAMP('orders_st') AS is_later;
CREATE OR REPLACE STREAM large_st ON VIEW large_orders SHOW_INITIAL_ROWS = TRUE;
-- @rows 2
SELECT * FROM large_st WHERE METADATA$ACTION = 'INSERT';
