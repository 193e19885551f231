"""A pipeline in SQL: a checked stream, a history and a dynamic table, run by `streamql scheduler`."""
