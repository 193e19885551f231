-- What the stream on `orders` shows.

SELECT __change_type, count(*) AS rows, count(DISTINCT order_id) AS orders
FROM orders_changes
GROUP BY __change_type
ORDER BY __change_type;
