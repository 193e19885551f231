-- The carriers' report on the latest month, by one MERGE with every type of clause: SkyWest's
-- flights (OO) go under United's code; of a thousand flights three turn out to be cancelled, two
-- are withdrawn, two flew twice (an extra section, numbered 9000 higher); cancelled flights that
-- the report leaves out are dropped. Chosen by a hash of flight_id: the same in every run.

DECLARE OR REPLACE VARIABLE latest_month INT;

SET VAR latest_month = (SELECT max(month) FROM flights);

MERGE INTO flights AS f
USING (
  SELECT
    * EXCEPT (flight_id, flight, lot, added),
    flight + added AS flight,
    if(
      added = 0, flight_id, concat_ws('/', flight_date, carrier, flight + added, origin)
    ) AS flight_id,
    if(added = 0, lot, NULL) AS lot
  FROM (
    SELECT *, pmod(xxhash64(flight_id, 'report'), 1000) AS lot, explode(array(0, 9000)) AS added
    FROM flights
    WHERE month = latest_month AND flight < 9000
  )
  WHERE (added = 0 AND (dep_time IS NOT NULL OR day % 2 = 0)) OR (added = 9000 AND lot IN (5, 6))
) AS r
ON f.flight_id = r.flight_id
WHEN MATCHED AND r.carrier = 'OO' THEN UPDATE SET carrier = 'UA'
WHEN MATCHED AND r.lot < 3 THEN UPDATE SET
  dep_time = NULL, dep_delay = NULL, arr_time = NULL, arr_delay = NULL, air_time = NULL
WHEN MATCHED AND r.lot < 5 THEN DELETE
WHEN NOT MATCHED THEN INSERT *
WHEN NOT MATCHED BY SOURCE AND f.month = latest_month AND f.dep_time IS NULL THEN DELETE;
