"""Queries as sources of streams: views, dynamic tables and materialized views, and the refreshes of these."""
