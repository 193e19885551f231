"""CREATE STREAM, in ClickZetta's, Snowflake's and Databend's spellings; the clauses come in any order."""

from __future__ import annotations

from streamql.dialect.grammar import grammars, stream_clause
from streamql.dialect.points import point_in_parentheses, version_number
from streamql.dialect.statements import IDENTITIES, CreateStream, PointInTime, StreamAction
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import Span, Token, TokenType, name_part, span, string_value
from streamql.errors import StreamqlError
from streamql.misspelt import suggestion
from streamql.model import StreamMode

CREATE_GRAMMAR = (
    "CREATE [OR REPLACE] [TABLE] STREAM [IF NOT EXISTS] name ON TABLE source "
    "[TIMESTAMP AS OF time | VERSION AS OF n | {AT | BEFORE} (…)] "
    "[WITH PROPERTIES ('TABLE_STREAM_MODE' = 'STANDARD' | 'APPEND_ONLY', …)] [IDENTITY = {ROW_ID | KEY}] [COMMENT '…']"
)

_NAMES = (TokenType.WORD, TokenType.BACKQUOTED, TokenType.DOUBLE_QUOTED)
_REFUSED_SOURCES = ("STAGE", "DIRECTORY", "EVENT", "ICEBERG", "HYBRID")

_REFUSED_CLAUSES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("COPY", "GRANTS"), "streams have no grants of their own", "leave COPY GRANTS out"),
    (("WITH", "TAG"), "streams have no tags", "leave the clause out, or put the text into COMMENT = '…'"),
    (("TAG", "("), "streams have no tags", "leave the clause out, or put the text into COMMENT = '…'"),
    (("CLONE",), "streams are not cloned", "write CREATE STREAM … ON TABLE … AT (STREAM => 'other') to copy an offset"),
    (("SNAPSHOT",), "Delta tables have versions, not snapshots", "write AT (VERSION => n) or AT (TIMESTAMP => …)"),
    (("STATEMENT",), "Delta's log does not know statement ids", "write AT (VERSION => n) or AT (TIMESTAMP => …)"),
)
_CLAUSE_SETTINGS = ("APPEND_ONLY", "INSERT_ONLY", "SHOW_INITIAL_ROWS", "IDENTITY", "COMMENT")
_LIST_KEYS = ("TABLE_STREAM_MODE", "SHOW_INITIAL_ROWS", "IDENTITY", "COMMENT")
_LIST_STARTS = (("WITH", "PROPERTIES"), ("WITH", "TBLPROPERTIES"), ("WITH",), ("PROPERTIES",), ("TBLPROPERTIES",))
_WORDS = ("TIMESTAMP", "VERSION", "AT", "BEFORE", "WITH", "PROPERTIES", *_CLAUSE_SETTINGS)


def parse_create(cursor: Cursor) -> CreateStream:
    """Returns the whole of CREATE STREAM, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY."""
    cursor.grammar = CREATE_GRAMMAR
    cursor.expect("CREATE")
    or_replace = cursor.take("OR", "REPLACE")
    cursor.take("TABLE")
    cursor.expect("STREAM")
    if_not_exists = cursor.if_not_exists(or_replace, "stream")
    name, name_span = cursor.name("the name of the stream")
    clauses = _Clauses(cursor)
    clauses.refuse()
    if not cursor.take("ON"):
        raise cursor.expected("ON TABLE and the source's name")
    source_type = _source_type(cursor)
    source, source_span = cursor.name(f"the name of the {source_type.lower()}")
    clauses.read()
    return CreateStream(
        name=name,
        source=source,
        source_type=source_type,
        mode=clauses.mode,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
        point=clauses.point,
        show_initial_rows=bool(clauses.show_initial_rows),
        comment=clauses.comment,
        identity=clauses.identity,
        clauses=tuple(clauses.of_features),
        name_span=name_span,
        source_span=source_span,
    )


def _source_type(cursor: Cursor) -> str:
    sources = [keywords for grammar in grammars() for keywords in grammar.sources]
    for keywords in sources:
        if cursor.take(*keywords):
            return " ".join(keywords)
    *others, last = (" ".join(keywords) for keywords in sources)
    known = f"{', '.join(others)} or {last}"
    if cursor.at_any(_REFUSED_SOURCES):
        raise cursor.refused(f"a stream ON {cursor.key()}", f"the source is a {known}")
    if name_part(cursor.token) is None and not cursor.at_string():
        raise cursor.expected(known, "write ON TABLE and the source's name")
    is_named = name_part(cursor.token) is not None and cursor.tokens[cursor.index + 1].type in _NAMES
    hint = suggestion(cursor.key(), (keywords[0] for keywords in sources)) if is_named else ""
    raise cursor.expected(known, hint or f"write ON TABLE {cursor.token.text}")


def read_identity(cursor: Cursor, written: str = "IDENTITY = KEY") -> str:
    """Returns one of `IDENTITIES`. `written`: how the clause is written, for errors. Raises INVALID_PROPERTY for another word."""
    hint = f"write {written}, which is the table's PRIMARY KEY … RELY, or ROW_ID in the place of KEY"
    return cursor.choice("IDENTITY", IDENTITIES, hint)


