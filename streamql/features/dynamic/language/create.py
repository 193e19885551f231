"""CREATE DYNAMIC TABLE and CREATE MATERIALIZED VIEW; the clauses come in any order before AS."""

from __future__ import annotations

from collections.abc import Callable

from streamql.dialect.properties import read_key, read_value
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import Shape, StatementType, shape
from streamql.dialect.text.tokens import Span, Token, TokenType, span
from streamql.errors import StreamqlError
from streamql.features.dynamic.language.refused import CREATED, refuse, refuse_head
from streamql.features.dynamic.language.schedule import read_compute_name, read_refresh, read_target_lag
from streamql.features.dynamic.language.statements import CreateDynamicTable, Schedule
from streamql.features.dynamic.language.words import name_of, take_type, type_words
from streamql.misspelt import suggestion

CREATE_DYNAMIC_GRAMMAR = (
    "CREATE [OR REPLACE] {DYNAMIC TABLE | MATERIALIZED VIEW} [IF NOT EXISTS] name [(column [COMMENT '…'], …)] "
    "[PARTITIONED BY (column, …) | CLUSTER BY (column, …)] [COMMENT '…'] [PROPERTIES ('key' = 'value', …)] "
    "[REFRESH [START WITH time] INTERVAL n {SECOND | MINUTE | HOUR | DAY} | TARGET_LAG = {'n unit' | DOWNSTREAM}] "
    "[REFRESH_MODE = {AUTO | FULL | INCREMENTAL}] [INITIALIZE = {ON_CREATE | ON_SCHEDULE} | BUILD {IMMEDIATE | DEFERRED}] "
    "AS query"
)

REFRESH_MODES = ("AUTO", "FULL", "INCREMENTAL")
_INITIALIZED = {"ON_CREATE": True, "ON_SCHEDULE": False}
_BUILT = {"IMMEDIATE": True, "DEFERRED": False}
_NO_TYPES = frozenset(
    ("NOT", "NULL", "PRIMARY", "UNIQUE", "WITH", "MASKING", "PROJECTION", "TAG", "CONSTRAINT", "DEFAULT", "GENERATED")
)
_QUERY = "a query: SELECT, WITH, VALUES, FROM or TABLE"
_GROUPS = {"TBLPROPERTIES": "PROPERTIES", "CLUSTERED": "CLUSTER", "TARGET_LAG": "REFRESH", "BUILD": "INITIALIZE"}
"""Clauses that set what another one sets too."""
_ALTERNATIVES = ("REFRESH", "INITIALIZE")
"""Groups whose clauses differ in more than the spelling."""


