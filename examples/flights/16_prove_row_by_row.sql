-- The slow proof: rows that only flights has, and rows that only its copy has, compared in every column.

SELECT
  (SELECT count(*) FROM (SELECT * FROM flights EXCEPT ALL SELECT * FROM flights_replica)) AS missing,
  (SELECT count(*) FROM (SELECT * FROM flights_replica EXCEPT ALL SELECT * FROM flights)) AS wrong;
