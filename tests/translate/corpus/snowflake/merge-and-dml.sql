-- MERGE, and DML around it.
CREATE TABLE target (id INTEGER, v VARCHAR, qty NUMBER);
CREATE TABLE source (id INTEGER, v VARCHAR, qty NUMBER);
INSERT INTO target (id, v, qty) VALUES (10, 'old', 1), (11, 'keep', 2);
INSERT INTO source (id, v, qty) VALUES (10, 'new', 5), (12, 'added', 7);
MERGE INTO target USING source ON target.id = source.id
  WHEN MATCHED THEN UPDATE SET target.v = source.v
  WHEN NOT MATCHED THEN INSERT (id, v, qty) VALUES (source.id, source.v, source.qty);
MERGE INTO target t USING (SELECT id, SUM(qty) AS qty FROM source GROUP BY id) s ON t.id = s.id
  WHEN MATCHED AND s.qty = 7 THEN DELETE
  WHEN MATCHED AND s.qty <> 7 THEN UPDATE SET qty = s.qty
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, NULL, s.qty);
-- @rows 2
SELECT * FROM target;
UPDATE target SET qty = s.qty FROM source s WHERE s.id = target.id;
DELETE FROM target USING source WHERE source.id = target.id;
UPDATE target SET v = 'x' WHERE id = 11;
INSERT OVERWRITE INTO target SELECT id, v, qty FROM source;
CREATE TABLE numbered (id INTEGER AUTOINCREMENT START 1 INCREMENT 1, v VARCHAR(20) DEFAULT 'none' COMMENT 'a value', PRIMARY KEY (id));
INSERT INTO numbered (v) SELECT v FROM source;
CREATE TABLE copy LIKE target;
ALTER TABLE target ADD COLUMN note VARCHAR;
ALTER TABLE target SET DATA_RETENTION_TIME_IN_DAYS = 30;
COMMENT ON TABLE target IS 'the target';
CREATE OR REPLACE TEMPORARY TABLE scratch AS SELECT id FROM source;
SELECT TOP 1 id, NVL(v, '-') AS v, ZEROIFNULL(qty) AS qty, DATEADD(day, -1, CURRENT_TIMESTAMP()) FROM source;
-- @refused $1
SELECT $1, $2 FROM source;
TRUNCATE TABLE copy;
DESC TABLE target;
SHOW TABLES LIKE 'targ%';
DROP TABLE IF EXISTS copy CASCADE;
-- @refused sequences
CREATE SEQUENCE seq;
