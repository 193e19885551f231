-- The ledger: which statement took what, and where to.

SELECT
  split_part(stream, '.', -1) AS stream,
  split_part(target, '.', -1) AS target,
  operation,
  outcome,
  rows_written AS rows,
  round((unix_micros(ended_at) - unix_micros(started_at)) / 1e6, 1) AS seconds
FROM streamql.consumptions
ORDER BY ended_at, stream, target;
