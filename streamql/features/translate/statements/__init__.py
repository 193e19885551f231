"""Statements that Spark has in another form, read by tokens: ALTER, COMMENT ON, SHOW, USE, SET, upkeep of tables."""
