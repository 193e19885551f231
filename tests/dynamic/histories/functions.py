"""Aggregate functions that the random queries choose from."""

from __future__ import annotations

FROM_STATES = (
    *("count(q.b)", "count(q.a, q.b)", "count_if(q.b > 3)", "count(*) FILTER (WHERE q.a = 1)", "sum(q.a + q.b)"),
    *(
        "sum(CAST(q.b AS DECIMAL(10, 2)) / 3)",
        "avg(q.b)",
        "avg(CAST(q.b AS BIGINT))",
        "avg(CAST(q.b AS DECIMAL(10, 2)))",
    ),
    *("min(q.b)", "max(q.s)", "max(q.b / 2.0D)", "min(date_add(DATE '2020-02-28', q.b))", "bool_or(q.b > 7)"),
    *("sum(q.b) FILTER (WHERE q.s = 'x')", "100 * sum(q.b) / (1 + count(*))", "max(q.b) - min(q.b)"),
    *("CAST(stddev(q.b) AS FLOAT)", "CAST(var_pop(CAST(q.b AS DECIMAL(10, 2)) / 3) AS FLOAT)"),
)
"""Aggregates that follow from stored states. The last digits of a variance that Spark computes depend on the order of the rows."""

IN_ANY_ORDER = (
    "sort_array(collect_list(q.s))",
    "sort_array(collect_list(named_struct('b', q.b, 's', q.s)), false)",
    "array_sort(collect_set(q.b))",
    "array_join(sort_array(collect_set(q.s) FILTER (WHERE q.b > 3)), '+')",
    "size(collect_list(q.b)) + size(collect_set(q.s))",
    "listagg(q.s, ',') WITHIN GROUP (ORDER BY q.s DESC)",
    "mode() WITHIN GROUP (ORDER BY q.b)",
    "get(sort_array(collect_list(q.b)), 0)",
    "max_by(q.s, struct(q.b, q.s))",
    "min_by(struct(q.s, q.b), struct(q.b / 2.0D, q.s)) FILTER (WHERE q.b > 2)",
)
"""Functions of the order of rows, which another function hides or the query names."""
