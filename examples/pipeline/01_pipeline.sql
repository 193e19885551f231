-- A pipeline that runs by itself. What the airports report goes through a checked stream into a
-- history of the planes, and a dynamic table counts the planes at each airport.

-- Reports, with the delay as text: minutes, or 'NA' for a cancelled flight.
CREATE TABLE reports (tailnum STRING, dest STRING, scheduled TIMESTAMP, delay STRING)
USING delta TBLPROPERTIES ('change_tracking' = 'true');

-- A delay that is not a number does not stop the stream. Its row goes into a quarantine table.
CREATE STREAM checked_reports ON TABLE reports
  EXPECTATION is_minutes CHECK (delay = 'NA' OR CAST(delay AS INT) IS NOT NULL) ON VIOLATION QUARANTINE
  WITH (TABLE_STREAM_MODE = APPEND_ONLY);

-- Where each plane has flown to, and when it has left for another place.
CREATE TABLE planes (tailnum STRING, airport STRING, __START_AT TIMESTAMP, __END_AT TIMESTAMP)
USING delta TBLPROPERTIES ('change_tracking' = 'true');

CREATE TASK keep_planes WHEN stream_has_data('checked_reports') AS
AUTO CDC INTO planes
FROM (
  SELECT tailnum, dest AS airport, scheduled + CAST(delay AS INT) * INTERVAL '1' MINUTE AS left_at
  FROM checked_reports
  WHERE delay <> 'NA'
)
KEYS (tailnum) SEQUENCE BY left_at COLUMNS * EXCEPT (left_at) STORED AS SCD TYPE 2;

CREATE DYNAMIC TABLE planes_at TARGET_LAG = DOWNSTREAM AS
SELECT airport, count(*) AS planes FROM planes WHERE __END_AT IS NULL GROUP BY airport;

-- It runs when the first task has succeeded.
CREATE TASK count_planes AFTER keep_planes AS REFRESH DYNAMIC TABLE planes_at;

ALTER TASK count_planes RESUME;
ALTER TASK keep_planes RESUME;
