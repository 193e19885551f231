-- What the streams have to show now. Reading moves no offset.

SELECT
  __change_type, count(*) AS rows,
  min(__commit_version) AS from_version, max(__commit_version) AS to_version
FROM flights_to_replica
GROUP BY __change_type
ORDER BY __change_type;
