-- Some of the log: one airline's corrected days, before and after.

SELECT * FROM carrier_day_log
WHERE airline = (SELECT min(airline) FROM carrier_day_log)
ORDER BY flight_date, change DESC
LIMIT 6;
