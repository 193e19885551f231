-- Is every inserted row in the audit table, once? The history of flights says how many each INSERT
-- and MERGE inserted: their sum is what flight_audit must hold.

SELECT count(*) AS rows, count(DISTINCT flight_id) AS flights FROM flight_audit;

DESCRIBE HISTORY flights;
