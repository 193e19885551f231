"""Texts that Spark runs, rewritten by splices: changes of tables, points in time, WITH CONSUME, MERGE, parameters."""
