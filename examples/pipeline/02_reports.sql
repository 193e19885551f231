-- The reports of the latest month. Three of them come from a terminal that writes delays as it likes.

INSERT INTO reports
SELECT tailnum, dest, make_timestamp(year, month, day, hour, minute, 0), coalesce(string(dep_delay), 'NA')
FROM flights
WHERE month = (SELECT max(month) FROM flights);

INSERT INTO reports VALUES
  ('N14228', 'SFO', TIMESTAMP'2013-01-10 23:59:00', '12 min'),
  ('N24211', 'LAX', TIMESTAMP'2013-01-10 23:58:00', '3O'),
  ('N619AA', 'MIA', TIMESTAMP'2013-01-10 23:57:00', '');
