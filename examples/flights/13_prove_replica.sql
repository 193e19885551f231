-- Is flights_replica equal to flights? A fingerprint over all columns of all rows; by to_json,
-- because it tells a NULL from a value in the column next to it, which xxhash64(*) does not.

SELECT
  'flights' AS table, count(*) AS rows,
  sum(CAST(xxhash64(to_json(struct(*))) AS DECIMAL(38))) AS fingerprint
FROM flights
UNION ALL
SELECT
  'flights_replica', count(*),
  sum(CAST(xxhash64(to_json(struct(*))) AS DECIMAL(38)))
FROM flights_replica;
