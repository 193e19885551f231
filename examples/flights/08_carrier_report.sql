-- The carriers' report on the latest month, by one MERGE with every kind of clause: SkyWest's
-- flights (OO) go under United's code, of a thousand flights three turn out to be cancelled, two
-- are withdrawn, two flew twice (an extra section, numbered 9000 higher); cancelled flights that
-- the report leaves out are dropped. Chosen by a hash of flight_id: the same in every run.

DECLARE OR REPLACE VARIABLE latest_month INT;

SET VAR latest_month = (SELECT max(month) FROM flights);

MERGE INTO flights AS f
USING (
  SELECT
    *, flight_id AS report_id, flight AS number,
    pmod(xxhash64(flight_id, 'report'), 1000) AS lot
  FROM flights
  WHERE
    month = latest_month AND flight < 9000
    AND (dep_time IS NOT NULL OR pmod(day, 2) = 0)
  UNION ALL
  SELECT *, concat_ws('/', flight_date, carrier, flight + 9000, origin), flight + 9000, 1000
  FROM flights
  WHERE
    month = latest_month AND flight < 9000
    AND pmod(xxhash64(flight_id, 'report'), 1000) IN (5, 6)
) AS r
ON f.flight_id = r.report_id
WHEN MATCHED AND r.carrier = 'OO' THEN UPDATE SET carrier = 'UA'
WHEN MATCHED AND r.lot < 3 THEN UPDATE SET
  dep_time = NULL, dep_delay = NULL, arr_time = NULL, arr_delay = NULL, air_time = NULL
WHEN MATCHED AND r.lot < 5 THEN DELETE
WHEN NOT MATCHED THEN INSERT (
  flight_id, flight_date, year, month, day,
  dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time, arr_delay,
  carrier, flight, tailnum, origin, dest,
  air_time, distance, hour, minute, time_hour
) VALUES (
  r.report_id, r.flight_date, r.year, r.month, r.day,
  r.dep_time, r.sched_dep_time, r.dep_delay, r.arr_time, r.sched_arr_time, r.arr_delay,
  r.carrier, r.number, r.tailnum, r.origin, r.dest,
  r.air_time, r.distance, r.hour, r.minute, r.time_hour
)
WHEN NOT MATCHED BY SOURCE AND f.month = latest_month AND f.dep_time IS NULL THEN DELETE;
