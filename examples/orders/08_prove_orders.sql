-- Is `orders` what the producer's journal gives: of each order the last event, unless it cancels the
-- order?

REFRESH TABLE sent_messages;

WITH expected AS (
  SELECT order_id, customer, item, amount, status, delay_minutes
  FROM (
    SELECT *, row_number() OVER (PARTITION BY order_id ORDER BY number DESC) AS nth
    FROM sent_messages
    WHERE type <> 'bad'
  )
  WHERE nth = 1 AND type = 'event'
)
SELECT
  (SELECT count(*) FROM orders) AS rows,
  (SELECT count(*) FROM (TABLE expected EXCEPT ALL TABLE orders)) AS missing,
  (SELECT count(*) FROM (TABLE orders EXCEPT ALL TABLE expected)) AS wrong;
