"""Ordinary SQL by sqlglot: DML, CREATE TABLE, VIEW and SCHEMA, and the expressions inside other statements."""
