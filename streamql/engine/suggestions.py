"""Hints for unknown names, and for errors of Spark that are caused by a stream."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.names import SESSION_CATALOG, Found, look_up, qualify, schemas_with, tables_of
from streamql.errors import StreamqlError
from streamql.misspelt import did_you_mean, name_suggestion, nearest
from streamql.model import METADATA_COLUMNS, StreamMode
from streamql.names import Name, quote_if_needed
from streamql.reading import parse_read
from streamql.sources.definitions import DefinitionType
from streamql.sources.protocol import HIDDEN_TYPE
from streamql.sources.registry import type_of

SEVERAL_MATCHED = (
    "an update has two rows in the stream, and a key that was deleted and inserted again has one of each: AUTO CDC INTO target FROM "
    "STREAM s KEYS (key) takes one row for each key; docs/copies-and-histories.md has a MERGE that does; or, if keys never change, name a "
    "__change_type in each clause"
)
"""The hint for several rows of a stream that match one row of the target of a MERGE."""


def hint_for(spark: SparkSession, error: str, name: Sequence[str], known: Sequence[str]) -> str | None:
    """Returns the hint for an error of Spark; None: there is none.

    `error` is the type of error, by which `name` and `known` are:
    - TABLE: an unknown name; nothing.
    - VERSION: the name with a time travel clause; the version, line and column. Raises UNSUPPORTED_CLAUSE if the name is a stream's.
    - COLUMN: an unknown column in a MERGE; the known columns.
    - STAR: the target's columns; the source's columns, which do not have all that `*` needs.
    - INSERT: the target's columns; the columns of the query.
    - MATCHED: nothing. Several rows of a stream match one row of the target of a MERGE.
    - ROW: the descriptions of the reads of streams; nothing. A row has no valid value, or violates a constraint of the target.
    """
    if error == "ROW":
        return row_hint(name)
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


def row_hint(reads: Sequence[str]) -> str | None:
    """Returns the hint for a row that fails a statement which consumes streams: how a stream goes on without such rows. None: the
    statement refreshes a dynamic table, whose stream has no name."""
    found = [read for read in map(parse_read, reads) if read.source.type_name != HIDDEN_TYPE]
    if not found:
        return None
    statement = f"ALTER STREAM {found[0].stream} ADD EXPECTATION name CHECK (condition) ON VIOLATION QUARANTINE"
    return f"{statement} leaves such rows out"


def column_hint(column: str, known: Sequence[str]) -> str | None:
    """Returns the hint that names the column nearest to an unknown one, such as `s.amuont`. It has a qualifier if the unknown one has. All
    names are SQL, in backquotes if they need them."""
    qualifier, _, last = column.rpartition(".")
    fits = [k for k in known if not qualifier or k.lower().startswith(f"{qualifier.lower()}.")]
    bare = {k.rpartition(".")[2]: k for k in reversed(fits or known)}
    guess = nearest(last, bare)
    return None if guess is None else did_you_mean(bare[guess] if qualifier else guess)


def star_hint(target: Sequence[str], source: Sequence[str]) -> str:
    """Returns the hint what to write in place of `*` if the source lacks columns of the target. `source`: its columns as SQL, with their
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
    """Returns the hint for an INSERT whose query has the metadata columns of a stream, which the table lacks; None: it does not have them.
    `columns`: of the table. `written`: of the query."""
    if spark.conf.get("spark.databricks.delta.schema.autoMerge.enabled", "false") == "true":
        return None
    there, brought = {c.lower() for c in columns}, {c.lower() for c in written}
    own = brought.intersection(METADATA_COLUMNS)
    if not own or own & there:
        return None
    listed = ", ".join(map(quote_if_needed, columns if there <= brought else _rows(written)))
    return f"name the columns in place of *: SELECT {listed}; the others are the stream's own"


def table_hint(spark: SparkSession, parts: Sequence[str]) -> str | None:
    """Returns the hint for a name that is not a table. It says what to do with the name if that is a stream's or an external table's.
    Otherwise it names the nearest table, view or stream. None: there is no hint."""
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
    known = [*(s.name for s in _streams(spark)), *_tables(spark, name)]
    return name_suggestion(name, known, parts) or None


def missing_stream(
    spark: SparkSession, parts: Sequence[str], line: int | None = None, column: int | None = None
) -> StreamqlError:
    """Returns the error STREAM_NOT_FOUND. Its hint names the nearest stream, or, if a table has the name, the table's streams or how to
    create one."""
    wanted = ".".join(parts)
    message, hint = f"there is no stream {wanted}", "SHOW STREAMS lists those there are"
    try:
        name = qualify(spark, tuple(parts))
        found = look_up(spark, name)
    except StreamqlError:
        found = Found("missing")
    else:
        if found.type != "missing":
            message += f": {wanted} is a {'view' if found.type == 'view' else 'table'}"
            on_it = [str(s.name) for s in _streams(spark) if s.stream.source.identity == found.table_id]
            if on_it:
                hint = f"its streams: {', '.join(on_it)}"
            elif found.type == "delta":
                hint = f"CREATE STREAM s ON TABLE {wanted} makes one"
        else:
            hint = name_suggestion(name, (s.name for s in _streams(spark)), parts) or hint
    return StreamqlError("STREAM_NOT_FOUND", message, hint=hint, line=line, column=column, name=wanted)


def missing_table(
    spark: SparkSession, name: Name, line: int | None = None, column: int | None = None, *, creates: str = ""
) -> StreamqlError:
    """Returns the error TABLE_NOT_FOUND. Its hint names the nearest table. `creates`: what creates the table; empty: another statement."""
    near = name_suggestion(name, _tables(spark, name))
    hint = " ".join(part for part in (near, creates) if part) or "SHOW TABLES lists those there are"
    return StreamqlError("TABLE_NOT_FOUND", f"there is no table {name}", hint=hint, line=line, column=column)


def refuse_version(spark: SparkSession, parts: Sequence[str], clause_and_place: Sequence[str]) -> None:
    """Raises UNSUPPORTED_CLAUSE for VERSION | TIMESTAMP AS OF on a stream. `clause_and_place`: the version (empty: the clause has a time),
    line and column."""
    try:
        state = _stream(spark, qualify(spark, tuple(parts)))
    except StreamqlError:
        return
    if state is None:
        return
    version, line, column = clause_and_place
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


def _rows(columns: Sequence[str]) -> list[str]:
    return [c for c in columns if c.lower() not in METADATA_COLUMNS]


def _stream(spark: SparkSession, name: Name) -> StreamState | None:
    try:
        return catalog_of(spark).find(spark, name)
    except StreamqlError:  # if the catalog cannot be read, Spark's own error is shown without a hint
        return None


def _tables(spark: SparkSession, name: Name) -> list[Name]:
    """Returns the names that an unknown name may have meant: external tables, tables of its schema, and the same name in other schemas.
    Names that a catalog fails to list are left out, because another error reports that."""
    known = _external_tables(spark)
    with contextlib.suppress(Exception):
        known += [Name(SESSION_CATALOG, schema, name.object) for schema in schemas_with(spark, name.object)]
    with contextlib.suppress(Exception):  # also if the schema does not exist
        known += [Name(name.catalog, name.schema, table) for table in tables_of(spark, name.catalog, name.schema)]
    return known


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
