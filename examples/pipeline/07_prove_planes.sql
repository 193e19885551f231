-- Is the history what the reports say? Each report with a delay is an event; a state begins where
-- the airport differs from that of the event before.

WITH events AS (
  SELECT tailnum, dest AS airport, scheduled + CAST(delay AS INT) * INTERVAL '1' MINUTE AS left_at
  FROM reports
  WHERE try_cast(delay AS INT) IS NOT NULL
),
states AS (
  SELECT * FROM (
    SELECT *, lag(airport) OVER (PARTITION BY tailnum ORDER BY left_at) AS before FROM events
  ) WHERE before IS DISTINCT FROM airport
),
history AS (
  SELECT tailnum, airport, left_at AS start_at, lead(left_at) OVER (PARTITION BY tailnum ORDER BY left_at) AS end_at
  FROM states
),
counts AS (SELECT airport, count(*) AS planes FROM history WHERE end_at IS NULL GROUP BY airport)
SELECT
  (SELECT count(*) FROM planes) AS states,
  (SELECT count(*) FROM (TABLE history EXCEPT ALL TABLE planes)) AS missing,
  (SELECT count(*) FROM (TABLE planes EXCEPT ALL TABLE history)) AS wrong,
  (SELECT count(*) FROM planes_at) AS airports,
  (SELECT count(*) FROM (TABLE counts EXCEPT ALL TABLE planes_at))
    + (SELECT count(*) FROM (TABLE planes_at EXCEPT ALL TABLE counts)) AS different;
