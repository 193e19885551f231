"""Scripts of other systems as Spark SQL with streamql's statements. Pure functions: text in, text out. No Spark.

sqlglot translates ordinary SQL; streamql's own dialect recognizes streams, change queries and dynamic tables, which stay as written.
"""
