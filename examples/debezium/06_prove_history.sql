-- Has the history each state of each flight, from its change until the next one? No state of a flight
-- is like the one before it.

REFRESH TABLE sent_messages;

WITH changes AS (
  SELECT DISTINCT id, carrier, route, state, delay, op, lsn FROM sent_messages WHERE op <> 'tombstone'
),
expected AS (
  SELECT id, carrier, route, state, delay, lsn, until
  FROM (SELECT *, lead(lsn) OVER (PARTITION BY id ORDER BY lsn) AS until FROM changes)
  WHERE op <> 'd'
)
SELECT
  (SELECT count(*) FROM flight_history) AS rows,
  (SELECT count(*) FROM (TABLE expected EXCEPT ALL TABLE flight_history)) AS missing,
  (SELECT count(*) FROM (TABLE flight_history EXCEPT ALL TABLE expected)) AS wrong;
