-- TABLE STREAM: the guide and its practices.
CREATE TABLE IF NOT EXISTS clients (
  client_id INT,
  client_name STRING,
  status STRING
) COMMENT 'clients' PROPERTIES ('data_lifecycle' = '30');
ALTER TABLE clients SET PROPERTIES ('change_tracking' = 'true');
INSERT INTO clients VALUES (1, 'Ines', 'active'), (2, 'Omar', 'active');
CREATE TABLE STREAM clients_stream ON TABLE clients
WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');
INSERT INTO clients VALUES (3, 'Lena', 'active');
UPDATE clients SET status = 'inactive' WHERE client_id = 2;
-- @rows 3
SELECT *
FROM clients_stream
ORDER BY client_id;
-- @rows 3
SELECT client_id, __change_type, __commit_version, __commit_timestamp FROM clients_stream;
CREATE TABLE clients_copy (client_id INT, client_name STRING, status STRING);
MERGE INTO clients_copy AS t
USING (SELECT client_id, client_name, status, __change_type FROM clients_stream WHERE __change_type <> 'UPDATE_BEFORE') AS s
ON t.client_id = s.client_id
WHEN MATCHED AND s.__change_type = 'UPDATE_AFTER' THEN UPDATE SET t.client_name = s.client_name, t.status = s.status
WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE
WHEN NOT MATCHED AND s.__change_type IN ('INSERT', 'UPDATE_AFTER')
  THEN INSERT (client_id, client_name, status) VALUES (s.client_id, s.client_name, s.status);
-- @rows 2
SELECT * FROM clients_copy;
CREATE TABLE STREAM IF NOT EXISTS clients_added ON TABLE clients
WITH PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY', 'SHOW_INITIAL_ROWS' = 'TRUE') COMMENT 'new clients';
-- @rows 3
SELECT client_id FROM clients_added;
CREATE TABLE clients_log (client_id INT, what STRING, at TIMESTAMP);
INSERT INTO clients_log SELECT client_id, __change_type, __commit_timestamp FROM clients_added WHERE status = 'active';
-- @rows 0
SELECT client_id FROM clients_added;
-- @translated the table is younger than the point in time
CREATE TABLE STREAM clients_past ON TABLE clients TIMESTAMP AS OF '2023-06-01 00:00:00'
WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');
SHOW TABLE STREAMS;
SHOW TABLE STREAMS LIKE 'clients%';
DESC TABLE STREAM clients_stream;
DROP TABLE STREAM clients_added;
DROP TABLE STREAM IF EXISTS clients_none;
CREATE OR REPLACE VIEW active_clients AS SELECT client_id FROM clients WHERE status = 'active';
CREATE TABLE STREAM active_stream ON VIEW active_clients WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');
SELECT * FROM active_stream;
ALTER TABLE clients SET PROPERTIES ('data_retention_days' = '7');

-- A history of prices, and a fan-out by type of change.
CREATE TABLE prices (item_id BIGINT, price DECIMAL(10, 2), at TIMESTAMP);
ALTER TABLE prices SET PROPERTIES ('change_tracking' = 'true');
CREATE TABLE price_history (item_id BIGINT, price DECIMAL(10, 2), change STRING, version BIGINT);
CREATE TABLE STREAM prices_stream ON TABLE prices
COMMENT 'all changes of prices'
WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD');
CREATE TABLE STREAM prices_new ON TABLE prices WITH PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY');
INSERT INTO prices VALUES (1, 10.5, now()), (2, 7, current_timestamp());
UPDATE prices SET price = price * 1.1 WHERE item_id = 1;
DELETE FROM prices WHERE item_id = 2;
SELECT __change_type, COUNT(*) AS n FROM prices_stream GROUP BY __change_type;
-- @rows 2
SELECT item_id, price FROM prices_new;
INSERT INTO price_history SELECT item_id, price, __change_type, __commit_version FROM prices_stream
WHERE __change_type IN ('INSERT', 'UPDATE_AFTER');
-- @rows 1
SELECT * FROM price_history;
-- @rows 0
SELECT * FROM prices_stream;
INSERT INTO prices SELECT 3, CAST('4.25' AS DECIMAL(10, 2)), TIMESTAMP '2023-06-01 00:00:00';
WITH latest AS (
  SELECT item_id, price, ROW_NUMBER() OVER (PARTITION BY item_id ORDER BY __commit_version DESC) AS rn
  FROM prices_stream WHERE __change_type IN ('INSERT', 'UPDATE_AFTER')
)
SELECT item_id, price FROM latest WHERE rn = 1;
SELECT s.item_id, p.price, s.__change_type FROM prices_stream s LEFT JOIN prices p ON s.item_id = p.item_id;
DESC TABLE STREAM prices_stream;
SHOW TABLE STREAMS WHERE name LIKE 'prices%';
DROP TABLE STREAM prices_new;

-- Kafka: needs a broker to run.
-- @translated a broker
CREATE STORAGE CONNECTION IF NOT EXISTS shop_kafka TYPE KAFKA BOOTSTRAP_SERVERS = ['localhost:9092'] SECURITY_PROTOCOL = 'PLAINTEXT';
-- @translated a broker
CREATE EXTERNAL TABLE clicks USING KAFKA OPTIONS ('group_id' = 'shop', 'topics' = 'clicks') CONNECTION shop_kafka;
-- @translated a broker
CREATE TABLE STREAM clicks_stream ON TABLE clicks WITH PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY');
