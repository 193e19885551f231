"""SHOW statements whose clauses name columns, databases or objects of the source system."""

from __future__ import annotations

from streamql.dialect import parse, quote_string
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.tokens import TokenType, string_value
from streamql.features.translate.facts.context import Context
from streamql.features.translate.model import NotTranslatedError, System, Translated
from streamql.features.translate.text.names import lowered, sql_name
from streamql.features.translate.wording import ONE_PART

_LISTS = {"IS_DYNAMIC": "DYNAMIC TABLES", "IS_MATERIALIZED_VIEW": "MATERIALIZED VIEWS", "IS_VIEW": "VIEWS"}
_LISTED = ("TABLES", "VIEWS", "SCHEMAS", "DATABASES")
_ALL_STREAMS = "SHOW STREAMS IN {} became a query of streamql.streams, whose columns have other names"
_ONE_SCHEMA = "{} lists one schema here: the database {} is taken as a schema"
_HISTORY_COLUMNS = {
    "STATE": "outcome",
    "REFRESH_MODE": "mode",
    "START_TIME": "started_at",
    "END_TIME": "ended_at",
    "ERROR_MESSAGE": "error",
}
_HISTORY_VALUES = {"SUCCEED": "REFRESHED", "FAILED": "FAILED", "FULL": "FULL", "INCREMENTAL": "INCREMENTAL"}
_NOT_IN_HISTORY = (
    "WORKSPACE_NAME", "SCHEMA_NAME", "VIRTUAL_CLUSTER", "DURATION", "REFRESH_TRIGGER", "SUSPENDED_REASON", "SOURCE_TABLES",
    "STATS", "COMPLETION_TARGET", "JOB_ID",
)  # fmt: skip
_STREAM_COLUMNS = {"CREATED_ON": "create_time", "DATABASE": "schema_name", "TABLE_ON": "table_name"}
_NOT_IN_STREAMS = ("CATALOG", "OWNER", "TYPE", "WORKSPACE_NAME", "CREATOR")


def show(text: str, context: Context) -> Translated | None:
    """Returns the translation of a SHOW statement that streamql and Spark have in another form; None: it is another statement.

    Raises NotTranslatedError.
    """
    shorter, notes = _in_schema(text, context)
    found = _show(shorter, context)
    if found is None and notes:
        parse(shorter)  # raises for a clause that streamql does not have
        return Translated((shorter,), notes)
    return found if found is None else Translated(found.statements, (*notes, *found.notes))


def _in_schema(text: str, context: Context) -> tuple[str, tuple[str, ...]]:
    """Returns a list of streams or dynamic tables with the schema only behind IN, and notes on the database that was left out."""
    cursor = Cursor(text)
    keys = [token.key for token in cursor.tokens]
    if keys[0] != "SHOW" or not {"STREAMS", "DYNAMIC", "MATERIALIZED"} & set(keys[1:4]):
        return text, ()
    place = next((i for i, key in enumerate(keys) if key in ("IN", "FROM")), None)
    if place is None:
        return text, ()
    has_word = keys[place + 1] in ("SCHEMA", "DATABASE", "ACCOUNT")
    first = place + 1 + has_word
    name, after = chain(cursor.tokens, first)
    if (
        len(name) == 1
        and keys[place + 1] == "DATABASE"
        and context.system is System.SNOWFLAKE
        and "DYNAMIC" in keys[:3]
    ):
        return text, (_ONE_SCHEMA.format("SHOW DYNAMIC TABLES", name[0]),)
    if len(name) != 2:
        return text, ()
    splice = Splice(cursor.tokens[first].start, cursor.tokens[after - 1].end, sql_name(name[1:]))
    return apply(text, [splice]), context.once(ONE_PART.format(name[0]))


def _show(text: str, context: Context) -> Translated | None:
    cursor = Cursor(text)
    if not cursor.take("SHOW"):
        return None
    cursor.take("TERSE")
    if cursor.take("TABLES"):
        return _tables(cursor, context)
    if cursor.take("COLUMNS"):
        return _columns(cursor)
    if cursor.take("STREAMS") or cursor.take("TABLE", "STREAMS") or cursor.take("FULL", "STREAMS"):
        return _streams(cursor, context)
    is_history = any(
        cursor.take(*words, "REFRESH", "HISTORY") for words in (("DYNAMIC", "TABLE"), ("MATERIALIZED", "VIEW"))
    )
    if is_history and cursor.at("WHERE"):
        return _history(cursor)
    if cursor.at_any(("DYNAMIC", "MATERIALIZED")) and cursor.key(1) in ("TABLES", "VIEWS"):
        cursor.index += 2
        return _without_bare_schema(cursor)
    return None


