"""Queries as sources of streams: of views, of dynamic tables and materialized views, and of the refreshes of the latter two."""
