"""What the shell asks the catalog, in SQL: so that it is the same for every session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from streamql.cli.shell.snapshot import Relation, RelationType, Snapshot, Want
from streamql.engine.stream_facts import SHOWN, StreamFacts
from streamql.names import quote
from streamql.times import now_ms

if TYPE_CHECKING:
    from streamql.console.sql.session import Session


_VIEW: RelationType = "view"
_TABLE: RelationType = "table"
_DYNAMIC: tuple[tuple[str, RelationType], ...] = (
    ("SHOW DYNAMIC TABLES", "dynamic table"),
    ("SHOW MATERIALIZED VIEWS", "materialized view"),
)
_BACKING_TABLE = re.compile(r"__dynamic_[0-9a-f]{12}\Z")
"""The names of tables that hold the rows of dynamic tables, which no statement names."""


def overview(session: Session, known: Snapshot) -> tuple[Snapshot, list[StreamFacts]]:
    """Returns the snapshot with the databases and the current one's names, without what it knew of others; and how the streams stand."""
    database = session.database()
    databases = [str(row[0]) for row in session.sql("SHOW DATABASES").collect()]
    fresh = Snapshot(database, databases, columns=known.columns)
    relations, streams = _relations(session, database)
    return fresh.with_relations(database, relations), streams


def look_up(session: Session, want: Want, known: Snapshot) -> Snapshot:
    """Returns the snapshot with what was wanted; empty where that is not there; as it was where the catalog did not answer. Never
    raises."""
    try:
        if not want.relation:
            return known.with_relations(want.database, _relations(session, want.database)[0])
        relation = known.find((want.database, want.relation))
        parts = (want.relation,) if relation is not None and relation.is_temporary else (want.database, want.relation)
        return known.with_columns((want.database, want.relation), session.columns(".".join(map(quote, parts))))
    except (
        Exception
    ):  # a name in an unfinished statement need not be one of anything; or it was cancelled with a statement
        if want.relation:
            return known.with_columns((want.database, want.relation), ())
        is_there = want.database in (name.lower() for name in (*known.databases, known.database))
        return known if is_there else known.with_relations(want.database, ())


def _relations(session: Session, database: str) -> tuple[list[Relation], list[StreamFacts]]:
    name = quote(database)
    tables = session.sql(f"SHOW TABLES IN {name}").select("tableName", "isTemporary").collect()
    views = {str(row[0]) for row in session.sql(f"SHOW VIEWS IN {name}").select("viewName").collect()}
    shown = session.sql(f"SHOW STREAMS IN {name}").selectExpr(*SHOWN).collect()
    streams = [StreamFacts.of_show(row.asDict(), now_ms()) for row in shown]
    external = session.sql(f"SHOW EXTERNAL TABLES IN {name}").select("name").collect()
    dynamic: dict[str, RelationType] = {}
    for statement, relation_type in _DYNAMIC:
        dynamic |= {
            str(row[0]): relation_type for row in session.sql(f"{statement} IN {name}").select("name").collect()
        }
    types = dict.fromkeys(views, _VIEW) | {
        n.lower(): t for n, t in dynamic.items()
    }  # Spark shows their views in lower case
    relations = [
        Relation(str(n), types.get(str(n), _TABLE), bool(temporary))
        for n, temporary in tables
        if not _BACKING_TABLE.match(str(n))
    ]
    relations += [Relation(str(row[0]), "external table") for row in external]
    return relations + [Relation(stream.name, "stream") for stream in streams], streams
