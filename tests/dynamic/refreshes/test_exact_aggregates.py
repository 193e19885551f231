"""Averages, variances and standard deviations from stored counts and sums, against exact fractions."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.dynamic.support import DynamicPlace
from tests.histories.recording import conf
from tests.sample import SEED
from tests.small import COMPILED

COLUMNS = "g INT, l BIGINT, i INT, d DECIMAL(18, 4), b SMALLINT"
LONG_MAX = (1 << 63) - 1
WIDE = (LONG_MAX, -LONG_MAX - 1, LONG_MAX - 1, 1 << 32, -(1 << 32), 3_037_000_500, 0, 1, -1, 10**15 + 1)
QUERY = """SELECT g, count(*) AS n, variance(l) AS l1, var_pop(l) AS l2, stddev(l) AS l3, stddev_pop(l) FILTER (WHERE i > 0) AS l4,
var_pop(i) AS i1, stddev_samp(i) AS i2, var_samp(d) AS d1, stddev_pop(d) AS d2, stddev(b + 1S) AS b1, avg(l) AS a FROM m GROUP BY g"""
Row = tuple[int | None, int | None, int | None, Decimal | None, int | None]
"""g, l, i, d, b."""


def variance(values: list[Fraction], less: int) -> float | None:
    """The exact variance, rounded once. None: of too few values. `less`: 1 for a sample."""
    if len(values) <= less:
        return None
    mean = sum(values) / len(values)
    return float(sum((v - mean) ** 2 for v in values) / (len(values) - less))


def average(values: list[Fraction]) -> float | None:
    """The exact sum, rounded, by the count. None: of no value."""
    return float(sum(values)) / len(values) if values else None


def root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def wanted(rows: list[Row]) -> dict[int | None, tuple[object, ...]]:
    """What the query returns of some rows, by group."""
    groups: dict[int | None, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)

    def of(group: list[Row], place: int) -> list[Fraction]:
        return [Fraction(value) for row in group if (value := row[place]) is not None]

    return {
        g: (
            *(len(group), variance(of(group, 1), 1), variance(of(group, 1), 0), root(variance(of(group, 1), 1))),
            root(variance(of([row for row in group if (row[2] or 0) > 0], 1), 0)),
            *(variance(of(group, 2), 0), root(variance(of(group, 2), 1))),
            *(variance(of(group, 3), 1), root(variance(of(group, 3), 0)), root(variance(of(group, 4), 1))),
            average(of(group, 1)),
        )
        for g, group in groups.items()
    }


def drawn(rng: random.Random) -> Row:
    """A row; any value of it may be NULL."""
    found = (
        rng.randrange(5),
        rng.choice((rng.choice(WIDE), rng.randrange(-1000, 1000))),
        rng.choice((2**31 - 1, -(2**31), rng.randrange(-9, 9))),
        Decimal(rng.choice((10**18 - 1, 1 - 10**18, rng.randrange(-(10**6), 10**6)))).scaleb(-4),
        rng.randrange(-128, 127),
    )
    g, low, i, d, b = (None if rng.random() < 0.1 else value for value in found)
    return g, low, i, d, b  # type: ignore[return-value]  # each has the type of its place


def inserted(rows: list[Row]) -> str:
    def text(value: object, suffix: str) -> str:
        return "NULL" if value is None else f"CAST('{value}' AS {suffix})"

    types = ("INT", "BIGINT", "INT", "DECIMAL(18, 4)", "SMALLINT")
    return ", ".join(f"({', '.join(map(text, row, types))})" for row in rows)


def found(place: DynamicPlace) -> dict[int | None, tuple[object, ...]]:
    return {row[0]: tuple(row)[1:] for row in place.run("SELECT * FROM d")}


@pytest.mark.parametrize("is_compiled", [False, True])
def test_values_are_exact(place: DynamicPlace, is_compiled: bool) -> None:
    """After each refresh, full and incremental, the values are those of the exact fractions."""
    rng = random.Random(f"{SEED} moments")
    with conf(place.spark, COMPILED if is_compiled else ()):
        place.table("m", COLUMNS)
        rows = [drawn(rng) for _ in range(30)]
        place.run(f"INSERT INTO m VALUES {inserted(rows)}")
        place.create(QUERY, clauses="REFRESH_MODE = INCREMENTAL")
        assert found(place) == wanted(rows)
        for step in range(2):
            gone = rng.choice((None, *range(5)))
            rows = [row for row in rows if row[0] != gone or (row[2] or 0) > 3]
            place.run(f"DELETE FROM m WHERE g <=> {'NULL' if gone is None else gone} AND NOT coalesce(i, 0) > 3")
            more = [drawn(rng) for _ in range(3)]
            rows += more
            place.run(f"INSERT INTO m VALUES {inserted(more)}")
            assert "adds the changed rows to the stored counts and sums" in place.operators()[0]
            place.refresh()
            assert place.history()[0]["mode"] == "INCREMENTAL"
            assert found(place) == wanted(rows), step
            assert place.verify()[0] == "EQUAL", step


def test_values_of_nothing_and_of_one_value(place: DynamicPlace) -> None:
    place.table("m", COLUMNS)
    place.create(
        "SELECT var_samp(l) AS s, var_pop(l) AS p, stddev(i) AS i FROM m", clauses="REFRESH_MODE = INCREMENTAL"
    )
    assert place.run("SELECT * FROM d") == [(None, None, None)]
    place.run("INSERT INTO m (l) VALUES (7)")
    place.refresh()
    assert place.run("SELECT * FROM d") == [(None, 0.0, None)]
    with conf(place.spark, (("spark.sql.legacy.statisticalAggregate", "true"),)):
        place.create("SELECT var_samp(l) AS s, var_pop(l) AS p FROM m", name="e")
    assert math.isnan(place.run("SELECT s FROM e")[0][0])


@pytest.mark.parametrize("value", ["CAST(l AS DOUBLE) / 3", "CAST(l AS DECIMAL(20, 0))", "DISTINCT l"])
def test_other_values_are_computed_again(place: DynamicPlace, value: str) -> None:
    """The last digits of sums of DOUBLE depend on their order; squares of DECIMAL of more than 18 digits have more than two words."""
    place.table("m", COLUMNS)
    place.create(f"SELECT g, stddev({value}) AS s FROM m GROUP BY g", clauses="REFRESH_MODE = INCREMENTAL")
    place.run("INSERT INTO m (g, l) VALUES (1, 7), (1, 8)")
    assert "computes all rows of the affected groups again" in place.operators()[0]
    place.refresh()
    assert place.run("SELECT g, CAST(s AS FLOAT) FROM d") == place.run(
        f"SELECT g, CAST(stddev({value}) AS FLOAT) FROM m GROUP BY g"
    )
