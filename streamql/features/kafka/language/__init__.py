"""Statements about storage connections and external tables, and the secrets that their options refer to. No pyspark."""
