-- Three streams on one table, each with an offset of its own: each consumer moves at its own pace.

CREATE STREAM flights_to_replica ON TABLE flights
COMMENT = 'keeps flights_replica equal to flights';

CREATE STREAM flights_to_delays ON TABLE flights
COMMENT = 'keeps the summary daily_delays current';

CREATE STREAM flights_to_audit ON TABLE flights
WITH PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY')
COMMENT = 'every flight as first reported';
