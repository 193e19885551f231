-- The changes of two flights of each type, the images of one flight next to each other.

SELECT
  __change_type, __commit_version AS version, flight_id, carrier, dep_time, arr_time, arr_delay
FROM (SELECT *, dense_rank() OVER (PARTITION BY left(__change_type, 6) ORDER BY flight_id) AS nth FROM flights_to_replica)
WHERE nth <= 2
ORDER BY left(__change_type, 6), flight_id, __change_type DESC;
