"""Dynamic tables and materialized views: DDL, refreshes, their history, and the proof that a table equals its query."""
