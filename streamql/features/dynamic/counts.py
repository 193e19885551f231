"""What is counted of the refreshes of a dynamic table, and kept with its hidden stream. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from streamql.catalog.counts import CONSUMED, Counts, Ended
from streamql.catalog.events import UNCHANGED
from streamql.features.dynamic.refreshes.status import NOT_COMPUTED, REFRESHED, Recent, Refresh, rows_of
from streamql.features.dynamic.source.table import DynamicTable
from streamql.sources.protocol import HIDDEN_TYPE

NO_MODE = "NONE"
"""Stands for the mode of a refresh that failed before its mode was chosen, or that found nothing to do."""
REFRESHES_BY, TOOK_BY, ROWS_BY = "refreshes", "refresh_ms", "refresh_rows"
"""Groups of counts: refreshes by mode and outcome, milliseconds by mode, rows by what became of them."""
_FAILURES, _WROTE = "refresh_failures", "refresh_wrote_ms"


def counts(before: Mapping[str, int], ended: Ended) -> dict[str, int]:
    """Counts a refresh. Failures in a row are those that `streamql streams` shows: a refresh that failed incrementally and then fully
    counts once."""
    if ended.source_type != HIDDEN_TYPE:
        return {}
    mode, is_done = str(ended.details.get("mode", NO_MODE)), ended.outcome == CONSUMED
    is_unchanged = ended.details.get("reason") == UNCHANGED
    outcome = UNCHANGED if is_unchanged else REFRESHED if is_done else ended.outcome
    is_again = str(ended.details.get("why_full", "")).startswith(NOT_COMPUTED)
    rows = rows_of(ended.metrics) if is_done else None
    more = {
        f"{REFRESHES_BY}.{mode}.{outcome}": 1,
        f"{TOOK_BY}.{mode}": ended.took_ms,
        **{f"{ROWS_BY}.{change}": number for change, number in (rows or {}).items() if number},
    }
    failures = before.get(_FAILURES, 0)
    return {
        **{name: before.get(name, 0) + number for name, number in more.items()},
        _FAILURES: 0 if is_done else failures if is_again and failures else failures + 1,
        **({_WROTE: ended.took_ms} if is_done and not is_unchanged else {}),
    }


def recent_of(table: DynamicTable, counts: Counts) -> Recent | None:
    """Returns the last refresh as the counts have it, without what only the ledger knows. None: there was none."""
    if not counts.last_outcome:
        return None
    outcome = REFRESHED if counts.last_outcome == CONSUMED else counts.last_outcome
    began = counts.last_ms - counts.last_took_ms
    last = Refresh(str(table.name), outcome, None, None, began, counts.last_ms, None, None, None, None)
    own = counts.of_features
    return Recent(last, own.get(_FAILURES, 0), own.get(_WROTE, 0))
