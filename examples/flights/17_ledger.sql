-- The ledger: which statement took which versions of flights, exclusive to inclusive, into which
-- version of its target.

SELECT
  split_part(stream, '.', -1) AS stream,
  split_part(target, '.', -1) AS target,
  operation,
  from_version AS after,
  through_version AS through,
  rows_written AS rows,
  target_version,
  outcome,
  round((unix_micros(ended_at) - unix_micros(started_at)) / 1e6, 1) AS seconds
FROM streamql.consumptions
ORDER BY ended_at DESC, stream
LIMIT 12;
