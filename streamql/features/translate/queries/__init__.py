"""Queries as Spark has them, in sqlglot's tree: columns of streams, VARIANT, values and clauses."""
