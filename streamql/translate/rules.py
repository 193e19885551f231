"""Statements that have a counterpart with other words: variables, USE, SHOW, settings of tables, REPLACE INTO."""

from __future__ import annotations

from collections.abc import Callable

from streamql.dialect import quote_string
from streamql.dialect.cursor import Cursor
from streamql.dialect.tokens import TokenType, string_value
from streamql.names import quote_if_needed
from streamql.translate.context import Context, lowered, sql_name, stream_sources, tracking
from streamql.translate.model import NotTranslatedError, System, Translated
from streamql.translate.transpile import constant_to_spark, to_spark

_LISTED = ("TABLES", "VIEWS", "SCHEMAS", "DATABASES")
_KEPT = ("RESTORE", "ANALYZE", "OPTIMIZE", "VACUUM", "DESC", "DESCRIBE")
_ONE_PART = "{} is a database of the source system: Spark's schemas are in a catalog, so only the schema was kept"

Rule = Callable[[Cursor, Context], Translated | None]


def by_rule(text: str, context: Context) -> Translated | None:
    """Returns the translation by the first rule that applies; None: none does. Raises NotTranslatedError."""
    for rule in _RULES:
        found = rule(Cursor(text), context)
        if found is not None:
            return found
    return None


def _set_variable(cursor: Cursor, context: Context) -> Translated | None:
    if not cursor.take("SET"):
        return None
    has_word = cursor.take("VARIABLE")
    if context.system is System.CLICKZETTA or (context.system is System.DATABEND and not has_word):
        raise NotTranslatedError("SET: a setting of the source system's session", "leave the statement out")
    if cursor.at("("):
        raise NotTranslatedError("SET of several variables", "write SET for each of them")
    name, _ = cursor.single_name("the name of a variable")
    cursor.expect("=")
    value = cursor.raw("a value", cursor.at_end)
    default, notes = constant_to_spark(value, context)
    return Translated((f"DECLARE OR REPLACE VARIABLE {quote_if_needed(name)} = {default}",), tuple(notes))


def _use(cursor: Cursor, context: Context) -> Translated | None:
    if not cursor.take("USE"):
        return None
    has_word = cursor.take("DATABASE") or cursor.take("SCHEMA")
    name, _ = cursor.name("the name of a schema")
    cursor.expect_end()
    notes = context.once(_ONE_PART.format(name[0])) if len(name) > 1 else ()
    text = cursor.text if not has_word and len(name) == 1 else f"USE {quote_if_needed(name[-1])}"
    return Translated((text,), notes)


def _show(cursor: Cursor, _context: Context) -> Translated | None:
    if cursor.at("SHOW", "CREATE", "TABLE"):
        raise NotTranslatedError("SHOW CREATE TABLE: Delta Lake has none", "DESCRIBE TABLE EXTENDED t")
    if not cursor.take("SHOW"):
        return None
    cursor.take("TERSE")
    if cursor.at("COLUMNS"):
        return Translated((cursor.text,))
    if not cursor.at_any(_LISTED):
        raise NotTranslatedError(
            f"SHOW {cursor.key() or cursor.found()}: Spark has no such list", "SHOW TABLES, or SHOW STREAMS"
        )
    pieces = ["SHOW", cursor.advance().key]
    like = ""
    while not cursor.at_end():
        if cursor.take("LIKE") and cursor.at_string():
            like = quote_string(string_value(cursor.advance()).replace("%", "*"))
        elif cursor.at_any(("IN", "FROM")):
            cursor.advance()
            if cursor.key(1) and cursor.at_any(("SCHEMA", "DATABASE")):
                cursor.advance()
            pieces += ["IN", sql_name(cursor.name("the name of a schema")[0][-1:])]
        else:
            raise NotTranslatedError(f"SHOW {pieces[1]} with {cursor.found()}", "SHOW TABLES IN schema LIKE 'pattern'")
    return Translated((" ".join([*pieces, *(["LIKE", like] if like else [])]),))


def all_streams(cursor: Cursor) -> Translated | None:
    """SHOW STREAMS IN ACCOUNT as a query of the view that lists every stream."""
    if not cursor.take("SHOW"):
        return None
    cursor.take("TERSE")
    if not cursor.take("STREAMS"):
        return None
    like = cursor.string("a pattern") if cursor.take("LIKE") else None
    if not cursor.take("IN", "ACCOUNT") or not cursor.at_end():
        return None
    where = f" WHERE name ILIKE {quote_string('%.' + like)}" if like is not None else ""
    note = "SHOW STREAMS IN ACCOUNT became a query of streamql.streams, whose columns have other names"
    return Translated((f"SELECT * FROM streamql.streams{where}",), (note,))


