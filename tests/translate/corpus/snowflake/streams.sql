-- Streams on tables: the examples of the guide to streams.
CREATE OR REPLACE TABLE visitors (
  visitor_id NUMBER(8) NOT NULL,
  full_name VARCHAR(255) DEFAULT NULL,
  paid NUMBER(3) NULL
);
CREATE OR REPLACE STREAM visitor_check ON TABLE visitors;
CREATE OR REPLACE TABLE arrivals (
  visitor_id NUMBER(8),
  arrived DATE
);
INSERT INTO visitors (visitor_id, full_name, paid)
VALUES
  (1, 'Ines', 0),
  (2, 'Omar', 0),
  (3, 'Lena', 0);
INSERT INTO arrivals
VALUES
  (1, '2023-01-01'),
  (2, '2023-02-15'),
  (3, '2023-05-01');

-- The stream records the inserted rows, with three columns of its own.
-- @rows 3
SELECT * FROM visitor_check;

-- Rows that came 30 days ago and more pay.
MERGE INTO visitors v
  USING (
    SELECT visitor_id, arrived FROM arrivals a
    WHERE DATEDIFF(day, '2023-04-15'::DATE, a.arrived::DATE) < -30) a
  ON v.visitor_id = a.visitor_id
  WHEN MATCHED THEN UPDATE SET v.paid = 90;
-- @rows 3
SELECT * FROM visitor_check;
CREATE OR REPLACE TABLE visitors_now (
  visitor_id NUMBER(8),
  full_name VARCHAR(255),
  paid NUMBER(3)
);
INSERT INTO visitors_now (visitor_id, full_name, paid)
  SELECT visitor_id, full_name, paid FROM visitor_check WHERE METADATA$ACTION = 'INSERT';
-- @rows 0
SELECT * FROM visitor_check;
UPDATE visitors SET paid = paid + 15 WHERE paid > 0;
-- @rows 4
SELECT visitor_id, paid, METADATA$ACTION, METADATA$ISUPDATE FROM visitor_check ORDER BY METADATA$ROW_ID;
DELETE FROM visitors WHERE visitor_id = 3;
-- Net changes into a copy.
MERGE INTO visitors_now n
USING (SELECT * FROM visitor_check WHERE NOT (METADATA$ACTION = 'DELETE' AND METADATA$ISUPDATE = TRUE)) s
ON n.visitor_id = s.visitor_id
WHEN MATCHED AND s.METADATA$ACTION = 'DELETE' THEN DELETE
WHEN MATCHED AND s.METADATA$ACTION = 'INSERT' AND s.METADATA$ISUPDATE = TRUE
  THEN UPDATE SET n.full_name = s.full_name, n.paid = s.paid
WHEN NOT MATCHED AND s.METADATA$ACTION = 'INSERT'
  THEN INSERT (visitor_id, full_name, paid) VALUES (s.visitor_id, s.full_name, s.paid);
-- @rows 2
SELECT * FROM visitors_now;

-- A standard and an append-only stream on one table.
CREATE OR REPLACE TABLE parcels (id INT, label STRING);
CREATE OR REPLACE STREAM parcels_delta ON TABLE parcels;
CREATE OR REPLACE STREAM parcels_new ON TABLE parcels APPEND_ONLY = TRUE;
INSERT INTO parcels VALUES (0, 'crate'), (1, 'bag'), (2, 'tube');
DELETE FROM parcels WHERE id = 0;
-- @rows 2
SELECT * FROM parcels_delta ORDER BY id;
-- @rows 3
SELECT * FROM parcels_new ORDER BY id;
CREATE OR REPLACE TABLE parcels_seen (id INT, label STRING);
INSERT INTO parcels_seen SELECT id, label FROM parcels_new;
UPDATE parcels SET label = 'sack' WHERE id = 1;
-- @rows 0
SELECT * FROM parcels_new;

-- A transaction: both statements see one interval.
BEGIN;
INSERT INTO parcels_seen SELECT id, label FROM parcels_delta WHERE METADATA$ACTION = 'INSERT';
INSERT INTO parcels_seen (id) SELECT id FROM parcels_delta;
COMMIT;
-- @rows 0
SELECT id FROM parcels_delta;

