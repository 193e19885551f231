"""Streams on tables, change tracking and transactions: what the kernel does, as a feature."""
