-- Consumer 1: brings the new messages into three tables, in one transaction. The stream moves at
-- COMMIT, once. Run it as often as you like, and again if it was killed.

BEGIN TRANSACTION;

INSERT INTO order_log
SELECT
  partition, offset, order_id, o.customer, o.item, o.amount,
  if(is_tombstone, 'cancelled', o.status), o.delay_minutes
FROM order_messages
WHERE NOT is_bad;

INSERT INTO bad_messages
SELECT partition, offset, order_id, text
FROM order_messages
WHERE is_bad;

-- Of each order the last message that can be parsed counts. A key stays in its partition.
MERGE INTO orders AS t
USING (
  SELECT *
  FROM (SELECT *, row_number() OVER (PARTITION BY order_id ORDER BY offset DESC) AS nth FROM order_messages WHERE NOT is_bad)
  WHERE nth = 1
) AS m
ON t.order_id = m.order_id
WHEN MATCHED AND m.is_tombstone THEN DELETE
WHEN MATCHED THEN UPDATE SET
  customer = m.o.customer, item = m.o.item, amount = m.o.amount, status = m.o.status,
  delay_minutes = m.o.delay_minutes
WHEN NOT MATCHED AND NOT m.is_tombstone THEN
  INSERT (order_id, customer, item, amount, status, delay_minutes)
  VALUES (m.order_id, m.o.customer, m.o.item, m.o.amount, m.o.status, m.o.delay_minutes);

COMMIT;
