"""Databend's REPLACE INTO as MERGE."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, Translated
from streamql.features.translate.ordinary.transpile import to_spark
from streamql.features.translate.text.names import sql_name
from streamql.names import quote_if_needed

_BECAME_MERGE = (
    "REPLACE INTO became MERGE, which fails if two new rows have the same key, "
    "and leaves the columns of a replaced row that are not listed as they are"
)


def replace_into(text: str, context: Context) -> Translated | None:
    """Databend's upsert as MERGE, if the statement names its columns."""
    cursor = Cursor(text)
    if not cursor.take("REPLACE", "INTO"):
        return None
    table, _ = cursor.name("the name of a table")
    columns = _names(cursor) if cursor.take("(") else []
    cursor.expect("ON")
    is_listed = cursor.take("(")
    keys = _names(cursor) if is_listed else [cursor.single_name("a column")[0]]
    if cursor.at("DELETE", "WHEN"):
        raise NotTranslatedError(
            "REPLACE INTO … DELETE WHEN: the translation does not write it as MERGE",
            "write MERGE INTO … WHEN MATCHED AND … THEN DELETE …",
        )
    if not columns:
        raise NotTranslatedError(
            "REPLACE INTO without a list of columns: MERGE names them",
            "write MERGE INTO … USING … ON …, or name the columns",
        )
    query = to_spark(cursor.text[cursor.token.start :], context, feeds_table=True)
    names = [quote_if_needed(column) for column in columns]
    listed = ", ".join(names)
    condition = " AND ".join(f"_target.{quote_if_needed(key)} = _source.{quote_if_needed(key)}" for key in keys)
    changed = [
        n for n, column in zip(names, columns, strict=True) if column.lower() not in {key.lower() for key in keys}
    ]
    update = f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{n} = _source.{n}' for n in changed)}" if changed else ""
    merge = (
        f"WITH _source ({listed}) AS ({query.statements[0]}) "
        f"MERGE INTO {sql_name(table)} AS _target USING _source ON {condition}{update} "
        f"WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({', '.join(f'_source.{n}' for n in names)})"
    )
    return Translated((merge,), (*query.notes, _BECAME_MERGE))


def _names(cursor: Cursor) -> list[str]:
    """`name, …)`; the opening parenthesis is read."""
    names = [cursor.single_name("a column")[0]]
    while cursor.take(","):
        names.append(cursor.single_name("a column")[0])
    cursor.expect(")")
    return names
