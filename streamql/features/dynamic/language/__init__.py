"""Dynamic tables and materialized views: their statements, in ClickZetta's and Snowflake's spellings."""
