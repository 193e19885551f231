-- Takes the changes of the dynamic table, as of any other table.

INSERT INTO carrier_day_log
SELECT __change_type, airline, flight_date, flights, cancelled, delay_minutes
FROM carrier_days_changes;
