-- Consumer 3: writes down every new flight as it was first reported, whatever became of it later.

INSERT INTO flight_audit
SELECT flight_id, carrier, flight_date, arr_delay, __commit_version, __commit_timestamp
FROM flights_to_audit;
