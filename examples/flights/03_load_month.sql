-- Loads the first month that is not in flights yet. Nothing here knows of streams.

ALTER TABLE landing RECOVER PARTITIONS;

INSERT INTO flights
SELECT
  concat_ws('/', make_date(year, month, day), carrier, flight, origin) AS flight_id,
  make_date(year, month, day) AS flight_date,
  * EXCEPT (arrived)
FROM landing
WHERE arrived = (SELECT coalesce(max(month), 0) + 1 FROM flights);
