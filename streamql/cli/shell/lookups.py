"""What the shell asks the catalog, in SQL: so that it is the same for every session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamql.cli.shell.snapshot import Relation, Snapshot, Want
from streamql.dialect.vocabulary import vocabularies
from streamql.engine.stream_facts import SHOWN, StreamFacts
from streamql.names import quote
from streamql.times import now_ms

if TYPE_CHECKING:
    from streamql.console.sql.session import Session


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
    rows = session.sql(f"SHOW STREAMS IN {name}").selectExpr(*SHOWN).collect()
    streams = [StreamFacts.of_show(row.asDict(), now_ms()) for row in rows]
    types, others = dict.fromkeys(views, "view"), []
    shown = {str(n).lower() for n, _ in tables}  # Spark shows the views of dynamic tables in lower case
    for type_, statement in [(t, s) for words in vocabularies() for t, s in words.lists.items()]:
        found = [str(row[0]) for row in session.sql(f"{statement} IN {name}").select("name").collect()]
        types |= {n.lower(): type_ for n in found if n.lower() in shown}
        others += [Relation(n, type_) for n in found if n.lower() not in shown]
    unnamed = [words.unnamed for words in vocabularies() if words.unnamed is not None]
    relations = [
        Relation(str(n), types.get(str(n), "table"), bool(temporary))
        for n, temporary in tables
        if not any(pattern.match(str(n)) for pattern in unnamed)
    ]
    return [*relations, *others, *(Relation(stream.name, "stream") for stream in streams)], streams