def _tables(cursor: Cursor, context: Context) -> Translated | None:
    """Returns SHOW DYNAMIC TABLES and the like for SHOW TABLES … WHERE is_dynamic; None: it has no such condition."""
    start = cursor.index
    where = next((i for i in range(start, len(cursor.tokens)) if cursor.tokens[i].key == "WHERE"), None)
    if where is None:
        return _without_bare_schema(cursor)
    condition = [token.key for token in cursor.tokens[where + 1 : -1]]
    objects = _LISTS.get(condition[0]) if condition and context.system is System.CLICKZETTA else None
    if objects is None or condition[1:] not in ([], ["=", "TRUE"]):
        return None
    clauses = cursor.text[cursor.tokens[start].start : cursor.tokens[where].start].strip()
    if objects == "VIEWS":
        clauses = clauses.replace("%", "*")
    found = f"SHOW {objects} {clauses}".rstrip()
    parse(found)  # raises for a clause that streamql does not have
    return Translated((found,))


def _without_bare_schema(cursor: Cursor) -> Translated | None:
    """Returns the statement without IN SCHEMA or IN DATABASE if no name follows; None: the statement has no such clause.

    Raises StreamqlError.
    """
    place = _bare_schema(cursor)
    if place is None:
        return None
    word = cursor.tokens[place + 1].key
    text = apply(cursor.text, [Splice(cursor.tokens[place].start, cursor.tokens[place + 1].end, "")]).rstrip()
    parse(text)  # raises for clauses that streamql refuses
    notes = () if word == "SCHEMA" else (f"IN {word} was left out: the current schema is listed",)
    return Translated((" ".join(text.split()) if "'" not in text else text,), notes)


def _bare_schema(cursor: Cursor) -> int | None:
    """Returns the index of IN before SCHEMA, DATABASE or ACCOUNT without a name behind it; None: there is none."""
    for index in range(cursor.index, len(cursor.tokens) - 1):
        word = cursor.tokens[index + 1].key
        following = cursor.tokens[min(index + 2, len(cursor.tokens) - 1)]
        is_bare = following.type is TokenType.END or following.key in ("LIKE", "LIMIT", "STARTS", "WHERE")
        if cursor.tokens[index].key in ("IN", "FROM") and word in ("SCHEMA", "DATABASE", "ACCOUNT") and is_bare:
            return index
    return None


def _columns(cursor: Cursor) -> Translated:
    """Returns SHOW COLUMNS as Spark has it: of one table or view. Raises NotTranslatedError for another form."""
    problem = NotTranslatedError("SHOW COLUMNS of several tables: Spark lists the columns of one", "SHOW COLUMNS IN t")
    if not cursor.at_any(("IN", "FROM")):
        raise problem
    cursor.advance()
    if cursor.at_any(("SCHEMA", "DATABASE", "ACCOUNT")) and cursor.key(1) != ".":
        raise problem
    has_word = cursor.at_any(("TABLE", "VIEW")) and cursor.tokens[cursor.index + 1].type is not TokenType.END
    if has_word:
        cursor.advance()
    name, _ = cursor.name("the name of a table")
    if cursor.at_any(("IN", "FROM")):
        cursor.advance()
        name = (*cursor.name("the name of a schema")[0], *name)
    if not cursor.at_end():
        raise NotTranslatedError(f"SHOW COLUMNS with {cursor.found()}: Spark has no such clause", "SHOW COLUMNS IN t")
    return Translated(
        (f"SHOW COLUMNS IN {sql_name(name)}",) if has_word or "TERSE" in cursor.text.upper() else (cursor.text,)
    )


def _streams(cursor: Cursor, context: Context) -> Translated | None:
    place = _bare_schema(cursor)
    word = cursor.tokens[place + 1].key if place is not None else ""
    if place is not None and word in ("DATABASE", "ACCOUNT"):
        like = cursor.string("a pattern") if cursor.take("LIKE") else None
        where = f" WHERE name ILIKE {quote_string('%.' + like)}" if like is not None else ""
        if place != cursor.index or cursor.tokens[place + 2].type is not TokenType.END:
            hint = "SELECT * FROM streamql.streams WHERE …"
            raise NotTranslatedError(
                f"SHOW STREAMS IN {word} with other clauses: it becomes a query of streamql.streams", hint
            )
        return Translated((f"SELECT * FROM streamql.streams{where}",), (_ALL_STREAMS.format(word),))
    if word == "SCHEMA":
        return _without_bare_schema(cursor)
    if context.system is System.SNOWFLAKE and cursor.at("IN", "DATABASE"):
        parse(cursor.text)  # raises for clauses that streamql refuses
        cursor.index += 2
        return Translated((cursor.text,), (_ONE_SCHEMA.format("SHOW STREAMS", sql_name(cursor.name("a schema")[0])),))
    condition = next((i for i in range(cursor.index, len(cursor.tokens)) if cursor.tokens[i].key == "WHERE"), None)
    return (
        _streams_where(cursor, condition) if condition is not None and context.system is not System.SNOWFLAKE else None
    )


