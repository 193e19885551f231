"""The graph of dynamic tables that read each other, and the order of their refreshes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamql.features.dynamic.source.table import DynamicTable


def upstream(tables: Iterable[DynamicTable], reads: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    """Returns, for each dynamic table, the dynamic tables that its query reads. Tables are given by the ids of their definitions. `reads`:
    the ids of the Delta tables that each query reads."""
    by_backing = {t.backing.table_id: t.definition.uuid for t in tables}
    return {uid: sorted(by_backing[i] for i in ids if i in by_backing) for uid, ids in reads.items()}


def in_order(wanted: Iterable[str], reads: Mapping[str, list[str]]) -> list[str]:
    """Returns the wanted tables and all tables that they read, directly or through others. Each table comes after those that it reads."""
    ordered: list[str] = []
    entered: set[str] = set()

    def visit(uid: str) -> None:
        if uid in entered:
            return
        entered.add(uid)
        for other in reads.get(uid, ()):
            visit(other)
        ordered.append(uid)

    for uid in sorted(wanted):
        visit(uid)
    return ordered


def readers(reads: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Returns, for each table, the tables that read it."""
    found: dict[str, list[str]] = {uid: [] for uid in reads}
    for uid, others in reads.items():
        for other in others:
            found.setdefault(other, []).append(uid)
    return found
