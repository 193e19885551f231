-- Pipelines of streams and tasks over semi-structured data.
CREATE OR REPLACE TABLE landing (doc VARIANT);
CREATE OR REPLACE STREAM landing_people ON TABLE landing;
CREATE OR REPLACE STREAM landing_visits ON TABLE landing;
CREATE OR REPLACE TABLE people (id INT, first_name STRING, last_name STRING);
CREATE OR REPLACE TABLE visits (id INT, at TIMESTAMP_NTZ, city STRING);
INSERT INTO landing SELECT PARSE_JSON(column1) FROM VALUES
  ('{"id": 1, "name": {"first": "Ines", "last": "Moser"}, "visits": [{"city": "Bern"}, {"city": "Rome"}]}'),
  ('{"id": 2, "name": {"first": "Omar", "last": "Said"}, "visits": []}');
MERGE INTO people p
  USING (SELECT doc:id AS id, doc:name.first AS first_name, doc:name.last AS last_name FROM landing_people) s
  ON p.id = TO_NUMBER(s.id)
  WHEN MATCHED THEN UPDATE SET p.first_name = s.first_name, p.last_name = s.last_name
  WHEN NOT MATCHED THEN INSERT (id, first_name, last_name) VALUES (s.id, s.first_name, s.last_name);
INSERT INTO people SELECT doc:id::INT, doc:name.first::STRING, doc:name.last::STRING
  FROM landing_people WHERE METADATA$ACTION = 'INSERT';
-- @rows 2
SELECT * FROM people;
INSERT INTO visits (id, city)
  SELECT l.doc:id::INT, f.value:city::STRING
  FROM landing_visits l, LATERAL FLATTEN(INPUT => l.doc:visits) f
  WHERE METADATA$ACTION = 'INSERT';
-- @rows 2
SELECT * FROM visits;

CREATE OR REPLACE TASK landing_to_people
  WAREHOUSE = etl_wh
  SCHEDULE = '5 minute'
WHEN
  SYSTEM$STREAM_HAS_DATA('landing_people')
AS
INSERT INTO people SELECT doc:id::INT, doc:name.first::STRING, doc:name.last::STRING
FROM landing_people WHERE METADATA$ACTION = 'INSERT';
CREATE TASK nightly SCHEDULE = 'USING CRON 0 9-17 * * SUN America/Los_Angeles' AS
BEGIN
  DELETE FROM visits WHERE city IS NULL;
  INSERT INTO visits (id) SELECT id FROM people;
END;
CREATE TASK child AFTER nightly AS SELECT 1;
ALTER TASK landing_to_people RESUME;
EXECUTE TASK landing_to_people;
SHOW TASKS;
DESCRIBE TASK nightly;
DROP TASK nightly;
-- @refused tasks
SELECT SYSTEM$TASK_DEPENDENTS_ENABLE('nightly');
-- @refused tasks
SELECT * FROM TABLE(INFORMATION_SCHEMA.TASK_HISTORY());

-- One stream into several tables.
CREATE TABLE readings (id INT, celsius FLOAT);
CREATE STREAM readings_st ON TABLE readings;
CREATE TABLE hot (id INT, celsius FLOAT);
CREATE TABLE cold (id INT, celsius FLOAT);
INSERT INTO readings VALUES (1, 31.5), (2, 4.0), (3, 18.2);
INSERT ALL
  WHEN celsius > 30 THEN INTO hot
  WHEN celsius < 10 THEN INTO cold (id, celsius) VALUES (id, celsius)
SELECT id, celsius FROM readings_st;
-- @rows 1
SELECT * FROM hot;
-- @rows 1
SELECT * FROM cold;
INSERT INTO readings VALUES (4, 33), (5, 12);
INSERT FIRST WHEN celsius > 30 THEN INTO hot ELSE INTO cold SELECT id, celsius FROM readings_st;
-- @rows 2
SELECT * FROM cold;
INSERT ALL INTO hot INTO cold (id) VALUES (id) SELECT id, celsius FROM readings;

-- What surrounds such scripts.
-- @refused ROLE
USE ROLE SYSADMIN;
-- @refused WAREHOUSE
USE WAREHOUSE etl_wh;
-- @refused WAREHOUSE
CREATE WAREHOUSE IF NOT EXISTS etl_wh WITH WAREHOUSE_SIZE = 'XSMALL';
-- @refused permissions
GRANT SELECT ON TABLE people TO ROLE analyst;
-- @refused STAGE
CREATE OR REPLACE STAGE landing_stage;
-- @refused stages
COPY INTO landing FROM @landing_stage FILE_FORMAT = (TYPE = JSON);
-- @refused stages
CREATE PIPE landing_pipe AS COPY INTO landing FROM @landing_stage;
-- @refused PROCEDURE
CREATE OR REPLACE PROCEDURE tidy() RETURNS STRING LANGUAGE SQL AS
$$
BEGIN
  DELETE FROM people;
  RETURN 'done';
END;
$$;
-- @refused procedures
CALL tidy();
-- @refused session
ALTER SESSION SET TIMEZONE = 'UTC';