def parse_create_dynamic(cursor: Cursor) -> CreateDynamicTable:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY."""
    cursor.grammar = CREATE_DYNAMIC_GRAMMAR
    cursor.expect("CREATE")
    refuse_head(cursor)
    or_replace = cursor.take("OR", "REPLACE")
    refuse_head(cursor)
    is_view = take_type(cursor)
    if_not_exists = cursor.if_not_exists(or_replace, type_words(is_view).lower())
    name, name_span = cursor.name(name_of(is_view))
    columns = _columns(cursor) if cursor.take("(") else ()
    clauses = _Clauses(cursor, is_view)
    clauses.read()
    query, query_span = _query(cursor)
    return CreateDynamicTable(
        name=name,
        query=query,
        is_materialized_view=is_view,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
        columns=columns,
        partitioned_by=clauses.partitioned_by,
        cluster_by=clauses.cluster_by,
        comment=clauses.comment,
        properties=clauses.properties,
        schedule=clauses.schedule,
        refresh_mode=clauses.refresh_mode,
        is_initialized=clauses.is_initialized,
        unused=tuple(clauses.unused),
        name_span=name_span,
        query_span=query_span,
    )


def read_refresh_mode(cursor: Cursor) -> str:
    """`[=] mode`; REFRESH_MODE is read. Raises INVALID_PROPERTY."""
    cursor.take("=")
    return cursor.choice("REFRESH_MODE", REFRESH_MODES, f"write REFRESH_MODE = {REFRESH_MODES[0]}")


def _query(cursor: Cursor) -> tuple[str, Span]:
    """Returns the text after AS, up to the end of the statement, and where it lies."""
    start = cursor.token
    found = shape(cursor.tokens[cursor.index :])
    if found.type is not StatementType.QUERY or found.is_explained:
        raise _not_a_query(cursor, found)
    text = cursor.raw("the query", lambda: False)
    return text, span(cursor.text, start.start, start.start + len(text))


def _not_a_query(cursor: Cursor, found: Shape) -> StreamqlError:
    if found.is_explained:
        return cursor.expected(_QUERY, "write AS SELECT …")
    cursor.index += found.verb
    if found.type is not StatementType.OTHER:
        return cursor.error(f"AS takes a query, and this is {found.type.value}", hint="write AS SELECT …")
    if cursor.at("WITH"):
        return cursor.error("no query follows WITH", hint="write AS WITH name AS (…) SELECT …")
    return cursor.expected(_QUERY, "write AS SELECT …")


def _columns(cursor: Cursor) -> tuple[tuple[str, str | None], ...]:
    """`name [COMMENT '…'], …)`; the opening parenthesis is read."""
    columns: list[tuple[str, str | None]] = []
    seen: set[str] = set()
    while True:
        if cursor.at("PRIMARY", "KEY") or cursor.at("CONSTRAINT"):
            raise _not_of_columns(cursor)
        start = cursor.token
        name, _ = cursor.single_name("the name of a column")
        if name.lower() in seen:
            raise cursor.error(f"the column {name} is given twice", hint="leave one of them out", token=start)
        if cursor.token.type is TokenType.WORD and not cursor.at_any(("COMMENT", "AS")):
            raise _not_of_columns(cursor)
        seen.add(name.lower())
        columns.append((name, cursor.string("the comment") if cursor.take("COMMENT") else None))
        if cursor.take(")"):
            return tuple(columns)
        cursor.expect(",", hint="columns are separated by commas, the list ends with )")


def _not_of_columns(cursor: Cursor) -> StreamqlError:
    if cursor.key() in _NO_TYPES:
        return cursor.refused(cursor.key(), "a column has a name and a comment", "leave it out")
    hint = "leave the type out, and write CAST(… AS type) in the query"
    return cursor.refused(f"the type {cursor.token.text}", "the query gives the columns their types", hint)


class _Clauses:
    """What the clauses between the name and AS say. Each comes once."""

    def __init__(self, cursor: Cursor, is_view: bool) -> None:
        self.cursor = cursor
        self.partitioned_by: tuple[str, ...] = ()
        self.cluster_by: tuple[str, ...] = ()
        self.comment: str | None = None
        self.properties: tuple[tuple[str, str], ...] = ()
        self.schedule: Schedule | None = None
        self.refresh_mode: str | None = None
        self.is_initialized = True
        self.unused: list[str] = []
        self._statement = f"CREATE {type_words(is_view)}"
        self._seen: dict[str, str] = {}
        self._readers: dict[str, Callable[[], None]] = {
            "PARTITIONED": self._partitioned,
            "CLUSTER": self._clustered,
            "CLUSTERED": self._clustered,
            "COMMENT": self._comment,
            "PROPERTIES": self._properties,
            "TBLPROPERTIES": self._properties,
            "REFRESH": self._refresh,
            "TARGET_LAG": self._target_lag,
            "REFRESH_MODE": self._refresh_mode,
            "INITIALIZE": self._initialize,
            "BUILD": self._build,
            "WAREHOUSE": self._warehouse,
            "DISABLE": self._disable,
        }

    def read(self) -> None:
        """Reads all clauses up to AS, and AS."""
        cursor = self.cursor
        while not cursor.take("AS"):
            refuse(cursor, CREATED)
            if not cursor.at_any(self._readers):
                raise self._unknown()
            token = cursor.advance()
            self._check_once(token)
            self._readers[token.key]()

    def _unknown(self) -> StreamqlError:
        hint = suggestion(self.cursor.key(), (*self._readers, "AS"))
        hint = hint or ("" if self.cursor.key() else "write AS SELECT …")
        return self.cursor.expected(f"a clause of {self._statement}, or AS and the query", hint)

    def _check_once(self, token: Token) -> None:
        group, key = _GROUPS.get(token.key, token.key), token.key
        before = self._seen.setdefault(group, "")
        if before and (before == key or group not in _ALTERNATIVES):
            raise self.cursor.error(f"{key} is given twice", token=token)
        if before:
            message = f"{before} and {key} exclude each other"
            raise self.cursor.error(message, hint="leave one of them out", token=token, code="INVALID_PROPERTY")
        self._seen[group] = key
        if {"PARTITIONED", "CLUSTER"} <= self._seen.keys():
            why = "a Delta table has one of PARTITIONED BY and CLUSTER BY"
            raise self.cursor.refused(f"{key} BY as a second clause", why, "leave one of them out", token)

    def _partitioned(self) -> None:
        self.partitioned_by = self._names("PARTITIONED BY")

    def _clustered(self) -> None:
        cursor = self.cursor
        self.cluster_by = self._names("CLUSTER BY")
        if cursor.at("INTO") or cursor.at("SORTED", "BY"):
            why = "Delta clusters rows by columns, without buckets"
            raise cursor.refused(cursor.key(), why, f"leave {cursor.key()} … out")

    def _names(self, clause: str) -> tuple[str, ...]:
        """`BY (column, …)`."""
        cursor = self.cursor
        cursor.expect("BY", "(", hint=f"write {clause} (column, …)")
        names: dict[str, str] = {}
        while True:
            start = cursor.token
            name, _ = cursor.single_name("the name of a column")
            if cursor.at("("):
                hint = f"make the expression a column of the query, and name that column in {clause}"
                raise cursor.refused(f"an expression in {clause}", "Delta takes columns there", hint, start)
            if name.lower() in names:
                raise cursor.error(f"{start.text} is given twice", hint="leave one of them out", token=start)
            names[name.lower()] = name
            if cursor.take(")"):
                return tuple(names.values())
            cursor.expect(",", hint="columns are separated by commas, the list ends with )")

    def _comment(self) -> None:
        self.cursor.take("=")
        self.comment = self.cursor.string("the comment")

    def _properties(self) -> None:
        cursor = self.cursor
        cursor.expect("(", hint="write PROPERTIES ('key' = 'value', …)")
        properties: dict[str, str] = {}
        while True:
            token = cursor.token
            key = read_key(cursor)
            if key in properties:
                raise cursor.error(f"property {key} is given twice", token=token, code="INVALID_PROPERTY")
            cursor.take("=")
            properties[key] = read_value(cursor, key)
            if cursor.take(")"):
                break
            cursor.expect(",", hint="properties are separated by commas, the list ends with )")
        self.properties = tuple(properties.items())

    def _refresh(self) -> None:
        self.schedule, has_cluster = read_refresh(self.cursor, (*self._readers, "AS"))
        self.unused += ["VCLUSTER"] if has_cluster else []

    def _target_lag(self) -> None:
        self.schedule = read_target_lag(self.cursor)

    def _refresh_mode(self) -> None:
        self.refresh_mode = read_refresh_mode(self.cursor)

    def _initialize(self) -> None:
        self.cursor.take("=")
        self.is_initialized = _INITIALIZED[
            self.cursor.choice("INITIALIZE", _INITIALIZED, "write INITIALIZE = ON_CREATE")
        ]

    def _build(self) -> None:
        self.is_initialized = _BUILT[self.cursor.choice("BUILD", _BUILT, "write BUILD IMMEDIATE")]

    def _warehouse(self) -> None:
        read_compute_name(self.cursor, "the warehouse")
        self.unused.append("WAREHOUSE")

    def _disable(self) -> None:
        self.cursor.expect("QUERY", "REWRITE", hint="write DISABLE QUERY REWRITE")
        self.unused.append("DISABLE QUERY REWRITE")
