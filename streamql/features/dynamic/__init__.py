"""Dynamic tables and materialized views: their statements, refreshes, streams on them, and the proof that a table equals its query."""
