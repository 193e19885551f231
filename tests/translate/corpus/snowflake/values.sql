-- Conversions, dates, objects and elements of a VARIANT: the pages of these functions.
CREATE TABLE parcels (id INT, doc VARIANT, sent TIMESTAMP_NTZ, got DATE, code STRING, sizes ARRAY);
INSERT INTO parcels SELECT
    1,
    PARSE_JSON('{"to": {"city": "Oslo"}, "tags": ["a", "b"]}'),
    '2024-01-31 23:00:00'::TIMESTAMP_NTZ,
    '2024-02-01'::DATE,
    '17',
    PARSE_JSON('[1, 2]');
-- @rows 1
SELECT id FROM parcels WHERE doc['to']['city']::STRING = 'Oslo' AND doc['tags'][1]::STRING = 'b' AND sizes[0]::INT = 1;
-- @rows 1
SELECT id FROM parcels WHERE GET(doc['to'], 'city')::STRING = 'Oslo' AND doc['to'].city::STRING = 'Oslo';
-- @rows 1
SELECT id FROM parcels WHERE TRY_TO_NUMBER(code) = 17 AND TRY_TO_NUMBER('x' || code) IS NULL;
-- @rows 1
SELECT id FROM parcels WHERE TRY_TO_DATE('x' || code) IS NULL AND TRY_PARSE_JSON('{' || code) IS NULL;
-- @rows 1
SELECT id FROM parcels WHERE DATEDIFF(day, sent, got) = 1 AND DATEDIFF(month, sent, got) = 1 AND DATEDIFF('hour', sent, got) = 1;
-- @rows 1
SELECT id FROM parcels WHERE DAYOFWEEK(got) = 4 AND DAYOFWEEKISO(got) = 4;
-- @rows 1
SELECT id FROM parcels WHERE TO_VARIANT(17)::INT = 17 AND IS_INTEGER(TO_VARIANT(id)) AND NOT IS_VARCHAR(TO_VARIANT(id))
    AND IS_OBJECT(doc) AND IS_ARRAY(doc:tags) AND IS_NULL_VALUE(PARSE_JSON('null')) AND STRIP_NULL_VALUE(PARSE_JSON('null')) IS NULL
    AND TO_OBJECT(doc):to.city::STRING = 'Oslo' AND AS_ARRAY(doc) IS NULL AND AS_OBJECT(doc) IS NOT NULL;
-- @rows 1
SELECT id FROM parcels WHERE AS_VARCHAR(doc:to.city) = 'Oslo' AND AS_INTEGER(doc:to.city) IS NULL AND AS_DECIMAL(TO_VARIANT(1.5), 3, 1) = 1.5
    AND AS_DOUBLE(TO_VARIANT(id)) = 1.0 AND AS_DATE(TO_VARIANT(got)) = got AND AS_TIMESTAMP_NTZ(TO_VARIANT(sent)) = sent
    AND AS_BOOLEAN(TO_VARIANT(TRUE)) AND AS_INTEGER(NULL::VARIANT) IS NULL;
-- @rows 1
SELECT OBJECT_CONSTRUCT(*) AS o FROM parcels;
-- @rows 1
SELECT o:code::STRING AS code FROM (SELECT OBJECT_CONSTRUCT('id', id, 'code', code) AS o FROM parcels) WHERE o:id::INT = 1;
-- @rows 2
SELECT f.value::STRING AS part FROM parcels, LATERAL FLATTEN(INPUT => SPLIT(code || ',18', ',')) f;
-- @rows 1
SELECT id FROM parcels WHERE ARRAY_SIZE(sizes) = 2 AND ARRAY_CONTAINS(2::VARIANT, sizes) AND ARRAY_SIZE(doc:to) IS NULL;
-- @rows 1
SELECT id FROM parcels WHERE ARRAY_TO_STRING(doc:tags, '-') = 'a-b';
-- @rows 1
SELECT id FROM parcels WHERE REGEXP_SUBSTR(code || '-Oslo', '[a-z]+', 1, 1, 'i') = 'Oslo' AND REGEXP_SUBSTR('b1a22', '([a-z])([0-9]+)', 1, 1, 'e', 2) = '1';
-- @rows 1
SELECT id FROM parcels WHERE INSERT('abcdef', 3, 2, 'zzz') = 'abzzzef';
-- @rows 1
SELECT CURRENT_TIME() AS now, HOUR(CURRENT_TIME()) AS hour FROM parcels WHERE CURRENT_TIME() IS NOT NULL;
-- @rows 1
SELECT doc:to.city::STRING AS city, COUNT(*) AS n FROM parcels GROUP BY 1 ORDER BY 1;
SET parcel_id = 2;
-- @rows 0
SELECT id FROM parcels WHERE id = $parcel_id;

-- Statements that keep rows, or replace them.
CREATE OR ALTER TABLE parcels (id INT, doc VARIANT, sent TIMESTAMP_NTZ, got DATE, code STRING, sizes ARRAY);
-- @rows 1
SELECT id FROM parcels;
CREATE TABLE parcels_near (id INT, code STRING);
CREATE TABLE parcels_far (id INT, code STRING);
INSERT INTO parcels_near VALUES (9, 'old');
INSERT OVERWRITE ALL
    WHEN id < 5 THEN INTO parcels_near
    ELSE INTO parcels_far
SELECT id, code FROM parcels;
-- @rows 1
SELECT id FROM parcels_near;
CREATE STREAM parcels_st ON TABLE parcels;
INSERT INTO parcels SELECT 2, doc, sent, got, code, sizes FROM parcels;
BEGIN NAME moving;
INSERT INTO parcels_far SELECT id, code FROM parcels_st;
COMMIT;
-- @rows 1
SELECT id FROM parcels_far;

-- Statements inside others.
-- @refused notifications
CREATE ALERT many_parcels WAREHOUSE = wh SCHEDULE = '1 MINUTE'
  IF (EXISTS (SELECT id FROM parcels WHERE id > 100))
  THEN BEGIN
    DELETE FROM parcels;
    INSERT INTO parcels_far VALUES (0, 'alert');
  END;
-- @refused procedures
CREATE OR REPLACE SECURE PROCEDURE tidy() RETURNS INT LANGUAGE SQL EXECUTE AS CALLER AS
DECLARE n INT;
BEGIN
  DELETE FROM parcels;
  RETURN 1;
END;
-- @refused scripting
CREATE TASK tidying SCHEDULE = '5 MINUTES' AS IF (1 = 1) THEN DELETE FROM parcels; ELSE DELETE FROM parcels_far; END IF;
-- @rows 2
SELECT id FROM parcels;
