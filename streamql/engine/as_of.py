"""`t AT (…)` and `t END (STREAM => …)`: a table as of a point in its history, or as of the begin or end of a stream's interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.stored import as_shown, stored_in, stored_table
from streamql.delta.names import qualify
from streamql.dialect import parse_name
from streamql.dialect.statements import PointInTime
from streamql.dialect.text.tokens import NameParts, Span
from streamql.engine.points import offset_at
from streamql.engine.reads import named_table, need_stream, read_point
from streamql.errors import StreamqlError
from streamql.model import Interval, TableSource, version_of
from streamql.reading import BEGIN, END
from streamql.sources.registry import open_source, type_of
from streamql.sources.tables.image import image
from streamql.sources.tables.table import open_table

_FORMS = {"BEGIN": BEGIN, "END": END}
_BEFORE = "BEFORE "


@dataclass(frozen=True)
class AsOf:
    """The arguments of a call of streamql_as_of. Places are lines and columns in the statement; empty: not known.

    `form` and `stream`: the table is read at the BEGIN or END of the stream's interval. If `form` is None, it is read at `point`.
    """

    table: NameParts
    table_place: Mapping[str, int]
    place: Mapping[str, int]
    form: str | None = None
    stream: NameParts = ()
    point: PointInTime | None = None


def read_arguments(arguments: Sequence[object], home: Sequence[str]) -> AsOf:
    """Returns the arguments of streamql_as_of. `home`: the catalog and schema of the view that has the call in its text; empty: no view has
    it.

    Raises INVALID_ARGUMENT, and INVALID_POINT_IN_TIME for a version that is not a number.
    """
    if len(arguments) not in (3, 5) or not isinstance(arguments[0], str) or not isinstance(arguments[1], str):
        raise StreamqlError(
            "INVALID_ARGUMENT",
            "streamql_as_of is the function that FROM t AT (…) becomes",
            hint="write FROM t AT (STREAM => 's'), or FROM t AT (VERSION => n)",
            function="streamql_as_of",
        )
    table, point_type, value, *places = arguments
    # Places in the text of a view are left out, because they are not places in the statement that reads the view.
    table_place, place = ({}, {}) if home or not places else map(_place, places)
    asked = AsOf(_at_home(parse_name(str(table)), home), table_place, place)
    name = str(point_type)
    if name in _FORMS:
        return replace(asked, form=_FORMS[name], stream=_at_home(parse_name(str(value)), home))
    point = read_point(name.removeprefix(_BEFORE), value, name.startswith(_BEFORE))
    span = Span(0, 0, place["line"], place["column"]) if place else None
    return replace(asked, point=replace(point, span=span))


def _place(text: object) -> Mapping[str, int]:
    line, _, column = str(text).partition(":")
    return {"line": int(line), "column": int(column)}


def _at_home(parts: NameParts, home: Sequence[str]) -> NameParts:
    """Returns a name in the text of a view, qualified by the view's catalog and schema."""
    if not home or len(parts) > 2:
        return parts
    return (*home, *parts) if len(parts) == 1 else (home[0], *parts)


def table_at(spark: SparkSession, asked: AsOf) -> DataFrame:
    """Returns the table at a point in its history. A dynamic table has only the columns that it shows. Lazy. Raises INVALID_POINT_IN_TIME,
    TABLE_NOT_FOUND, NOT_A_DELTA_TABLE, UNSUPPORTED_SOURCE."""
    assert asked.point is not None
    source = open_table(spark, _table(spark, asked))
    rows = image(source, version_of(offset_at(spark, source, asked.point).position))
    return as_shown(spark, source.ref.table_id, rows)


def stream_and_table(spark: SparkSession, asked: AsOf) -> tuple[StreamState, TableSource]:
    """Returns the stream AT (or at the END of) which a table is read, and the table. Raises STREAM_NOT_FOUND, what finding the table
    raises, and INVALID_POINT_IN_TIME if the stream does not read the table."""
    state = need_stream(spark, asked.stream, asked.place.get("line"), asked.place.get("column"))
    source = state.stream.source
    now = Interval(state.offset.position, state.offset.position)
    if not source.holds(now):
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"stream {state.name} is on the {type_of(source).label.lower()} {source.name}, which has no versions",
            hint="AT and END take a stream on a Delta table, or on a view of Delta tables",
            **asked.place,
        )
    table = _table(spark, asked)
    if not any(known.is_table(table.table_id, table.path) for known, _ in source.holds(now)):
        read = [known for known, _ in open_source(spark, source).ref.holds(now)]
        shown = [stored_in(spark, known.table_id) or known for known in read]
        names = ", ".join(str(known.name) for known in shown)
        raise StreamqlError(
            "INVALID_POINT_IN_TIME",
            f"stream {state.name} does not read {table.name}: it reads {names}",
            hint=f"name a table that the stream reads, or a stream that reads {table.name}",
            **asked.place,
        )
    return state, table


def _table(spark: SparkSession, asked: AsOf) -> TableSource:
    """Returns the Delta table of a name. For a dynamic table it is the backing table, under the dynamic table's name."""
    where, name = asked.table_place, qualify(spark, asked.table)
    stored = stored_table(spark, name)
    if stored is not None:
        return replace(stored.table, name=stored.name)
    return named_table(spark, name, where.get("line"), where.get("column"))
