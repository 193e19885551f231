"""The checks of the catalog: its entries, its views, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession

from streamql.catalog.events import stream_event
from streamql.catalog.identity import user_of
from streamql.catalog.rows import shown_wrongly
from streamql.catalog.states import StreamState
from streamql.catalog.store import catalog_of
from streamql.delta.jvm import sentence
from streamql.engine.doctor.check import CATALOG, About, Check, Finding, Problem, finding_of
from streamql.times import now_ms

_ROWS_UNUSED = "streams do not need the rows"


class Entries(Check[None]):
    """Finds entries of the catalog that are inconsistent, or that cannot be read. Has no fix."""

    about = About.CATALOG

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[None]]:  # noqa: ARG002 - not of streams
        """See Check."""
        for what in catalog_of(spark).contradictions():
            remedy = (
                "DROP STREAM removes such a name; CREATE OR REPLACE the stream, from the offset that its ledger shows"
            )
            yield Problem(Finding(CATALOG, "error", "CATALOG_UNREADABLE", what, remedy))
        for e in catalog_of(spark).unreadable():
            yield Problem(finding_of(CATALOG, e))


class Views(Check[bool]):
    """Finds views of the catalog that are missing or outdated. The fix creates them."""

    about = About.CATALOG
    what = "the views of the catalog are missing or outdated"

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[bool]]:  # noqa: ARG002 - not of streams
        """See Check."""
        try:
            if catalog_of(spark).lacks_views(spark, fix=False):
                remedy = "streamql doctor --fix creates them again; streams do not need them"
                yield Problem(Finding(CATALOG, "warning", "CATALOG_UNREADABLE", self.what, remedy), for_fix=True)
        except Exception as e:
            yield Problem(self._failed(e))

    def fix(self, spark: SparkSession, problems: Sequence[Problem[bool]]) -> list[Finding]:  # noqa: ARG002 - all views at once
        """See Check."""
        try:
            catalog_of(spark).lacks_views(spark, fix=True)
        except Exception as e:  # the user may not create views
            return [self._failed(e)]
        return [Finding(CATALOG, "warning", "CATALOG_UNREADABLE", self.what, "created again", is_fixed=True)]

    def _failed(self, e: Exception) -> Finding:
        what = f"{self.what}, and cannot be created: {sentence(e)}"
        return Finding(CATALOG, "warning", "CATALOG_UNREADABLE", what, "streams do not need them")


class Rows(Check[StreamState]):
    """Finds streams whose newest row in the catalog's table shows another offset than their entry. The entry counts. The fix adds a row
    that shows the entry's offset, and leaves the other rows."""

    about = About.CATALOG

    def examine(self, spark: SparkSession, states: Sequence[StreamState]) -> Iterator[Problem[StreamState]]:
        """See Check."""
        catalog = catalog_of(spark)
        try:
            events = catalog.events(spark)
            wrong = {} if events is None else shown_wrongly(events, states)
        except Exception as e:
            what = f"the rows of the catalog cannot be read: {sentence(e)}"
            yield Problem(Finding(CATALOG, "warning", "CATALOG_UNREADABLE", what, _ROWS_UNUSED))
            return
        for state in [s for s in states if s.stream.uuid in wrong]:
            if catalog.by_uuid(spark, state.stream.uuid) != state:
                continue  # the stream changed while the rows were read
            shown = wrong[state.stream.uuid]
            rows = "do not show it" if shown.version is None else f"show it at version {shown.version}"
            what = f"the rows of the catalog {rows}, though it is at {state.offset.position}: they were edited by hand"
            # No fix if a row has a higher number than the entry: it would still be the newest. No fix after a RESTORE either: with a new
            # number, the offset would no longer be recognised as one of a restored catalog.
            can_fix = state.claim is None and shown.sequence <= state.sequence and not catalog.was_restored(state)
            remedy = f"{_ROWS_UNUSED}; streamql doctor --fix adds one that shows it"
            finding = Finding(str(state.name), "warning", "CATALOG_UNREADABLE", what, remedy)
            yield Problem(finding, state if can_fix else None)

    def fix(self, spark: SparkSession, problems: Sequence[Problem[StreamState]]) -> list[Finding]:
        """See Check."""
        return [self._fixed(spark, p.finding, p.for_fix) if p.for_fix is not None else p.finding for p in problems]

    def _fixed(self, spark: SparkSession, found: Finding, state: StreamState) -> Finding:
        event = stream_event("altered", state.next(), now_ms(), user_of(spark), "streamql doctor --fix")
        try:
            done = catalog_of(spark).commit(spark, [state], [state.next()], [event])
        except Exception:  # the user may not write the catalog
            done = False
        remedy = "a row was added that shows it"
        return Finding(found.subject, "warning", found.code, found.what, remedy, is_fixed=True) if done else found


def maintain(spark: SparkSession) -> list[Finding]:
    """Does a round of upkeep of the catalog. Returns a finding if that fails, for example because the user may not write the catalog."""
    try:
        catalog_of(spark).maintain(spark)
    except Exception as e:
        what = f"the ledger was not made small: {sentence(e)}"
        remedy = "streams do not need it; streamql tries again after some hundred consumptions"
        return [Finding(CATALOG, "warning", "CATALOG_UNREADABLE", what, remedy)]
    return []
