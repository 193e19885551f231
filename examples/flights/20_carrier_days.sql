-- A table that a query defines: one row an airline and day. CREATE fills it. A stream on it shows
-- what each refresh changes.

INSERT INTO airlines SELECT * FROM airline_names;

CREATE DYNAMIC TABLE carrier_days TARGET_LAG = '10 minutes' AS
SELECT
  a.name AS airline, f.flight_date,
  count(*) AS flights,
  count_if(f.dep_time IS NULL) AS cancelled,
  coalesce(sum(f.arr_delay), 0) AS delay_minutes
FROM flights f JOIN airlines a ON f.carrier = a.carrier
GROUP BY a.name, f.flight_date;

CREATE STREAM carrier_days_changes ON DYNAMIC TABLE carrier_days;

CREATE TABLE carrier_day_log (
  change STRING, airline STRING, flight_date DATE, flights BIGINT, cancelled BIGINT,
  delay_minutes BIGINT
) USING delta;
