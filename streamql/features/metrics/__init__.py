"""Metrics of streams, dynamic tables and tasks in the formats of Prometheus: printed, served, or written into a file."""
