"""sqlglot's dialects: the three that are read, Spark's, which is written, and the functions that Spark has."""
