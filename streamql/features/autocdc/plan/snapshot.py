"""FROM SNAPSHOT: the source has all rows that there are. What differs from the rows of the target is made events."""

from __future__ import annotations

from streamql.features.autocdc.language.statement import AutoCdc
from streamql.features.autocdc.plan.columns import END_AT, START_AT, Columns
from streamql.features.autocdc.plan.events import (
    DELETES,
    ENDS,
    PLACE,
    SEQ,
    TRUNCATES,
    Order,
    checked,
    failure,
    same_key,
)
from streamql.features.autocdc.plan.values import same_as_stored
from streamql.names import quote

_HERE, _THERE, _LAST = "`__cdc_here`", "`__cdc_there`", "`__cdc_last`"
"""_HERE: whether the snapshot has the row. _THERE: whether the target has it. _LAST: of equal rows of a snapshot, one has it."""


def events(statement: AutoCdc, columns: Columns, order: Order, target: str) -> str:
    """Returns the query of the events: the columns of the target under their names, then SEQ, PLACE, DELETES, ENDS and TRUNCATES. An
    event is a row that the target does not have like this, or a delete of a key that the snapshot does not have. `target`: its name."""
    values = ", ".join(f"{quote(c.source)} AS {c.sql}" for c in columns.all)
    rows = f"SELECT {values}, 0 AS {SEQ}, 0 AS {PLACE}, false AS {DELETES}, true AS {_HERE} FROM {statement.source}"
    keys = ", ".join(c.sql for c in columns.keys)
    is_last = checked(columns, order, f"lead(true) OVER (PARTITION BY {keys} ORDER BY {order.by}) IS NULL")
    distinct = f"SELECT * FROM (SELECT *, {is_last} AS {_LAST} FROM ({rows})) WHERE {_LAST}"
    is_current = f" WHERE {quote(END_AT)} IS NULL" if statement.history == 2 else ""
    there = f"SELECT *, true AS {_THERE} FROM {target}{is_current}"
    taken = ", ".join(f"{_of_either(c.sql)} AS {c.sql}" if c in columns.keys else f"s.{c.sql}" for c in columns.all)
    is_gone = f"{_HERE} IS NULL"
    return (
        f"SELECT {taken}, {_time(statement)} AS {SEQ}, 0 AS {PLACE}, {is_gone} AS {DELETES}, {is_gone} AS {ENDS}, "
        f"false AS {TRUNCATES} "
        f"FROM ({distinct}) AS s FULL OUTER JOIN ({there}) AS t ON {same_key(columns, 's', 't')} "
        f"WHERE {is_gone} OR {_THERE} IS NULL OR NOT ({same_as_stored(columns.values, columns.missing)})"
    )


def _of_either(name: str) -> str:
    return f"if({_HERE} IS NULL, t.{name}, s.{name})"


def _time(statement: AutoCdc) -> str:
    """Returns the time of the snapshot, which must be later than the begin of each row that it ends."""
    if statement.history == 1:
        return "0"
    if statement.sequence_by is None:
        time = "current_timestamp()"
    else:
        several = failure("AUTO_CDC_ORDER.SNAPSHOT", "SEQUENCE BY gives several values, and a snapshot has one time")
        none = failure("AUTO_CDC_ORDER.SNAPSHOT", "the snapshot has no row, or a NULL, that tells its time")
        one = f"if(min(t) <=> max(t), coalesce(max(t), raise_error({none})), raise_error({several}))"
        time = f"(SELECT {one} FROM (SELECT ({statement.sequence_by}) AS t FROM {statement.source}))"
    start = f"t.{quote(START_AT)}"
    late = failure(
        "AUTO_CDC_ORDER.SNAPSHOT",
        "the target has a row that is not older than the snapshot, from ",
        f"CAST({start} AS STRING)",
    )
    return f"if({_THERE} AND {start} >= {time}, raise_error({late}), {time})"
