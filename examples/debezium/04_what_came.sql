-- What the stream shows, by the type of change. Reading moves no offset.

SELECT op, count(*) AS messages, count(DISTINCT lsn) AS changes, count(DISTINCT flight.id) AS flights
FROM flight_changes
GROUP BY op
ORDER BY op;
