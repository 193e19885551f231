"""Statements about streams, dynamic tables, tasks and transactions."""
