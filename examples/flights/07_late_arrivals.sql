-- Arrival delays of the latest month are corrected: one flight in fifty, by -2 to +2 minutes. One
-- in five of those "corrections" is by 0 minutes: an UPDATE that changes nothing.

DECLARE OR REPLACE VARIABLE latest_month INT;

SET VAR latest_month = (SELECT max(month) FROM flights);

UPDATE flights
SET arr_delay = arr_delay + int(pmod(xxhash64(flight_id, 'minutes'), 5)) - 2
WHERE month = latest_month AND arr_delay IS NOT NULL AND pmod(xxhash64(flight_id), 50) = 0;