def _streams_where(cursor: Cursor, where: int) -> Translated | None:
    """Returns SHOW STREAMS with its condition over the columns that streamql has; None: nothing differs."""
    tokens = cursor.tokens
    splices: list[Splice] = []
    for index in range(where + 1, len(tokens) - 1):
        key, value = tokens[index].key, tokens[min(index + 2, len(tokens) - 1)]
        if key in _NOT_IN_STREAMS:
            raise NotTranslatedError(f"SHOW STREAMS has no column {key.lower()}", "leave the condition out")
        column = _STREAM_COLUMNS.get(key, key.lower())
        is_compared = tokens[index + 1].key == "=" and value.type is TokenType.STRING
        if key in _STREAM_COLUMNS:
            splices.append(Splice(tokens[index].start, tokens[index].end, column))
        if column == "table_name" and is_compared and "." not in value.text:
            splices = [s for s in splices if s.start != tokens[index].start]
            splices.append(Splice(tokens[index].start, tokens[index].end, "substring_index(table_name, '.', -1)"))
        elif column == "mode" and is_compared:
            splices.append(Splice(value.start, value.end, value.text.upper()))
    text = apply(cursor.text, splices)
    return Translated((text,)) if text != cursor.text else None


def _history(cursor: Cursor) -> Translated | None:
    """Returns SHOW … REFRESH HISTORY with FOR and the columns that streamql has; None: nothing differs."""
    tokens, where = cursor.tokens, cursor.index
    splices: list[Splice] = []
    is_named = (
        tokens[where + 1].key == "NAME" and tokens[where + 2].key == "=" and tokens[where + 3].type is TokenType.STRING
    )
    after = where + 4
    if is_named and (tokens[after].type is TokenType.END or tokens[after].key in ("AND", "LIMIT")):
        name = sql_name(tuple(string_value(tokens[where + 3]).split(".")))
        end = tokens[after].end if tokens[after].key == "AND" else tokens[after - 1].end
        splices.append(Splice(tokens[where].start, end, f"FOR {name}{' WHERE' if tokens[after].key == 'AND' else ''}"))
    else:
        after = where + 1
    for index in range(after, len(tokens) - 1):
        key = tokens[index].key
        if key in _NOT_IN_HISTORY:
            hint = "leave the condition out; SHOW … REFRESH HISTORY says in its column reason why a table was refreshed"
            raise NotTranslatedError(f"the history of refreshes has no column {key.lower()}", hint)
        if key not in _HISTORY_COLUMNS:
            continue
        splices.append(Splice(tokens[index].start, tokens[index].end, _HISTORY_COLUMNS[key]))
        value = tokens[min(index + 2, len(tokens) - 1)]
        if key in ("STATE", "REFRESH_MODE") and tokens[index + 1].key == "=" and value.type is TokenType.STRING:
            ours = _HISTORY_VALUES.get(string_value(value).upper())
            if ours is None:
                raise NotTranslatedError(
                    f"the history of refreshes has no {value.text}",
                    "leave the condition out: the history lists refreshes that wrote or failed",
                )
            splices.append(Splice(value.start, value.end, quote_string(ours)))
    text = apply(cursor.text, splices)
    return Translated((text,)) if text != cursor.text else None


def list_objects(text: str, context: Context) -> Translated | None:
    """Returns SHOW TABLES and the like as Spark has them; None: it is another statement. Raises NotTranslatedError for other lists."""
    cursor = Cursor(text)
    if cursor.take("SHOW", "CREATE", "TABLE"):
        name, _ = cursor.name("the name of a table")
        word = "STREAM" if context.is_stream(name) else "DYNAMIC TABLE" if lowered(name) in context.dynamic else ""
        if word and cursor.at_end():
            return Translated((f"SHOW CREATE {word} {sql_name(name)}",))
        raise NotTranslatedError("SHOW CREATE TABLE: Delta Lake has none", "DESCRIBE TABLE EXTENDED t")
    if not cursor.take("SHOW"):
        return None
    cursor.take("TERSE")
    if cursor.at("COLUMNS"):
        return Translated((cursor.text,))
    if cursor.at("PARTITIONS"):
        raise NotTranslatedError(
            "SHOW PARTITIONS: Spark does not list those of Delta tables", "SELECT DISTINCT day FROM t"
        )
    if not cursor.at_any(_LISTED):
        raise NotTranslatedError(
            f"SHOW {cursor.key() or cursor.found()}: Spark has no such list", "SHOW TABLES, or SHOW STREAMS"
        )
    pieces = ["SHOW", cursor.advance().key]
    like = ""
    notes: tuple[str, ...] = ()
    while not cursor.at_end():
        if cursor.take("LIKE") and cursor.at_string():
            like = quote_string(string_value(cursor.advance()).replace("%", "*"))
        elif cursor.at_any(("IN", "FROM")):
            cursor.advance()
            if cursor.key(1) and cursor.at_any(("SCHEMA", "DATABASE")):
                cursor.advance()
            name, _ = cursor.name("the name of a schema")
            notes = context.once(ONE_PART.format(name[0])) if len(name) > 1 else ()
            pieces += ["IN", sql_name(name[-1:])]
        else:
            raise NotTranslatedError(
                f"SHOW {pieces[1]} with {cursor.found()}: Spark has no such clause",
                "SHOW TABLES IN schema LIKE 'pattern'",
            )
    return Translated((" ".join([*pieces, *(["LIKE", like] if like else [])]),), notes)
