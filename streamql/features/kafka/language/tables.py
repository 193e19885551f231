"""External tables on Kafka topics: CREATE, DROP, SHOW, DESCRIBE and SHOW CREATE, in ClickZetta's spelling."""

from __future__ import annotations

from collections.abc import Iterator

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import key_at, outermost
from streamql.dialect.text.tokens import Span, Token, TokenType, name_part, string_value
from streamql.features.kafka.language.kafka import (
    KAFKA_PREFIX,
    column_fault,
    is_pattern,
    missing_option,
    option_name,
    option_value,
    type_text,
    unknown_option_hint,
)
from streamql.features.kafka.language.options import Option, check_secret, given_twice, invalid, read_list
from streamql.features.kafka.language.statements import (
    CreateExternalTable,
    DescribeExternalTable,
    DropExternalTable,
    ShowCreateExternalTable,
    ShowExternalTables,
)

CREATE_EXTERNAL_GRAMMAR = (
    "CREATE [OR REPLACE] EXTERNAL TABLE [IF NOT EXISTS] name [(column type, …)] USING KAFKA "
    "OPTIONS ('topics' = 'topic', 'group_id' = 'group' [, 'starting_offset' = 'earliest' | 'latest', …]) "
    "CONNECTION connection [COMMENT '…']"
)
DROP_EXTERNAL_GRAMMAR = "DROP EXTERNAL TABLE [IF EXISTS] name"
SHOW_EXTERNAL_GRAMMAR = "SHOW EXTERNAL TABLES [{IN | FROM} schema] [LIKE 'pattern']"
DESCRIBE_EXTERNAL_GRAMMAR = "DESCRIBE EXTERNAL TABLE name"
SHOW_CREATE_EXTERNAL_GRAMMAR = "SHOW CREATE EXTERNAL TABLE name"

_PROVIDER = "kafka"
_CLAUSES = ("OPTIONS", "CONNECTION", "COMMENT")
_NAME = "the name of the external table"
# Behind these is a query, whose USING is another one: SELECT TRANSFORM (a) USING 'kafka'.
_ENDS = frozenset(("AS", "SELECT", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "WITH", ";"))
# fmt: off
_SHOWN = frozenset((
    "CREATE", "OR", "REPLACE", "EXTERNAL", "TABLE", "IF", "NOT", "EXISTS", "USING", "KAFKA", "OPTIONS", "CONNECTION",
    "COMMENT", "STORED", "LOCATION", "PARTITIONED", "TBLPROPERTIES", "PROPERTIES", "CLUSTERED", "CLUSTER", "AS", "SELECT",
    "WITH", "DEFAULT", "GENERATED", "PRIMARY", "ON", "SET", "(", ")", "[", "]", "<", ">", ",", ":", "=", ".", ";",
))
# fmt: on


def is_kafka_table(text: str) -> bool:
    """Returns whether a text that begins with CREATE [OR REPLACE] EXTERNAL TABLE has USING KAFKA among its clauses."""
    cursor = Cursor(text)
    cursor.take("CREATE")
    cursor.take("OR", "REPLACE")
    cursor.take("EXTERNAL", "TABLE")
    cursor.take("IF", "NOT", "EXISTS")
    return uses_kafka(cursor.tokens, cursor.index)


def uses_kafka(tokens: list[Token], name: int) -> bool:
    """Returns whether USING KAFKA is among the clauses of a CREATE TABLE whose table's name begins at the index `name`."""
    return any(tokens[i].key == "USING" and _is_provider(tokens, i + 1) for i in clauses(tokens, name))


def clauses(tokens: list[Token], name: int) -> Iterator[int]:
    """Yields the indices from a created table's name on that are outside brackets and before a query."""
    for index in outermost(tokens, name):
        is_name = index == name or "." in (key_at(tokens, index - 1), key_at(tokens, index + 1))
        if tokens[index].key in _ENDS and not is_name:
            return
        yield index


def _is_provider(tokens: list[Token], index: int) -> bool:
    token = tokens[index] if index < len(tokens) else None
    return token is not None and _unquoted(token).lower() == _PROVIDER and key_at(tokens, index + 1) != "."


def _unquoted(token: Token) -> str:
    if token.type in (TokenType.STRING, TokenType.DOUBLE_QUOTED):
        return string_value(token)
    return name_part(token) or ""


