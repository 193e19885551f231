-- Consumer 2: brings the summary up to date from the changes alone, without reading flights again.
-- A row that came counts +1, a row that went counts -1, an updated row is both; a group with no
-- flights left is removed.

MERGE INTO daily_delays AS d
USING (
  SELECT
    carrier, flight_date,
    sum(sign) AS flights,
    sum(sign * int(dep_time IS NULL)) AS cancelled,
    sum(sign * int(arr_delay IS NOT NULL)) AS arrived,
    sum(sign * int(coalesce(arr_delay > 15, false))) AS late,
    sum(sign * coalesce(arr_delay, 0)) AS delay_minutes
  FROM (
    SELECT *, CASE WHEN __change_type IN ('INSERT', 'UPDATE_AFTER') THEN 1 ELSE -1 END AS sign
    FROM flights_to_delays
  )
  GROUP BY carrier, flight_date
) AS c
ON d.carrier = c.carrier AND d.flight_date = c.flight_date
WHEN MATCHED AND d.flights + c.flights = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET
  flights = d.flights + c.flights,
  cancelled = d.cancelled + c.cancelled,
  arrived = d.arrived + c.arrived,
  late = d.late + c.late,
  delay_minutes = d.delay_minutes + c.delay_minutes
WHEN NOT MATCHED THEN INSERT *;
