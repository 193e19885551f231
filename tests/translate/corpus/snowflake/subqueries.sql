-- UPDATE and DELETE that select their rows by another table.
CREATE TABLE parcels (id INTEGER, state VARCHAR, depot VARCHAR);
CREATE TABLE returned (id INTEGER, depot VARCHAR);
CREATE TABLE events (id INTEGER, what VARCHAR);
CREATE STREAM events_st ON TABLE events;
INSERT INTO parcels VALUES (1, 'sent', 'north'), (2, 'sent', 'south'), (3, 'sent', 'south'), (4, 'sent', NULL);
INSERT INTO returned VALUES (2, 'south'), (2, 'south'), (4, NULL);
UPDATE parcels SET state = 'back' WHERE EXISTS (SELECT 1 FROM returned r WHERE r.id = parcels.id AND r.depot = parcels.depot);
-- @rows 1
SELECT id FROM parcels WHERE state = 'back';
INSERT INTO events VALUES (3, 'lost'), (3, 'lost'), (9, 'lost');
DELETE FROM parcels WHERE id IN (SELECT id FROM events_st WHERE METADATA$ACTION = 'INSERT');
-- @rows 3
SELECT id FROM parcels;
-- @rows 0
SELECT * FROM events_st;
-- @refused subquery
DELETE FROM parcels WHERE id NOT IN (SELECT id FROM returned);
-- @refused subquery
UPDATE parcels SET state = (SELECT MAX(depot) FROM returned);
