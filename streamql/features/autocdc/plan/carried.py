"""IGNORE NULL UPDATES in a history: a state has, in each of these columns, the last value that an event set since the key was deleted.

A row of the target tells such values, but not which of them its first event set. So the target's state remembers events with a NULL, as
they came. What it remembers counts in the place of what the row tells.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamql.features.autocdc.plan.columns import Columns
from streamql.features.autocdc.plan.events import DELETES, PLACE, SEQ, Order, folded, named, raised
from streamql.features.autocdc.plan.values import comparable, leaves_of

TOLD, REMEMBERED = 1, 2
"""The PLACE of events that rows of the target tell, and of those that its state remembers. Of events at one sequence, the last place
counts, because a row has the columns that are not tracked as its last event left them."""
PARTIAL = "`__cdc_partial`"
"""Whether the state must remember an event because it has a NULL."""

_EPOCH, _HIDDEN = "`__cdc_epoch`", "`__cdc_hidden`"
"""_EPOCH: how many deletes of its key come before an event. _HIDDEN: whether the state tells more exactly what a row tells."""


def carried(columns: Columns, order: Order, events: str, in_place: str, more: Iterable[str]) -> str:
    """Returns the query of events whose columns have the values that they have after the event. With SEQUENCE BY, PARTIAL and the columns
    `raw` are beside them. `events`: a query. `in_place`: the order of the events of a key. `more`: columns of it to keep."""
    keys = named(columns.keys)
    peers = f"OVER (PARTITION BY {keys}, {SEQ})"
    here = f"ORDER BY {in_place} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    hidden = f"{PLACE} = {TOLD} AND max({PLACE}) {peers} = {REMEMBERED}" if order.sequence is not None else "false"
    marked = f"SELECT *, {hidden} AS {_HIDDEN}, count_if({DELETES}) OVER (PARTITION BY {keys} {here}) AS {_EPOCH} FROM ({events})"
    values = [f"if({_HIDDEN}, NULL, {c.sql}) AS {c.sql}" if c in columns.kept_nulls else c.sql for c in columns.all]
    flags = [SEQ, PLACE, DELETES, *more]
    bare = f"SELECT {', '.join([*values, *flags, _EPOCH])} FROM ({marked})"
    since = f"PARTITION BY {keys}, {_EPOCH} {here}"
    made = [f"{folded(c.sql, c.type, since)} AS {c.sql}" if c in columns.kept_nulls else c.sql for c in columns.all]
    if order.sequence is not None:
        peer = f"PARTITION BY {keys}, {SEQ}"
        made += [f"{folded(c.sql, c.type, peer)} AS {raw(i)}" for i, c in enumerate(columns.kept_nulls)]
        made.append(f"{_agreeing(columns, order, peers, _is_partial(columns, peers))} AS {PARTIAL}")
    return f"SELECT {', '.join([*made, *flags])} FROM ({bare})"


def raw(i: int) -> str:
    """Returns the name of the column that has what the events of one sequence set, of a column whose NULLs are ignored."""
    return f"`__cdc_raw_{i}`"


def _is_partial(columns: Columns, peers: str) -> str:
    """Returns whether the new events of a sequence leave a column as it is, or set one that the event which the state remembers leaves."""
    of_new, of_state = (f"{PLACE} = {place} AND NOT {DELETES}" for place in (0, REMEMBERED))
    leaves = [leaf.of() for leaf in leaves_of(columns.kept_nulls)]
    is_set = [f"coalesce(max(NOT {DELETES} AND {leaf} IS NOT NULL) {peers}, false)" for leaf in leaves]
    adds = [
        f"max({of_new} AND {v} IS NOT NULL) {peers} AND NOT max({of_state} AND {v} IS NOT NULL) {peers}" for v in leaves
    ]
    is_remembered = f"max({of_state}) {peers}"
    return f"max({of_new}) {peers} AND if({is_remembered}, {' OR '.join(f'({a})' for a in adds)}, NOT ({' AND '.join(is_set)}))"


def _agreeing(columns: Columns, order: Order, peers: str, value: str) -> str:
    """Returns `value`. It fails for a new event that sets a column to another value than the event that was there at its sequence."""
    differ = []
    for leaf in leaves_of(columns.kept_nulls):
        is_tracked = leaf.path[0] in {c.name for c in columns.tracked}
        old = f"{PLACE} IN ({TOLD}, {REMEMBERED})" if is_tracked else f"{PLACE} = {REMEMBERED}"
        one = comparable(leaf.of(), leaf.type)
        new, known = (
            f"first_value(if({which} AND NOT {DELETES} AND {leaf.of()} IS NOT NULL, {one}, NULL), true) {peers}"
            for which in (f"{PLACE} = 0", old)
        )
        differ.append(f"({new} IS NOT NULL AND {known} IS NOT NULL AND NOT ({new} <=> {known}))")
    return f"if({' OR '.join(differ)}, {raised(columns, order)}, {value})"
