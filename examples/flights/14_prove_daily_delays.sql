-- Is the summary what flights gives when everything is added up anew? Rows that only one of the two
-- has, either way.

WITH anew AS (
  SELECT
    carrier, flight_date,
    count(*) AS flights,
    count_if(dep_time IS NULL) AS cancelled,
    count(arr_delay) AS arrived,
    count_if(arr_delay > 15) AS late,
    coalesce(sum(arr_delay), 0) AS delay_minutes
  FROM flights
  GROUP BY carrier, flight_date
)
SELECT
  (SELECT count(*) FROM daily_delays) AS groups,
  (SELECT count(*) FROM (TABLE anew EXCEPT ALL TABLE daily_delays)) AS missing,
  (SELECT count(*) FROM (TABLE daily_delays EXCEPT ALL TABLE anew)) AS wrong;
