"""WHEN: whether a task's condition is true. Functions about streams are asked of the log, so a false condition runs no job."""

from __future__ import annotations

from itertools import pairwise

from pyspark.sql import SparkSession

from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import tokenize
from streamql.sessions import run_sql

_SPELLINGS = {"SYSTEM$STREAM_HAS_DATA": "stream_has_data", "STREAM_STATUS": "stream_has_data"}
"""The function by its names in Snowflake and Databend."""

ASKED = "WHEN: "
"""Before the error that a condition raised."""


def condition_sql(condition: str) -> str:
    """Returns a condition with the functions of other systems by our names."""
    tokens = tokenize(condition)
    calls = [
        Splice(t.start, t.end, _SPELLINGS[t.key])
        for t, following in pairwise(tokens)
        if t.key in _SPELLINGS and following.key == "("
    ]
    return apply(condition, calls)


def is_true(spark: SparkSession, condition: str) -> bool:
    """Returns whether a condition is true in a session; NULL is not. Raises what the condition raises."""
    row = run_sql(f"SELECT ({condition_sql(condition)}) AS is_true", spark).first()
    return row is not None and row[0] is True
