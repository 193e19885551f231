"""Runs the statement of a consumption again, into a shadow of its target, and compares the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession

from streamql.catalog.states import StreamState
from streamql.delta.names import look_up, qualify
from streamql.delta.table import DeltaTable
from streamql.dialect import parse_name, quote_string
from streamql.dialect.text.tokens import NameParts
from streamql.engine.comparable import comparable, only_in
from streamql.engine.reads import find_stream
from streamql.errors import StreamqlError
from streamql.features.replay.entries import Entry, changes_again, entries_of, number_in
from streamql.features.replay.function import NAME
from streamql.features.replay.redirect import redirected
from streamql.names import Name, quote
from streamql.sessions import run_sql

TEXT_MAX = 4_000
"""The ledger has so many characters of a statement."""
_CREATES = frozenset(("CreateTableAsSelect", "CTAS", "RTAS", "ReplaceTableAsSelect"))
_SAMPLES = 5


@dataclass(frozen=True)
class Replayed:
    """A statement that was run again. `text`: as it was run. `took`: the rows that it took of the stream, by change type, and `took_then`
    those that the ledger has; None: the ledger has none. `missing`: rows that only the target has, as its statement had left it;
    `unexpected`: rows that only the shadow has. `samples`: some of both, as text."""

    entry: Entry
    shadow: Name
    text: str
    took: Mapping[str, int]
    took_then: Mapping[str, int] | None
    rows: int
    missing: int
    unexpected: int
    samples: tuple[tuple[str, str], ...]

    @property
    def is_equal(self) -> bool:
        """Returns whether the shadow has the rows that the target got."""
        return self.missing == self.unexpected == 0


def entry_to_replay(spark: SparkSession, state: StreamState, number: int | None, target: str | None) -> Entry:
    """Returns the statement of a consumption that is to run again. `target`: the table that it wrote into; None: the consumption has only
    one. Raises CONSUMPTION_NOT_FOUND, UNSUPPORTED_STATEMENT."""
    entries = [e for e in entries_of(spark, state, number) if target is None or _is_named(spark, e, target)]
    done = [e for e in entries if e.target_version is not None and e.target_path]
    if not done:
        raise StreamqlError(
            "UNSUPPORTED_STATEMENT",
            f"no statement of this consumption of {state.name} has committed into a Delta table"
            + ("" if target is None else f" {target}"),
            hint=f"SELECT * FROM {NAME}('{state.name}') shows what a consumption took",
        )
    if len(done) > 1:
        raise StreamqlError(
            "UNSUPPORTED_STATEMENT",
            f"consumption {done[0].sequence} of {state.name} is a transaction, which wrote into several tables",
            hint=f"--target {' or '.join(str(e.target) for e in done)}",
        )
    return done[0]


def replay(spark: SparkSession, state: StreamState, entry: Entry, into: Name, text: str | None) -> Replayed:
    """Runs a statement again, and compares. `into`: the shadow, which must not exist. If the statement fails, the shadow is dropped.
    `text`: another statement, with the names of the stream and the target; None: the recorded one. Raises NAME_ALREADY_IN_USE,
    UNSUPPORTED_STATEMENT, CONSUMPTION_GONE, and what Spark raises."""
    if look_up(spark, into).type != "missing":
        raise StreamqlError("NAME_ALREADY_IN_USE", f"{into} exists", hint="name a new table: the replay makes it")
    changes = changes_again(spark, state, entry)  # before the shadow is made
    if text is None and len(entry.statement) >= TEXT_MAX:
        raise StreamqlError(
            "UNSUPPORTED_STATEMENT",
            f"the ledger has only the first {TEXT_MAX:,} characters of the statement",
            hint="--statement",
        )
    run = redirected(
        text or entry.statement, lambda p: _relation(spark, entry, p), lambda p: _is_target(spark, entry, p), into.sql
    )
    try:
        if entry.operation not in _CREATES:
            _clone(spark, entry, into)
        run_sql(run, spark).collect()
    except BaseException:
        spark.sql(f"DROP TABLE IF EXISTS {into.sql}")
        raise
    return _compared(spark, changes, entry, into, run)


def _relation(spark: SparkSession, entry: Entry, parts: NameParts) -> str | None:
    """Returns the call that stands for a stream which the consumption took; None: the name is another one's."""
    found = find_stream(spark, parts)
    if found is None:
        return None
    number = number_in(spark, found, entry.consumption_id)
    return None if number is None else f"{NAME}({quote_string(found.name.sql)}, {number})"


def _is_named(spark: SparkSession, entry: Entry, target: str) -> bool:
    """Returns whether a statement wrote into a table that the user names, perhaps without its schema."""
    parts = parse_name(target)
    return _is_target(spark, entry, parts if len(parts) > 1 else (*_schema_of(entry), *parts))


def _is_target(spark: SparkSession, entry: Entry, parts: NameParts) -> bool:
    try:
        return qualify(spark, parts).key == qualify(spark, parse_name(entry.target or "")).key
    except StreamqlError:
        return False


def _schema_of(entry: Entry) -> NameParts:
    return parse_name(entry.target or "")[:-1]


def _clone(spark: SparkSession, entry: Entry, into: Name) -> None:
    """Makes the shadow: the target as it was before the statement, by its files."""
    assert entry.target_version is not None
    before = entry.target_version - 1
    run_sql(
        f"CREATE TABLE {into.sql} SHALLOW CLONE delta.{quote(str(entry.target_path))} VERSION AS OF {before}", spark
    ).collect()


def _compared(spark: SparkSession, changes: DataFrame, entry: Entry, into: Name, run: str) -> Replayed:
    """Compares the shadow with the target as its statement had left it. `changes`: those that the consumption took."""
    then = DeltaTable(spark, str(entry.target_path))
    assert entry.target_version is not None
    was, now = then.image(then.at(entry.target_version)), spark.table(into.sql)
    columns = [c for c in was.columns if c.lower() in {n.lower() for n in now.columns}]
    expected, got = comparable(was, columns).persist(), comparable(now, columns).persist()
    try:
        missing, unexpected = only_in(expected, got), only_in(got, expected)
        rows = got.count()
    finally:
        expected.unpersist()
        got.unpersist()
    samples = (
        _samples(was, now, columns, "target") + _samples(now, was, columns, "shadow") if missing or unexpected else ()
    )
    took = {r["__change_type"]: int(r["count"]) for r in changes.groupBy("__change_type").count().collect()}
    return Replayed(entry, into, run, took, entry.changes, rows, missing, unexpected, samples)


def _samples(one: DataFrame, other: DataFrame, columns: list[str], label: str) -> tuple[tuple[str, str], ...]:
    """Returns some rows that only one of two tables has, as text. Rows are compared as JSON, so that of rows which differ in what JSON does
    not tell apart there is no sample."""
    texts = [f.selectExpr(f"to_json(struct({', '.join(quote(c) for c in columns)})) AS row") for f in (one, other)]
    found: list[Row] = texts[0].exceptAll(texts[1]).orderBy("row").limit(_SAMPLES).collect()
    return tuple((label, r["row"]) for r in found)
