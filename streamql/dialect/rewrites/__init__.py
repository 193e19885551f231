"""Texts that Spark runs, rewritten by splices: rules for what is ours in a statement of Spark, and values of parameters."""
