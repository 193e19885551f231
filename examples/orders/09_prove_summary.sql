-- Is the summary what `orders` gives when everything is added up anew?

WITH anew AS (
  SELECT
    customer, item,
    count(*) AS orders,
    sum(amount) AS amount,
    count_if(status = 'late') AS late,
    sum(delay_minutes) AS delay_minutes
  FROM orders
  GROUP BY customer, item
)
SELECT
  (SELECT count(*) FROM orders_by_customer) AS rows,
  (SELECT count(*) FROM (TABLE anew EXCEPT ALL TABLE orders_by_customer)) AS missing,
  (SELECT count(*) FROM (TABLE orders_by_customer EXCEPT ALL TABLE anew)) AS wrong;
