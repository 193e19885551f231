"""The check of extended retention: a table should keep its history for longer only while a stream needs that."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from streamql import dialect
from streamql.catalog.rows import sources_of_dropped
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.jvm import sentence
from streamql.delta.names import qualify
from streamql.engine.doctor.check import Check, Finding, Problem
from streamql.engine.reads import named_table
from streamql.engine.retention import Extension, extension_of, has_joined, is_ours, join, offset_of, revert, versions_of
from streamql.errors import StreamqlError
from streamql.model import TableSource
from streamql.reading import interval_now
from streamql.sources.protocol import Expiry
from streamql.sources.registry import open_source
from streamql.sources.tables.retention import history_ms
from streamql.sources.tables.table import OpenTable, open_table


@dataclass(frozen=True)
class Extended:
    """A table with an extension. `is_needed`: True: streams of this catalog need the extension, and it does not note that. False: no stream
    of this catalog needs it."""

    table: OpenTable
    extension: Extension
    is_needed: bool


class Extensions(Check[Extended]):
    """Finds tables whose retention was extended although no stream needs that now. The fix reverts the extension. It also finds extensions
    that another catalog made and that streams of this one need. The fix notes this need at the table."""

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[Extended]]:
        """See Check."""
        for source, streams in _tables(spark, states):
            try:
                problem = self._problem(spark, open_table(spark, source), streams)
                if problem is not None:
                    yield problem
            except StreamqlError:  # the check of sources reports it
                continue
            except Exception as e:
                yield Problem(_failed(str(source.name), e))

    def fix(self, spark: SparkSession, problems: Sequence[Problem[Extended]]) -> list[Finding]:
        """See Check."""
        return [self._fixed(spark, p.finding, p.for_fix) if p.for_fix is not None else p.finding for p in problems]

    def _problem(
        self, spark: SparkSession, table: OpenTable, streams: Sequence[StreamState]
    ) -> Problem[Extended] | None:
        extension, name = extension_of(table), str(table.ref.name)
        if extension is None:
            return None
        if any(_needs_extension(spark, table, s, extension.before) for s in streams):
            if has_joined(spark, extension):
                return None
            what = "its history is kept for longer for streams of another catalog only, and streams of this one need that, too"
            remedy = "streamql doctor --fix notes so at the source"
            found = Finding(name, "warning", "RETENTION_EXTENDED", what, remedy)
            return Problem(found, Extended(table, extension, is_needed=True))
        if not is_ours(spark, extension):
            return None
        what = "its history was kept for longer while a stream lagged; all of them have caught up, or are gone"
        found = Finding(name, "warning", "RETENTION_EXTENDED", what, "streamql doctor --fix takes that back")
        return Problem(found, Extended(table, extension, is_needed=False))

    def _fixed(self, spark: SparkSession, found: Finding, extended: Extended) -> Finding:
        try:
            if extended.is_needed:
                join(spark, extended.table, extended.extension)
                return replace(found, remedy="the source notes so now", is_fixed=True)
            is_back = revert(spark, extended.table, extended.extension)
        except (
            Exception
        ) as e:  # for example: the user may not alter the source, or another writer commits at the same time
            return _failed(found.subject, e)
        later = "" if is_back else " once no other catalog needs the longer one"
        return replace(found, remedy=f"its own retention is in force again{later}", is_fixed=True)


def _failed(name: str, e: Exception) -> Finding:
    what = f"its history is kept for longer than it need be, and that could not be taken back: {sentence(e)}"
    remedy = "run streamql doctor --fix again, as a user who may alter the table"
    return Finding(name, "warning", "RETENTION_EXTENDED", what, remedy)


def _tables(spark: SparkSession, states: Sequence[StreamState]) -> list[tuple[TableSource, list[StreamState]]]:
    """Returns tables with the streams that need their history. Tables of dropped streams are included if they still have their names."""
    by_id: dict[str, tuple[TableSource, list[StreamState]]] = {}
    for state in states:
        for table, _ in state.stream.source.holds(offset_of(state)):
            by_id.setdefault(table.table_id, (table, []))[1].append(state)
    tables = list(by_id.values())
    try:
        events = catalog_of(spark).events(spark)
        gone = set() if events is None else sources_of_dropped(events)
    except Exception:  # the check of rows reports it
        gone = set()
    for text, table_id in sorted(gone):
        with contextlib.suppress(Exception):  # the table was dropped as well, or cannot be read; no stream needs it
            table = named_table(spark, qualify(spark, dialect.parse_name(text)))
            tables += [(table, [])] if table_id == table.table_id and table_id not in by_id else []
    return tables


def _needs_extension(
    spark: SparkSession, table: OpenTable, state: StreamState, before: Mapping[str, str | None]
) -> bool:
    own = {k: v for k, v in {**table.snapshot.configuration, **before}.items() if v is not None}
    is_source = state.stream.source.identity == table.ref.identity
    try:
        source = table if is_source else open_source(spark, state.stream.source)
        parts = [v for v in versions_of(table, state, interval_now(spark, state, source)) if v.after < v.through]
        return any(Expiry(table.first_time_ms(v), history_ms(spark, own, v, state.stream.mode)).is_soon for v in parts)
    except StreamqlError as e:
        if e.code in ("STREAM_STALE", "STREAM_SOURCE_REPLACED"):  # the history that the stream needs is lost already
            return False
        raise
