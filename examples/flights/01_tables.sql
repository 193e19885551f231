-- The tables. `landing` is where the airport's monthly CSV files arrive
-- (landing/arrived=1/flights.csv, …); `flights` is the source that streams will watch; the other
-- three are what the streams will feed.

CREATE TABLE landing (
  year INT, month INT, day INT,
  dep_time INT, sched_dep_time INT, dep_delay INT,
  arr_time INT, sched_arr_time INT, arr_delay INT,
  carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
  air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP,
  arrived INT
) USING csv OPTIONS (header 'true', nullValue 'NA', mode 'FAILFAST') PARTITIONED BY (arrived);

-- One row a flight. Its key is flight_id, made of the date, carrier, flight number and origin:
-- unique in the data.
CREATE TABLE flights (
  flight_id STRING, flight_date DATE,
  year INT, month INT, day INT,
  dep_time INT, sched_dep_time INT, dep_delay INT,
  arr_time INT, sched_arr_time INT, arr_delay INT,
  carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
  air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP
) USING delta;

-- A table must track its changes before a stream can watch it.
ALTER TABLE flights SET PROPERTIES ('change_tracking' = 'true');

-- A copy of flights, row for row.
CREATE TABLE flights_replica USING delta AS SELECT * FROM flights;

-- One row a carrier and day.
CREATE TABLE daily_delays (
  carrier STRING, flight_date DATE,
  flights BIGINT, cancelled BIGINT, arrived BIGINT, late BIGINT, delay_minutes BIGINT
) USING delta;

-- Every flight as it was first reported.
CREATE TABLE flight_audit (
  flight_id STRING, carrier STRING, flight_date DATE, first_arr_delay INT,
  source_version BIGINT, reported_at TIMESTAMP
) USING delta;
