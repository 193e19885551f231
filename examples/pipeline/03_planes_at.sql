-- The airports with the most planes.

SELECT airport, planes FROM planes_at ORDER BY planes DESC, airport LIMIT 5;
