-- Has each message arrived once? The log and the bad messages together against the producer's
-- journal: rows that only one of the two has, either way.

REFRESH TABLE sent_messages;

WITH sent AS (
  SELECT order_id, customer, item, amount, status, delay_minutes, text FROM sent_messages
),
arrived AS (
  SELECT order_id, customer, item, amount, status, delay_minutes, CAST(NULL AS STRING) AS text
  FROM order_log
  UNION ALL
  SELECT order_id, NULL, NULL, NULL, NULL, NULL, text
  FROM bad_messages
)
SELECT
  (SELECT count(*) FROM arrived) AS rows,
  (SELECT count(*) FROM bad_messages) AS bad,
  (SELECT count(*) FROM (TABLE sent EXCEPT ALL TABLE arrived)) AS missing,
  (SELECT count(*) FROM (TABLE arrived EXCEPT ALL TABLE sent)) AS wrong;
