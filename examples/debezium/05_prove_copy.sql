-- Is `flights_now` what the producer's journal gives: of each flight the change with the greatest lsn,
-- unless it deletes the flight?

REFRESH TABLE sent_messages;

WITH expected AS (
  SELECT id, carrier, route, state, delay, lsn
  FROM (
    SELECT *, row_number() OVER (PARTITION BY id ORDER BY lsn DESC) AS nth
    FROM sent_messages
    WHERE op <> 'tombstone'
  )
  WHERE nth = 1 AND op <> 'd'
)
SELECT
  (SELECT count(*) FROM flights_now) AS rows,
  (SELECT count(*) FROM (TABLE expected EXCEPT ALL TABLE flights_now)) AS missing,
  (SELECT count(*) FROM (TABLE flights_now EXCEPT ALL TABLE expected)) AS wrong;
