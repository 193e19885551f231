-- Transactions with and without streams, and sources that another script creates.
CREATE TABLE stock (item VARCHAR, n INTEGER);
CREATE TABLE log (item VARCHAR, n INTEGER);
CREATE STREAM stock_st ON TABLE stock;
BEGIN;
INSERT INTO stock VALUES ('tea', 3), ('rice', 8);
DELETE FROM stock WHERE n > 5;
COMMIT;
BEGIN TRANSACTION;
INSERT INTO log SELECT item, n FROM stock_st WHERE METADATA$ACTION = 'INSERT';
COMMIT;
-- @rows 1
SELECT * FROM log;
CREATE TABLE wanted (item VARCHAR);
INSERT INTO wanted VALUES ('salt'), ('oil');
INSERT INTO stock VALUES ('salt', 1);
BEGIN;
INSERT INTO log SELECT item, n FROM stock_st;
DELETE FROM wanted USING stock_st WHERE wanted.item = stock_st.item;
COMMIT;
-- @rows 1
SELECT * FROM wanted;
-- @translated The view is not created here.
CREATE STREAM shelf_st ON VIEW shelf;
-- @refused stream
CREATE DYNAMIC TABLE totals TARGET_LAG = '1 hour' WAREHOUSE = w AS SELECT item, SUM(n) AS n FROM stock_st GROUP BY item;