def _explain(cursor: Cursor, context: Context) -> Translated | None:
    if not cursor.take("EXPLAIN"):
        return None
    if cursor.take("USING"):
        cursor.advance()
    explained = to_spark(cursor.text[cursor.token.start :], context)
    return Translated((f"EXPLAIN {explained.statements[0]}",), explained.notes)


def _clone_stream(cursor: Cursor, context: Context) -> Translated | None:
    if not cursor.take("CREATE"):
        return None
    head = "CREATE OR REPLACE" if cursor.take("OR", "REPLACE") else "CREATE"
    if not cursor.take("STREAM"):
        return None
    if cursor.take("IF", "NOT", "EXISTS"):
        head, suffix = "CREATE", " IF NOT EXISTS"
    else:
        suffix = ""
    name, _ = cursor.name("the name of a stream")
    if not cursor.take("CLONE"):
        return None
    cloned, _ = cursor.name("the name of a stream")
    cursor.take("COPY", "GRANTS")
    cursor.expect_end()
    source = context.streams.get(lowered(cloned))
    if source is None:
        hint = f"CREATE STREAM {sql_name(name)} ON TABLE … AT (STREAM => {quote_string(sql_name(cloned))})"
        raise NotTranslatedError("CLONE: the script does not say which table the stream is on", hint)
    mode = f" APPEND_ONLY = {'TRUE' if source.mode.value == 'APPEND_ONLY' else 'FALSE'}" if source.mode else ""
    point = f"AT (STREAM => {quote_string(sql_name(cloned))})"
    text = (
        f"{head} STREAM{suffix} {sql_name(name)} ON {source.source_type.value} {sql_name(source.source)} {point}{mode}"
    )
    before = [tracking(table) for table in context.untracked(stream_sources(source, context))]
    return Translated(
        (*before, text), ("CLONE became AT (STREAM => …): the new stream begins where the other one stands",)
    )


def _optimize(cursor: Cursor, _context: Context) -> Translated | None:
    is_vacuum = cursor.take("VACUUM", "TABLE")
    if not is_vacuum and not cursor.take("OPTIMIZE", "TABLE"):
        return None
    table, _ = cursor.name("the name of a table")
    verb = "VACUUM" if is_vacuum or cursor.at("PURGE") else "OPTIMIZE"
    return Translated((f"{verb} {sql_name(table)}",))


def _replace_into(cursor: Cursor, context: Context) -> Translated | None:
    """Databend's upsert as MERGE, if the statement names its columns."""
    if not cursor.take("REPLACE", "INTO"):
        return None
    table, _ = cursor.name("the name of a table")
    columns = _names(cursor) if cursor.take("(") else []
    cursor.expect("ON")
    is_listed = cursor.take("(")
    keys = _names(cursor) if is_listed else [cursor.single_name("a column")[0]]
    if cursor.at("DELETE", "WHEN"):
        raise NotTranslatedError("REPLACE INTO … DELETE WHEN", "write MERGE INTO … WHEN MATCHED AND … THEN DELETE …")
    if not columns:
        raise NotTranslatedError(
            "REPLACE INTO without a list of columns", "write MERGE INTO … USING … ON …, or name the columns"
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
    return Translated(
        (merge,), (*query.notes, "REPLACE INTO became MERGE, which fails if two new rows have the same key")
    )


def _names(cursor: Cursor) -> list[str]:
    """`name, …)`; the opening parenthesis is read."""
    names = [cursor.single_name("a column")[0]]
    while cursor.take(","):
        names.append(cursor.single_name("a column")[0])
    cursor.expect(")")
    return names


def _kept(cursor: Cursor, context: Context) -> Translated | None:
    """ClickZetta's statements that are Spark's and Delta Lake's own."""
    is_history = cursor.at_any(("DESC", "DESCRIBE")) and cursor.key(1) == "HISTORY"
    if context.system is not System.CLICKZETTA or not cursor.at_any(_KEPT):
        return None
    is_plain = cursor.key() not in ("DESC", "DESCRIBE") or is_history or cursor.tokens[-2].type is not TokenType.END
    return Translated((cursor.text,)) if is_plain else None


_RULES: tuple[Rule, ...] = (
    _set_variable,
    _use,
    _show,
    _explain,
    _clone_stream,
    _optimize,
    _replace_into,
    _kept,
)
