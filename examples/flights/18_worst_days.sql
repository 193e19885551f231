-- What it is all for: the carriers' worst days, from the summary.

SELECT
  carrier, flight_date, flights, cancelled, late,
  round(delay_minutes / arrived, 1) AS mean_delay,
  round(100 * late / arrived) AS late_percent
FROM daily_delays
WHERE flights >= 100 AND arrived > 0
ORDER BY delay_minutes / arrived DESC
LIMIT 5;