def parse_create_external(cursor: Cursor) -> CreateExternalTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY. No error quotes a
    value."""
    cursor.grammar = CREATE_EXTERNAL_GRAMMAR
    cursor.shown = _SHOWN
    cursor.expect("CREATE")
    or_replace = cursor.take("OR", "REPLACE")
    cursor.expect("EXTERNAL", "TABLE")
    if_not_exists = cursor.if_not_exists(or_replace, "table")
    name, name_span = cursor.name(_NAME)
    columns = _read_columns(cursor) if cursor.take("(") else ()
    if not cursor.at("USING") or not _is_provider(cursor.tokens, cursor.index + 1):
        raise cursor.expected("USING KAFKA", "write USING KAFKA behind the name and the columns, before OPTIONS")
    cursor.index += 2
    clauses = _Clauses(cursor)
    clauses.read()
    return CreateExternalTable(
        name,
        columns,
        clauses.options,
        clauses.connection,
        or_replace,
        if_not_exists,
        clauses.comment,
        name_span=name_span,
        connection_span=clauses.connection_span,
    )


def _read_columns(cursor: Cursor) -> tuple[tuple[str, str], ...]:
    """`name type [NOT NULL] [COMMENT '…'], …)`; the opening parenthesis is read. Raises INVALID_PROPERTY for a column of no Kafka table."""
    columns: list[tuple[str, str]] = []
    starts: list[Token] = []
    while True:
        starts.append(cursor.token)
        name, _ = cursor.single_name("the name of a column")
        columns.append((name, _read_type(cursor)))
        if cursor.take("NOT"):
            cursor.expect("NULL")
        if cursor.take("COMMENT"):
            cursor.string("the comment")
        if cursor.take(")"):
            break
        cursor.expect(",", hint="columns are separated by commas, the list ends with )")
    found = column_fault(columns)
    if found is not None:
        index, (message, hint) = found
        raise invalid(cursor, message, hint, starts[index])
    return tuple(columns)


def _read_type(cursor: Cursor) -> str:
    first, depth = cursor.index, 0
    while not cursor.at_end() and (depth or not cursor.at_any((",", ")", "NOT", "COMMENT", ";"))):
        depth = max(0, depth + {"<": 1, "(": 1, ">": -1, ")": -1}.get(cursor.key(), 0))
        cursor.advance()
    if cursor.index == first:
        raise cursor.expected("the type of the column")
    return type_text(cursor.tokens[first : cursor.index])


class _Clauses:
    """OPTIONS, CONNECTION and COMMENT: each once, in any order."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.options: dict[str, str] = {}
        self.connection = ""
        self.connection_span: Span | None = None
        self.comment: str | None = None

    def read(self) -> None:
        """Reads all up to the end of the statement. Raises if the topic or the connection is missing."""
        cursor = self.cursor
        seen: dict[str, Token] = {}
        while not cursor.at_end() and not cursor.at(";"):
            token = cursor.token
            if not cursor.at_any(_CLAUSES):
                raise cursor.expected_one_of(_CLAUSES)
            if token.key in seen:
                raise cursor.error(f"{token.key} is given twice", token=token)
            seen[token.key] = cursor.advance()
            self._clause(token.key)
        missing = missing_option(self.options)
        if missing is not None:
            raise invalid(cursor, *missing, seen.get("OPTIONS", cursor.token))
        if "CONNECTION" not in seen:
            raise cursor.expected(
                "CONNECTION", "write CONNECTION c, the name of a storage connection, after OPTIONS (…)"
            )

    def _clause(self, key: str) -> None:
        cursor = self.cursor
        if key == "OPTIONS":
            cursor.expect("(", hint="write OPTIONS ('topics' = 'name', …)")
            for option in read_list(cursor):
                self._set(option)
            return
        cursor.take("=")
        if key == "COMMENT":
            self.comment = cursor.string("the comment")
        else:
            self.connection, self.connection_span = cursor.single_name("the name of a storage connection")

    def _set(self, option: Option) -> None:
        cursor = self.cursor
        prefix = KAFKA_PREFIX if option.key.lower().startswith(KAFKA_PREFIX) else ""
        check_secret(cursor, option.key[len(prefix) :], option, prefix)
        if is_pattern(option.key):
            hint = "write 'topics' = 'name', and make a table for each topic"
            raise cursor.refused(option.key, "a table has one topic", hint, option.start)
        name = option_name(option.key)
        if name is None:
            message = f"a Kafka table has no option {option.key}"
            raise invalid(cursor, message, unknown_option_hint(option.key), option.start)
        if name in self.options:
            raise given_twice(cursor, option, name)
        value = option_value(name, option.value)
        if not isinstance(value, str):
            raise invalid(cursor, *value, option.value_start)
        self.options[name] = value


def parse_drop_external(cursor: Cursor) -> DropExternalTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = DROP_EXTERNAL_GRAMMAR
    cursor.expect("DROP", "EXTERNAL", "TABLE")
    if_exists = cursor.take("IF", "EXISTS")
    name, name_span = cursor.name(_NAME)
    return DropExternalTable(name, if_exists, name_span)


def parse_show_external(cursor: Cursor) -> ShowExternalTables:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE."""
    cursor.grammar = SHOW_EXTERNAL_GRAMMAR
    cursor.expect("SHOW", "EXTERNAL", "TABLES")
    schema, like = None, None
    while not cursor.at_end() and not cursor.at(";"):
        token = cursor.token
        if (token.key == "LIKE" and like is not None) or (token.key in ("IN", "FROM") and schema is not None):
            raise cursor.error(f"{token.key} is given twice", token=token)
        if cursor.at_any(("IN", "FROM")):
            schema = cursor.schema("external tables", ("LIKE",))
        elif cursor.take("LIKE"):
            like = cursor.string("the pattern")
        else:
            raise cursor.expected("IN or LIKE")
    return ShowExternalTables(schema, like)


def parse_describe_external(cursor: Cursor) -> DescribeExternalTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = DESCRIBE_EXTERNAL_GRAMMAR
    cursor.advance()
    cursor.expect("EXTERNAL", "TABLE")
    return DescribeExternalTable(*cursor.name(_NAME))


def parse_show_create_external(cursor: Cursor) -> ShowCreateExternalTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = SHOW_CREATE_EXTERNAL_GRAMMAR
    cursor.expect("SHOW", "CREATE", "EXTERNAL", "TABLE")
    return ShowCreateExternalTable(*cursor.name(_NAME))
