-- Consumer 1: makes flights_replica equal to flights. Run it as often as you like: the stream gives
-- each change once.

MERGE INTO flights_replica AS r
USING flights_to_replica AS s
ON r.flight_id = s.flight_id
WHEN MATCHED AND s.__change_type = 'UPDATE_AFTER' THEN UPDATE SET *
WHEN MATCHED AND s.__change_type = 'DELETE' THEN DELETE
WHEN NOT MATCHED AND s.__change_type = 'INSERT' THEN INSERT *;
