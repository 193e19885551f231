-- The changes as rows: the new image, or the old one of a delete. A tombstone (a message without a
-- value) follows each delete, and says nothing more.

CREATE VIEW flight_changes AS
SELECT coalesce(e.after, e.before) AS flight, e.op, e.source.lsn AS lsn
FROM (
  SELECT from_json(
    CAST(value AS STRING),
    'before STRUCT<id: STRING, carrier: STRING, route: STRING, state: STRING, delay: INT>,
     after STRUCT<id: STRING, carrier: STRING, route: STRING, state: STRING, delay: INT>,
     source STRUCT<lsn: BIGINT>, op STRING'
  ) AS e
  FROM debezium_stream
)
WHERE e IS NOT NULL;

CREATE TABLE flights_now (id STRING, carrier STRING, route STRING, state STRING, delay INT) USING delta;

CREATE TABLE flight_history (
  id STRING, carrier STRING, route STRING, state STRING, delay INT, __START_AT BIGINT, __END_AT BIGINT
) USING delta;

-- What the producer has sent, from its own journal: the proofs compare with it.
CREATE TABLE sent_messages (
  number BIGINT, op STRING, lsn BIGINT, id STRING, carrier STRING, route STRING, state STRING, delay INT
) USING json;
