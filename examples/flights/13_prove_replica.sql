-- Is flights_replica equal to flights? A fingerprint over all columns of all rows. xxhash64 passes
-- over NULLs, so that where they are is hashed too.

SELECT
  'flights' AS table, count(*) AS rows,
  sum(CAST(xxhash64(
    *, dep_time IS NULL, dep_delay IS NULL, arr_time IS NULL, arr_delay IS NULL,
    tailnum IS NULL, air_time IS NULL
  ) AS DECIMAL(38))) AS fingerprint
FROM flights
UNION ALL
SELECT
  'flights_replica', count(*),
  sum(CAST(xxhash64(
    *, dep_time IS NULL, dep_delay IS NULL, arr_time IS NULL, arr_delay IS NULL,
    tailnum IS NULL, air_time IS NULL
  ) AS DECIMAL(38)))
FROM flights_replica;
