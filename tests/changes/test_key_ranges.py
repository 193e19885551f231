"""The ranges of keys that a large commit is divided into."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamql.changes.key_ranges import quantiles, range_sql, values_between


def test_values_divide_points_into_parts_of_about_one_weight() -> None:
    assert quantiles([(i, 1.0) for i in range(100)], 4) == [25, 50, 75]
    assert quantiles([(0, 90.0), (10, 5.0), (20, 5.0)], 2) == [10]


def test_there_is_no_value_between_equal_points() -> None:
    assert quantiles([], 4) == []
    assert quantiles([("a", 5.0)], 4) == []
    assert quantiles([("a", 5.0), ("a", 5.0)], 2) == []


@given(st.lists(st.tuples(st.integers(-50, 50), st.floats(0, 100)), max_size=40), st.integers(1, 12))
def test_values_grow_and_lie_behind_the_first_point(points: list[tuple[Any, float]], count: int) -> None:
    found = quantiles(points, count)
    assert len(found) < count
    assert found == sorted(set(found))
    assert all(value > min(p[0] for p in points) for value in found)


def test_integers_and_days_of_a_file_are_taken_to_be_spread_evenly() -> None:
    assert values_between([(1000, 0, 999)], "long", 4) == ["249L", "499L", "749L"]
    assert values_between([(10, "2024-01-01", "2024-01-11")], "date", 2) == ["DATE '2024-01-06'"]


def test_times_are_instants() -> None:
    of_file = (10, "1970-01-01T00:00:00.000Z", "1970-01-01T02:00:10.000+02:00")
    assert values_between([of_file], "timestamp", 2) == ["timestamp_micros(5000000)"]


def test_other_types_are_divided_where_files_begin() -> None:
    assert values_between([(10, "it's", "z"), (10, "a", "b")], "string", 2) == ["'it\\'s'"]
    assert values_between([(10, "a", "z")], "string", 2) == []
    assert values_between([(10, 1.5, 2.5), (10, 3.5, 4.5)], "decimal(10,2)", 2) == []


def test_a_row_has_the_range_of_its_commit() -> None:
    assert range_sql("k", "v", {}) == "0"
    assert range_sql("k", "v", {7: ["1L", "9L"], 8: ["3L"]}) == (
        "CASE WHEN v = 7 AND k >= 9L THEN 2 WHEN v = 7 AND k >= 1L THEN 1 WHEN v = 8 AND k >= 3L THEN 1 ELSE 0 END"
    )
