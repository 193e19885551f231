"""Tests of the dialect: text in, statements and splices out; no Spark."""
