-- The tables. `orders` has one row an order and tracks its changes; the second stream watches it.

CREATE TABLE orders (
  order_id STRING, customer STRING, item STRING, amount INT, status STRING, delay_minutes INT
) USING delta;

ALTER TABLE orders SET PROPERTIES ('change_tracking' = 'true');

CREATE TABLE STREAM orders_changes ON TABLE orders
COMMENT = 'keeps the summary orders_by_customer current';

-- One row a customer and item.
CREATE TABLE orders_by_customer (
  customer STRING, item STRING, orders BIGINT, amount BIGINT, late BIGINT, delay_minutes BIGINT
) USING delta;

-- Each event as it came, tombstones too (a message without a value: the order is cancelled).
CREATE TABLE order_log (
  `partition` INT, `offset` BIGINT,
  order_id STRING, customer STRING, item STRING, amount INT, status STRING, delay_minutes INT
) USING delta;

-- Each message that could not be parsed.
CREATE TABLE bad_messages (`partition` INT, `offset` BIGINT, order_id STRING, text STRING) USING delta;

-- The fields of a message. The option of from_json keeps Spark from parsing only the fields that a
-- query names, so that each value of a wrong type is found.
CREATE VIEW order_messages AS
SELECT
  partition, offset, CAST(key AS STRING) AS order_id, CAST(value AS STRING) AS text,
  from_json(
    CAST(value AS STRING),
    'customer STRING, item STRING, amount INT, status STRING, delay_minutes INT, _corrupt_record STRING',
    map('mode', 'PERMISSIVE')
  ) AS o,
  value IS NULL AS is_tombstone,
  value IS NOT NULL AND (o._corrupt_record IS NOT NULL OR o.status IS NULL) AS is_bad
FROM orders_stream;

-- What the producer has sent, from its own journal: the proofs compare with it.
CREATE TABLE sent_messages (
  number BIGINT, type STRING, order_id STRING, customer STRING, item STRING, amount INT, status STRING,
  delay_minutes INT, text STRING
) USING json;
