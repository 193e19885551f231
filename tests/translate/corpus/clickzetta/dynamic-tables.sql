-- Dynamic tables, materialized views, and DDL.
CREATE TABLE IF NOT EXISTS items (item_id INT, item STRING, class STRING);
CREATE TABLE IF NOT EXISTS sales (sale_id INT, item_id INT, qty INT, sold DATE, meta JSON);
INSERT INTO items VALUES (1, 'desk', 'wood'), (2, 'lamp', 'metal');
INSERT INTO sales SELECT 1, 1, 2, DATE '2023-06-01', PARSE_JSON('{"a": 1}');
CREATE DYNAMIC TABLE IF NOT EXISTS class_sales
REFRESH INTERVAL 10 MINUTE VCLUSTER default
AS
SELECT i.class, COUNT(*) AS n, SUM(s.qty) AS qty
FROM sales s JOIN items i ON s.item_id = i.item_id
GROUP BY i.class;
-- @rows 1
SELECT * FROM class_sales;
INSERT INTO sales (sale_id, item_id, qty) VALUES (2, 2, 1);
REFRESH DYNAMIC TABLE class_sales;
-- @rows 2
SELECT * FROM class_sales;
CREATE OR REPLACE DYNAMIC TABLE recent_sales (sale_id, sold COMMENT 'day')
COMMENT 'of this year'
REFRESH START WITH current_timestamp() INTERVAL 1 HOUR VCLUSTER default
AS SELECT sale_id, sold FROM sales WHERE sold >= DATE '2023-01-01';
CREATE TABLE STREAM class_stream ON DYNAMIC TABLE class_sales WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');
ALTER DYNAMIC TABLE class_sales SUSPEND;
ALTER DYNAMIC TABLE class_sales RESUME;
ALTER DYNAMIC TABLE class_sales SET COMMENT 'by class';
-- @refused RENAME
ALTER DYNAMIC TABLE class_sales RENAME COLUMN n TO number;
SHOW DYNAMIC TABLES;
DESC DYNAMIC TABLE class_sales;
SHOW DYNAMIC TABLE REFRESH HISTORY FOR class_sales;
SHOW CREATE DYNAMIC TABLE class_sales;
SHOW CREATE TABLE class_sales;
DROP DYNAMIC TABLE recent_sales;
-- @refused parameters
CREATE DYNAMIC TABLE day_sales PARTITIONED BY (sold) AS SELECT sale_id, sold FROM sales WHERE sold = SESSION_CONFIGS()['dt'];
CREATE MATERIALIZED VIEW IF NOT EXISTS wood BUILD DEFERRED DISABLE QUERY REWRITE AS SELECT item_id, item FROM items WHERE class = 'wood';
REFRESH MATERIALIZED VIEW wood;
-- @rows 1
SELECT * FROM wood;
SHOW MATERIALIZED VIEWS;
DROP MATERIALIZED VIEW wood;

CREATE TABLE indexed (id INT, name STRING, score DOUBLE DEFAULT random(), INDEX id_bf (id) BLOOMFILTER COMMENT 'by id');
INSERT INTO indexed (id, name) VALUES (1, 'a');
CREATE TABLE numbered (id BIGINT IDENTITY(1), v STRING, made TIMESTAMP DEFAULT current_timestamp(), y INT DEFAULT 3);
INSERT INTO numbered (v) VALUES ('a'), ('b');
CREATE TABLE keyed (id BIGINT PRIMARY KEY, v VECTOR(FLOAT, 3)) CLUSTERED BY (id) SORTED BY (id ASC) INTO 16 BUCKETS;
CREATE TABLE dated (id INT, at TIMESTAMP) PARTITIONED BY (days(at));
CREATE TABLE sales_copy AS SELECT sale_id, qty FROM sales WHERE qty > 0;
INSERT OVERWRITE sales_copy SELECT sale_id, qty FROM sales;
MERGE INTO sales_copy t USING sales s ON t.sale_id = s.sale_id
WHEN MATCHED THEN UPDATE SET t.qty = s.qty WHEN NOT MATCHED THEN INSERT (sale_id, qty) VALUES (s.sale_id, s.qty);
SELECT * FROM sales_copy QUALIFY row_number() OVER (ORDER BY qty) = 1;
DESC HISTORY sales;
DESC EXTENDED sales;
-- @refused SHOW CREATE TABLE
SHOW CREATE TABLE sales;
SHOW TABLES LIKE 'sales%';
TRUNCATE TABLE sales_copy;
-- @translated the table is younger than the point in time
SELECT * FROM sales TIMESTAMP AS OF '2023-06-01 00:00:00';
-- @translated the table is younger than the point in time
RESTORE TABLE sales TO TIMESTAMP AS OF '2023-06-01 00:00:00';
-- @refused UNDROP
UNDROP TABLE sales;
-- @refused VCLUSTER
USE VCLUSTER default;
-- @refused indexes
CREATE BLOOMFILTER INDEX IF NOT EXISTS sales_bf ON TABLE sales(sale_id);
-- @refused VOLUME
CREATE VOLUME landing LOCATION 'oss://bucket/landing/';
-- @refused stages
CREATE PIPE sales_pipe AS COPY INTO sales FROM VOLUME landing;
-- @refused pipes
CREATE PIPE clicks_pipe VIRTUAL_CLUSTER = 'default' BATCH_INTERVAL_IN_SECONDS = '60' AS
COPY INTO sales FROM (SELECT CAST(value AS STRING) FROM READ_KAFKA('localhost:9092', 'clicks', '', 'group', '', '', '', '', 'raw', 'raw', 0, MAP()));
-- @refused SYNONYM
CREATE SYNONYM my_sales FOR TABLE sales;
