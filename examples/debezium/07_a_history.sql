-- The states of the flight that was most delayed.

SELECT id, route, state, delay, __START_AT, __END_AT
FROM flight_history
WHERE id = (SELECT id FROM flight_history ORDER BY delay DESC NULLS LAST, id LIMIT 1)
ORDER BY __START_AT;
