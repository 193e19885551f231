"""Statements about tasks, in Snowflake's and Databend's spellings."""