CREATE OR REPLACE TABLE ledger AS SELECT id, METADATA$ACTION AS what FROM parcels_delta;
CREATE STREAM parcels_joined ON TABLE parcels;
INSERT INTO parcels VALUES (9, 'drum');
SELECT p.*, a.arrived FROM parcels_joined p JOIN arrivals a ON p.id = a.visitor_id;
SELECT s.id, s.label, n.full_name
FROM parcels_joined s LEFT JOIN visitors_now n ON s.id = n.visitor_id
WHERE s.METADATA$ACTION = 'INSERT' AND s.METADATA$ISUPDATE = FALSE;

-- A history of a table, from its stream.
CREATE OR REPLACE TABLE nations (nation_id INT, name VARCHAR, region VARCHAR, update_time TIMESTAMP_NTZ);
CREATE OR REPLACE TABLE nations_history (
  nation_id INT, name VARCHAR, region VARCHAR, start_time TIMESTAMP_NTZ, end_time TIMESTAMP_NTZ, is_current INT
);
CREATE OR REPLACE STREAM nations_st ON TABLE nations;
INSERT INTO nations VALUES (0, 'Chile', 'SA', '2023-01-01 00:00:00'), (1, 'Kenya', 'AF', '2023-01-01 00:00:00');
CREATE OR REPLACE VIEW nations_changes AS
SELECT nation_id, name, region, update_time AS start_time,
  NVL(LAG(update_time) OVER (PARTITION BY nation_id ORDER BY update_time DESC), '2099-12-31'::TIMESTAMP_NTZ) AS end_time,
  'I' AS dml_type
FROM nations_st
WHERE METADATA$ACTION = 'INSERT' AND METADATA$ISUPDATE = 'FALSE';
SELECT * FROM nations_changes;
MERGE INTO nations_history h
USING nations_changes c
ON h.nation_id = c.nation_id AND h.start_time = c.start_time
WHEN MATCHED AND c.dml_type = 'U' THEN UPDATE SET h.end_time = c.end_time, h.is_current = 0
WHEN NOT MATCHED AND c.dml_type = 'I' THEN
  INSERT (nation_id, name, region, start_time, end_time, is_current)
  VALUES (c.nation_id, c.name, c.region, c.start_time, c.end_time, IFF(c.end_time > '2099-01-01'::TIMESTAMP_NTZ, 1, 0));
-- @rows 2
SELECT * FROM nations_history;
-- @rows 0
SELECT * FROM nations_st;
UPDATE nations SET region = 'EA', update_time = '2023-02-01 00:00:00' WHERE nation_id = 1;
-- @rows 1
SELECT * FROM nations_st WHERE METADATA$ACTION = 'INSERT' AND METADATA$ISUPDATE;
SELECT METADATA$ACTION, count(*) AS n FROM nations_st GROUP BY METADATA$ACTION;
BEGIN TRANSACTION;
INSERT INTO nations_history (nation_id, region) SELECT nation_id, region FROM nations_st WHERE METADATA$ACTION = 'DELETE';
INSERT INTO nations_history (nation_id, region) SELECT nation_id, region FROM nations_st WHERE METADATA$ACTION = 'INSERT';
COMMIT;
-- @rows 4
SELECT * FROM nations_history;
DROP STREAM nations_st;
CREATE OR REPLACE STREAM pay_st ON TABLE visitors SHOW_INITIAL_ROWS = TRUE;
INSERT OVERWRITE INTO visitors_now SELECT visitor_id, full_name, paid FROM pay_st;
DELETE FROM visitors WHERE visitor_id = 2;
-- @rows 1
SELECT p.visitor_id, p.METADATA$ACTION FROM pay_st p WHERE p.METADATA$ACTION = 'DELETE';
INSERT INTO visitors_now SELECT p.visitor_id, p.full_name, p.paid FROM pay_st AS p INNER JOIN arrivals a ON a.visitor_id = p.visitor_id;
INSERT INTO parcels VALUES (20, 'box');
SELECT * EXCLUDE (METADATA$ROW_ID) FROM parcels_joined;
SELECT *, METADATA$ACTION AS what FROM parcels_joined ORDER BY id;
CREATE OR REPLACE VIEW parcels_deleted AS
WITH d AS (SELECT * FROM parcels_joined WHERE METADATA$ACTION = 'DELETE') SELECT d.* FROM d;
SELECT * FROM parcels_deleted;
SELECT * FROM parcels_joined a, arrivals b WHERE a.id = b.visitor_id;
CREATE OR REPLACE TABLE parcels_taken AS (SELECT * FROM parcels_joined);
-- @rows 0
SELECT * FROM parcels_joined;
