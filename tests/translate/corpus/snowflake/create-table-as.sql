-- CREATE TABLE AS with a list of columns, and CLUSTER BY with expressions.
CREATE TABLE readings (sensor VARCHAR, at TIMESTAMP_NTZ, degrees NUMBER(5, 1));
ALTER TABLE readings SET CHANGE_TRACKING = TRUE;
INSERT INTO readings VALUES ('roof', '2026-01-05 06:00:00'::TIMESTAMP_NTZ, -3.5);
-- @wait
SET since = (SELECT CURRENT_TIMESTAMP());
INSERT INTO readings VALUES ('cellar', '2026-01-05 07:00:00'::TIMESTAMP_NTZ, 11.0);
CREATE OR REPLACE TABLE added (place VARCHAR(40) DEFAULT NULL) AS
  SELECT sensor FROM readings CHANGES (INFORMATION => APPEND_ONLY) AT (TIMESTAMP => $since);
-- @rows 1
SELECT place FROM added WHERE place = 'cellar';
CREATE TABLE warmest (degrees NUMBER(5, 1) COMMENT 'in the shade', sensor VARCHAR DEFAULT 'unknown') AS
  SELECT MAX(degrees), sensor FROM readings GROUP BY sensor;
INSERT INTO warmest (degrees) VALUES (30);
-- @rows 1
SELECT degrees FROM warmest WHERE sensor = 'unknown';
CREATE TABLE names (name) AS SELECT DISTINCT sensor FROM readings;
CREATE TABLE by_hour (sensor VARCHAR, at TIMESTAMP_NTZ) CLUSTER BY (sensor, DATE_TRUNC('hour', at));
-- @refused clone
CREATE SCHEMA yesterday CLONE corpus AT (OFFSET => -86400);
