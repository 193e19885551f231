-- The consumer: applies the new changes to both targets, in one transaction. The place of a change in
-- the database's log orders the events, so late and doubled ones do no harm. Run it as often as you
-- like, and again if it was killed.

BEGIN TRANSACTION;

AUTO CDC INTO flights_now FROM (SELECT flight.*, op, lsn FROM flight_changes)
KEYS (id) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY lsn COLUMNS * EXCEPT (op, lsn);

AUTO CDC INTO flight_history FROM (SELECT flight.*, op, lsn FROM flight_changes)
KEYS (id) APPLY AS DELETE WHEN op = 'd' SEQUENCE BY lsn COLUMNS * EXCEPT (op, lsn)
STORED AS SCD TYPE 2;

COMMIT;
