-- Consumer 2: brings the summary up to date from the net changes of `orders` alone. A row that came
-- counts +1, a row that went counts -1, an updated row is both.

MERGE INTO orders_by_customer AS s
USING (
  SELECT
    customer, item,
    sum(sign) AS orders,
    sum(sign * amount) AS amount,
    sum(sign * int(status = 'late')) AS late,
    sum(sign * delay_minutes) AS delay_minutes
  FROM (
    SELECT *, if(__change_type IN ('INSERT', 'UPDATE_AFTER'), 1, -1) AS sign FROM orders_changes
  )
  GROUP BY customer, item
) AS c
ON s.customer = c.customer AND s.item = c.item
WHEN MATCHED AND s.orders + c.orders = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET
  orders = s.orders + c.orders,
  amount = s.amount + c.amount,
  late = s.late + c.late,
  delay_minutes = s.delay_minutes + c.delay_minutes
WHEN NOT MATCHED AND c.orders <> 0 THEN INSERT *;
