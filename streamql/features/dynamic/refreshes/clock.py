"""Dynamic tables whose queries read the clock. Their rows become outdated as time passes, even if no source changes. Whether they are is
known by the times of their refreshes.
"""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from streamql.catalog.states import StreamState
from streamql.features.dynamic.source.backing import query_of
from streamql.features.dynamic.source.queries import next_day
from streamql.names import Name
from streamql.sources.views.query import QuerySource
from streamql.times import now_ms

log = logging.getLogger("streamql")

TIME = "TIME"


def has_failed(state: StreamState) -> bool | None:
    """Returns whether the last refresh of a table failed. None: it is not known, because an earlier version of streamql made that refresh.
    `state`: the table's hidden stream, without a claim."""
    tried = query_of(state).tried_ms
    return None if tried is None else tried > (state.last_consumed_ms or 0)


def outdated_since(spark: SparkSession, state: StreamState, clock: str) -> int | None:
    """Returns since when the rows of a table may differ from those of its query because time has passed, in milliseconds since 1970. None:
    they do not. `state`: its hidden stream. `clock`: what the query reads of the clock, as `DynamicQuery` has it."""
    if not clock or state.offset.initial:
        return None
    tried, ended = query_of(state).tried_ms or 0, state.last_consumed_ms or 0
    # `tried` is the begin of the last refresh. If that failed, the begin of the one before it is not known, so its end is taken.
    computed = tried if 0 < tried <= ended else ended
    if clock == TIME:
        return computed
    day = min(next_day(spark, computed, zone) for zone in clock.split()[1:])
    if day <= now_ms():
        return day
    return tried if has_failed(state) else None


def warn_of_clock(name: Name, source: QuerySource) -> None:
    """Warns how often a new table will be refreshed fully if its query reads the clock."""
    if source.clock == TIME:
        log.warning(
            "the query of %s reads the current time: its rows change while its sources do not. Each refresh computes the whole query, and "
            "with a TARGET_LAG or a REFRESH INTERVAL the table is due again and again",
            name,
        )
    elif source.clock:
        log.warning(
            "the query of %s reads the current date: its rows change while its sources do not. The first refresh of each day computes the "
            "whole query",
            name,
        )
