-- The slow proof: rows that only flights has, and rows that only its copy has, compared in every
-- column.

SELECT
  (SELECT count(*) FROM (TABLE flights EXCEPT ALL TABLE flights_replica)) AS missing,
  (SELECT count(*) FROM (TABLE flights_replica EXCEPT ALL TABLE flights)) AS wrong;