class _Clauses:
    """What the clauses after the source say. Each setting may come in one spelling once, and spellings must agree."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.mode: StreamMode | None = None
        self.show_initial_rows: bool | None = None
        self.identity: str | None = None
        self.comment: str | None = None
        self.point: PointInTime | None = None
        self.of_features: list[StreamAction] = []
        self._mode_key = ""
        self._spelled: set[str] = set()

    def read(self) -> None:
        """Reads all clauses up to the end of the statement."""
        cursor = self.cursor
        while not cursor.at_end() and not cursor.at(";"):
            self.refuse()
            if (parse := stream_clause(cursor.key())) is not None:
                self.of_features.append(parse(cursor))
            elif cursor.at_any(("AT", "BEFORE")):
                start = cursor.advance()
                self._set_point(start, point_in_parentheses(cursor, start.key == "BEFORE", start))
            elif cursor.at("TIMESTAMP") or cursor.at("VERSION"):
                self._as_of()
            elif cursor.at_any(_CLAUSE_SETTINGS):
                self._setting(cursor.token, cursor.advance().key)
            elif any(cursor.take(*keywords, "(") for keywords in _LIST_STARTS):
                self._list()
            else:
                raise self._unknown()

    def refuse(self) -> None:
        """Raises if a clause stands here that streamql does not honour."""
        for keywords, why, hint in _REFUSED_CLAUSES:
            if self.cursor.at(*keywords):
                raise self.cursor.refused(" ".join(w for w in keywords if w != "("), why, hint)

    def _unknown(self) -> StreamqlError:
        if any(self.cursor.take(*keywords) for keywords in _LIST_STARTS):
            return self.cursor.expected("(", "write WITH PROPERTIES ('TABLE_STREAM_MODE' = 'APPEND_ONLY')")
        return self.cursor.expected("a clause of CREATE STREAM", suggestion(self.cursor.key(), _WORDS))

    def _as_of(self) -> None:
        start = self.cursor.advance()
        self.cursor.expect("AS", "OF", hint=f"write {start.key} AS OF value")
        if start.key == "VERSION":
            version = version_number(self.cursor)
            self._set_point(start, PointInTime("VERSION", version=version, span=self._span(start)))
            return
        expression = self.cursor.raw("a timestamp", self._at_clause)
        self._set_point(start, PointInTime("TIMESTAMP", expression=expression, span=self._span(start)))

    def _at_clause(self) -> bool:
        """Returns whether a clause starts here: what ends a TIMESTAMP AS OF expression."""
        cursor, key, following = self.cursor, self.cursor.key(), self.cursor.key(1)
        if key in ("TIMESTAMP", "VERSION"):
            return cursor.at(key, "AS", "OF")
        if key in ("AT", "BEFORE", "PROPERTIES", "TBLPROPERTIES", "TAG"):
            return following == "("
        is_ours = key in ("WITH", "CLONE") or key in _CLAUSE_SETTINGS or stream_clause(key) is not None
        return is_ours or cursor.at("COPY", "GRANTS")

    def _span(self, start: Token) -> Span:
        return span(self.cursor.text, start.start, self.cursor.tokens[self.cursor.index - 1].end)

    def _list(self) -> None:
        """`key = value, …)`; the opening parenthesis is read."""
        while True:
            token = self.cursor.token
            key = (string_value(token) if self.cursor.at_string() else token.text).strip("`").upper()
            if key not in _LIST_KEYS:
                raise self._unknown_property(key, token)
            self.cursor.advance()
            self._setting(token, key)
            if self.cursor.take(")"):
                return
            self.cursor.expect(",", hint="properties are separated by commas, the list ends with )")

    def _unknown_property(self, key: str, token: Token) -> StreamqlError:
        if not key or token.key in (")", ",", "="):
            return self.cursor.expected("a property")
        if key in ("APPEND_ONLY", "INSERT_ONLY"):
            hint = "write TABLE_STREAM_MODE = APPEND_ONLY"
        else:
            hint = suggestion(key, _LIST_KEYS) or f"the properties are {', '.join(_LIST_KEYS)}"
        return self.cursor.error(f"unknown property {token.text}", hint=hint, token=token, code="INVALID_PROPERTY")

    def _setting(self, token: Token, key: str) -> None:
        """`[=] value` after the name of a setting, which is read."""
        if key in self._spelled:
            raise self.cursor.error(f"{key} is given twice", token=token)
        self._spelled.add(key)
        self.cursor.take("=")
        if key == "COMMENT":
            self.comment = self.cursor.string("the comment")
        elif key == "SHOW_INITIAL_ROWS":
            self.show_initial_rows = self.cursor.boolean(key)
        elif key == "IDENTITY":
            self.identity = read_identity(self.cursor)
        else:
            self._set_mode(token, key, self._mode_word() if key == "TABLE_STREAM_MODE" else self._mode_flag(key))

    def _mode_flag(self, key: str) -> StreamMode:
        return StreamMode.APPEND_ONLY if self.cursor.boolean(key) else StreamMode.STANDARD

    def _mode_word(self) -> StreamMode:
        hint = "write TABLE_STREAM_MODE = STANDARD or = APPEND_ONLY"
        return StreamMode[self.cursor.choice("TABLE_STREAM_MODE", StreamMode.__members__, hint)]

    def _set_mode(self, token: Token, key: str, mode: StreamMode) -> None:
        if self.mode not in (None, mode):
            hint = "leave one of them out; TABLE_STREAM_MODE = STANDARD | APPEND_ONLY says it all"
            message = f"{key} asks for the other mode than {self._mode_key}"
            raise self.cursor.error(message, hint=hint, token=token, code="INVALID_PROPERTY")
        self.mode, self._mode_key = mode, key

    def _set_point(self, start: Token, point: PointInTime) -> None:
        if self.point is not None:
            message = f"a stream starts at one point in time, {start.key} names a second one"
            raise self.cursor.error(message, hint="leave one of them out", token=start)
        self.point = point
