"""Hints for names that nothing has, and for Spark's errors that a stream is the reason of."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.names import SESSION_CATALOG, Found, look_up, qualify, schemas_with, tables_of
from streamql.dialect import nearest
from streamql.errors import StreamqlError
from streamql.model import METADATA_COLUMNS, StreamMode
from streamql.names import Name, quote_if_needed
from streamql.sources.definitions import DefinitionType
from streamql.sources.registry import type_of

SEVERAL_MATCHED = (
    "an update has two rows in the stream, and a key that was deleted and inserted again has one of each: keep one row for each key by "
    "QUALIFY row_number() OVER (PARTITION BY key …) = 1, as the first recipe of docs/merge-recipes.md does; or, if keys never change, name "
    "a __change_type in each clause"
)
"""What to do about several rows of a stream that match one row of a target."""


def hint_for(spark: SparkSession, error: str, name: Sequence[str], known: Sequence[str]) -> str | None:
    """Returns the hint for an error of Spark's; None: there is none.

    `error` says what `name` and `known` are:
    TABLE: a name that nothing has. VERSION: the name behind which time travel stands, and its version, line and column.
    COLUMN: a column of a MERGE, and those there are. STAR: the target's columns, and the source's, of which `*` lacks one.
    INSERT: the target's columns, and those of the query.
    MATCHED: nothing; several rows of a stream match one row of the target of a MERGE.
    Raises UNSUPPORTED_CLAUSE for VERSION on a stream.
    """
    if error == "MATCHED":
        return SEVERAL_MATCHED
    if error == "COLUMN":
        return column_hint(name[0], known)
    if error == "STAR":
        return star_hint(name, known)
    if error == "INSERT":
        return insert_hint(spark, name, known)
    if error == "VERSION":
        refuse_version(spark, name, known)
        return None
    return table_hint(spark, name)


def column_hint(column: str, known: Sequence[str]) -> str | None:
    """Returns the nearest column to `s.amuont`: with its qualifier if the column has one. All are SQL, in backquotes where they need it."""
    qualifier, _, last = column.rpartition(".")
    fits = [k for k in known if not qualifier or k.lower().startswith(f"{qualifier.lower()}.")]
    bare = {k.rpartition(".")[2]: k for k in reversed(fits or known)}
    guess = nearest(last, bare, _mistakes(last))
    if guess is None:
        return None
    return f"did you mean {bare[guess] if qualifier else guess}?"


def star_hint(target: Sequence[str], source: Sequence[str]) -> str:
    """Returns what to write in place of `*` if the source does not have all columns of the target. The source's are SQL, with their
    qualifier."""
    there = {c.rpartition(".")[2].strip("`").lower(): c for c in source}
    both = {quote_if_needed(c): there[c.lower()] for c in target if c.lower() in there}
    if not both:
        return "name the columns and their values in place of *"
    pairs = ", ".join(f"{ours} = {theirs}" for ours, theirs in both.items())
    return (
        f"name those that both have: UPDATE SET {pairs}; INSERT ({', '.join(both)}) VALUES ({', '.join(both.values())})"
    )


def insert_hint(spark: SparkSession, columns: Sequence[str], written: Sequence[str]) -> str | None:
    """For an INSERT whose query brings the columns of a stream along, which the table (`columns`) lacks."""
    if spark.conf.get("spark.databricks.delta.schema.autoMerge.enabled", "false") == "true":
        return None
    there, brought = {c.lower() for c in columns}, {c.lower() for c in written}
    own = brought.intersection(METADATA_COLUMNS)
    if not own or own & there:
        return None
    listed = ", ".join(map(quote_if_needed, columns if there <= brought else _rows(written)))
    return f"name the columns in place of *: SELECT {listed}; the others are the stream's own"


def table_hint(spark: SparkSession, parts: Sequence[str]) -> str | None:
    """Returns the nearest table, view or stream to an unknown name; what to do with the name of a stream or an external table where a table
    is wanted."""
    try:
        name = qualify(spark, tuple(parts))
    except StreamqlError:
        return None
    state = _stream(spark, name)
    if state is not None:
        return f"{state.name} is a stream of the table {state.stream.source.name}, which is what this statement takes"
    if name.key in [n.key for n in _external_tables(spark)]:
        return (
            f"{name} is an external table, which this statement does not take: SELECT reads it, DESCRIBE EXTERNAL TABLE describes it, "
            "SHOW CREATE EXTERNAL TABLE shows its statement"
        )
    other = elsewhere(spark, name, with_tables=True, with_streams=True)
    guess = nearest_name(spark, name, with_tables=True, with_streams=True)
    return _did_you_mean(other, None if guess is None else _as_written(parts, guess)) or None


def missing_stream(
    spark: SparkSession, parts: Sequence[str], line: int | None = None, column: int | None = None
) -> StreamqlError:
    """STREAM_NOT_FOUND: with the nearest stream, or with what a table of that name can be given."""
    wanted = ".".join(parts)
    message, hint = f"there is no stream {wanted}", "SHOW STREAMS lists those there are"
    try:
        name = qualify(spark, tuple(parts))
        found = look_up(spark, name)
    except StreamqlError:
        found = Found("missing")
    else:
        other, guess = elsewhere(spark, name, with_streams=True), nearest_name(spark, name, with_streams=True)
        if found.type != "missing":
            message += f": {wanted} is a {'view' if found.type == 'view' else 'table'}"
            on_it = [str(s.name) for s in _streams(spark) if s.stream.source.identity == found.table_id]
            if on_it:
                hint = f"its streams: {', '.join(on_it)}"
            elif found.type == "delta":
                hint = f"CREATE STREAM s ON TABLE {wanted} makes one"
        else:
            hint = _did_you_mean(other, None if guess is None else _as_written(parts, guess)) or hint
    return StreamqlError("STREAM_NOT_FOUND", message, hint=hint, line=line, column=column, name=wanted)


def missing_table(spark: SparkSession, name: Name, line: int | None = None, column: int | None = None) -> StreamqlError:
    """TABLE_NOT_FOUND, with the nearest table."""
    other, guess = elsewhere(spark, name, with_tables=True), nearest_name(spark, name, with_tables=True)
    hint = _did_you_mean(other, guess) or "SHOW TABLES lists those there are"
    return StreamqlError("TABLE_NOT_FOUND", f"there is no table {name}", hint=hint, line=line, column=column)


def elsewhere(spark: SparkSession, name: Name, *, with_tables: bool = False, with_streams: bool = False) -> str | None:
    """Returns the full name of a stream or a table that has the same name in another schema; None: there is none."""
    known: list[Name] = []
    if with_streams:
        known += [s.name for s in _streams(spark)]
    if with_tables:
        known += _external_tables(spark)
        with contextlib.suppress(Exception):  # a metastore that cannot be listed: another error says so
            known += [Name(SESSION_CATALOG, s, name.object) for s in schemas_with(spark, name.object)]
    return next((str(n) for n in known if n.object.lower() == name.object.lower() and n.key != name.key), None)


def hint_among(name: Name, known: Sequence[Name], parts: Sequence[str] = ()) -> str:
    """Returns the hint for a name that none of `known` has: the same name in another schema, else the nearest in its own; empty: there is
    none. `parts`: the name as it was written."""
    other = next((str(n) for n in known if n.object.lower() == name.object.lower()), None)
    here = [n.object for n in known if (n.catalog, n.schema.lower()) == (name.catalog, name.schema.lower())]
    near = nearest(name.object, here, _mistakes(name.object))
    return _did_you_mean(other, None if near is None else _as_written(parts, near))


def _did_you_mean(elsewhere: str | None, near: str | None) -> str:
    """Returns the hint for a name that nothing has: what has it in another schema, else the nearest one here. Empty: there is neither."""
    if elsewhere is not None:
        return f"did you mean {elsewhere}, which is in another schema?"
    return "" if near is None else f"did you mean {near}?"


def nearest_name(
    spark: SparkSession, name: Name, *, with_tables: bool = False, with_streams: bool = False
) -> str | None:
    """Returns the nearest name in the schema of `name`; None: nothing there is near. What the catalogs cannot list is left out."""
    known: list[str] = []
    if with_streams:
        home = (name.catalog, name.schema.lower())
        known += [s.name.object for s in _streams(spark) if (s.name.catalog, s.name.schema.lower()) == home]
    if with_tables:
        home = (name.catalog, name.schema.lower())
        known += [n.object for n in _external_tables(spark) if (n.catalog, n.schema.lower()) == home]
        with contextlib.suppress(Exception):  # no such schema, or one that cannot be listed: another error says so
            known += tables_of(spark, name.catalog, name.schema)
    return nearest(name.object, known, _mistakes(name.object))


def refuse_version(spark: SparkSession, parts: Sequence[str], facts: Sequence[str]) -> None:
    """UNSUPPORTED_CLAUSE for VERSION | TIMESTAMP AS OF on a stream. `facts`: the version (empty: a time), line and column."""
    try:
        state = _stream(spark, qualify(spark, tuple(parts)))
    except StreamqlError:
        return
    if state is None:
        return
    version, line, column = facts
    clause, point = ("VERSION", f"VERSION => {version}") if version else ("TIMESTAMP", "TIMESTAMP => '…'")
    source = state.stream.source
    changes = "DEFAULT"
    if type_of(source).default_mode is StreamMode.APPEND_ONLY:
        changes, point = "APPEND_ONLY", "TIMESTAMP => '…'"
    raise StreamqlError(
        "UNSUPPORTED_CLAUSE",
        f"{clause} AS OF: {state.name} is a stream, which has no versions of its own",
        hint=f"FROM {source.name} CHANGES (INFORMATION => {changes}) AT ({point}) shows the changes since then",
        line=int(line) if line else None,
        column=int(column) if column else None,
    )


def _mistakes(word: str) -> int:
    """Returns how many mistakes a name may have: amnt is near to amount, and id to no other name of two letters."""
    return max(len(word) // 3, min(2, len(word) // 2), 1)


def _rows(columns: Sequence[str]) -> list[str]:
    return [c for c in columns if c.lower() not in METADATA_COLUMNS]


def _as_written(parts: Sequence[str], guess: str) -> str:
    return ".".join((*parts[:-1], guess))


def _stream(spark: SparkSession, name: Name) -> StreamState | None:
    try:
        return catalog_of(spark).find(spark, name)
    except StreamqlError:  # the catalog cannot be read: Spark's error is the one to show
        return None


def _external_tables(spark: SparkSession) -> list[Name]:
    """Returns the names of the external tables."""
    try:
        return [t.name for t in catalog_of(spark).definitions(spark, DefinitionType.EXTERNAL_TABLE)]
    except StreamqlError:
        return []


def _streams(spark: SparkSession) -> Sequence[StreamState]:
    try:
        return catalog_of(spark).all(spark)
    except StreamqlError:
        return ()
