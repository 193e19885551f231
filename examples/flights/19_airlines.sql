-- The names of the carriers, from a CSV file. `airlines` tracks its changes too: a dynamic table
-- reads it below.

CREATE TABLE airline_names (carrier STRING, name STRING)
USING csv OPTIONS (header 'true', mode 'FAILFAST');

CREATE TABLE airlines (carrier STRING, name STRING) USING delta;

ALTER TABLE airlines SET PROPERTIES ('change_tracking' = 'true');
