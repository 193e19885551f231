"""The code under test, and what must hold of every result: the only module of the histories here that calls streamql."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame, Row, SparkSession

from streamql.model import Interval, Parts, StreamMode
from streamql.model import Position as StoredPosition
from streamql.names import Name
from streamql.sources.views.positions import parts_of
from streamql.sources.views.query import OpenQuery
from streamql.sources.views.view import find_view, open_view
from tests.histories.columns import canonical
from tests.views.oracle import Changes, Position, Values

TYPES = {"INSERT": "INSERT", "UPDATE_AFTER": "INSERT", "DELETE": "DELETE", "UPDATE_BEFORE": "DELETE"}


def opened(spark: SparkSession, name: str) -> OpenQuery:
    """A view as a source of streams."""
    found = find_view(spark, Name.of(["spark_catalog", *name.split(".")]))
    assert found is not None
    return open_view(spark, found)


def parts(source: OpenQuery, at: Position) -> Parts:
    """A position by the names that the source gives its tables."""
    return Parts.of({part: at[f"{t.ref.name.schema}.{t.ref.name.object}"] for part, t in source.tables.items()})


def versions(source: OpenQuery, at: StoredPosition) -> dict[str, int]:
    """A position by the names of tables: `parts` backwards."""
    numbers = parts_of(at)
    return {f"{t.ref.name.schema}.{t.ref.name.object}": numbers[part] for part, t in source.tables.items()}


def interval(source: OpenQuery, after: Position, through: Position, *, initial: bool = False) -> Interval:
    """An interval of a view."""
    return Interval(parts(source, after), parts(source, through), initial)


def read(source: OpenQuery, window: Interval, mode: StreamMode) -> Changes:
    """A change set, once it has shown that it is minimal and says one thing only."""
    return checked(source.changes(window, mode))


def checked(frame: DataFrame) -> Changes:
    """The rows of a stream with its hidden columns."""
    rows = frame.collect()
    found = Changes(Counter(), Counter(), Counter())
    by_id: dict[str, list[tuple[str, Values]]] = {}
    for row in rows:
        change_type, version, time, *rest = row
        values = tuple(map(canonical, rest[:-6]))
        _check_hidden(row, change_type)
        by_id.setdefault(rest[-4], []).append((change_type, values))
        if change_type in ("INSERT", "UPDATE_AFTER"):
            found.new[change_type, values, version, time] += 1
        else:
            found.old[change_type, values] += 1
    for row_id, shown in by_id.items():
        types = sorted(change_type for change_type, _ in shown)
        assert types in (["INSERT"], ["DELETE"], ["UPDATE_AFTER", "UPDATE_BEFORE"]), f"{row_id}: {shown}"
        if len(shown) == 2:
            by_type = dict(shown)
            found.updates[by_type["UPDATE_BEFORE"], by_type["UPDATE_AFTER"]] += 1
    return found


def _check_hidden(row: Row, change_type: str) -> None:
    action, is_update, row_id, *same = row[-6:]
    assert [action, is_update, row_id] == same
    assert action == TYPES[change_type]
    assert is_update == change_type.startswith("UPDATE")
    assert row_id
