"""AUTO CDC INTO, in the words of Spark's and Databricks' pipelines; the clauses come in any order."""

from __future__ import annotations

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import EXPLAIN_OPTIONS
from streamql.dialect.text.tokens import Token, TokenType, name_part, string_value
from streamql.errors import StreamqlError
from streamql.features.autocdc.language.statement import AutoCdc, ExplainAutoCdc, Selection
from streamql.misspelt import suggestion

AUTO_CDC_GRAMMAR = (
    "AUTO CDC [WITH SCHEMA EVOLUTION] INTO target FROM {STREAM stream | SNAPSHOT table | [SNAPSHOT] (query)} KEYS (column, …) "
    "[IGNORE NULL UPDATES [ON {(column, …) | * EXCEPT (column, …)}]] [APPLY AS DELETE WHEN condition] "
    "[APPLY AS TRUNCATE WHEN condition] [SEQUENCE BY expression] [COLUMNS {(column, …) | * EXCEPT (column, …)}] "
    "[STORED AS SCD TYPE {1 | 2}] [TRACK HISTORY ON {(column, …) | * EXCEPT (column, …)}] [WITH (CREATE_TARGET = TRUE)]"
)

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")
_STARTS = (
    ("IGNORE", "NULL"), ("APPLY", "AS", "DELETE"), ("APPLY", "AS", "TRUNCATE"), ("SEQUENCE", "BY"), ("COLUMNS", "("),
    ("COLUMNS", "*"), ("STORED", "AS"), ("TRACK", "HISTORY"), ("WITH", "("), ("KEYS", "("),
)  # fmt: skip
"""The words with which clauses begin."""
_BEHIND_SOURCE = tuple(
    words for words in _STARTS if words[0] != "WITH"
)  # a stream has options: s WITH (MAX_BATCH_SIZE = 5)
_FIRST_WORDS = tuple(dict.fromkeys(" ".join(w for w in words if w.isalpha()) for words in _STARTS))


def parse_explain(cursor: Cursor) -> ExplainAutoCdc:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR."""
    cursor.grammar = "EXPLAIN AUTO CDC INTO target FROM …"
    cursor.expect("EXPLAIN")
    if cursor.at_any(EXPLAIN_OPTIONS):
        raise cursor.refused(
            f"EXPLAIN {cursor.key()} AUTO CDC", "EXPLAIN AUTO CDC has one form", "write EXPLAIN AUTO CDC"
        )
    return ExplainAutoCdc(parse_auto_cdc(cursor))


def parse_auto_cdc(cursor: Cursor) -> AutoCdc:
    """Returns the whole statement, from its first token. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY."""
    cursor.grammar = AUTO_CDC_GRAMMAR
    cursor.expect("AUTO", "CDC")
    evolves = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    target, _ = cursor.name("the name of the target")
    cursor.expect("FROM")
    source, is_stream, is_snapshot = _source(cursor)
    clauses = _Clauses(cursor)
    clauses.read()
    return AutoCdc(
        target, source, clauses.keys, is_stream, is_snapshot, clauses.ignored_nulls, clauses.delete_when,
        clauses.truncate_when, clauses.sequence_by, clauses.columns, clauses.history, clauses.tracked, evolves,
        clauses.creates,
    )  # fmt: skip


def _source(cursor: Cursor) -> tuple[str, bool, bool]:
    """Returns the relation behind FROM, and whether STREAM or SNAPSHOT stands before it."""
    is_stream = cursor.at("STREAM") and cursor.key(1) not in (".", "KEYS")
    is_snapshot = cursor.at("SNAPSHOT") and cursor.key(1) not in (".", "KEYS")
    if is_stream or is_snapshot:
        cursor.advance()
    elif _is_word(cursor, 0) and _is_word(cursor, 1) and not any(cursor.key(1) == w[0] for w in _STARTS):
        hint = suggestion(cursor.key(), ("STREAM", "SNAPSHOT"))  # a relation has one name
        if hint:
            raise cursor.expected("STREAM, SNAPSHOT or a query in parentheses", hint)
    is_query = cursor.at_any(_QUERIES)
    first = cursor.index
    text = cursor.raw(
        "the source: a stream, or a query in parentheses", lambda: any(cursor.at(*w) for w in _BEHIND_SOURCE)
    )
    if is_stream and cursor.closers.get(first) == cursor.index - 1:  # STREAM(s), as Databricks has it
        text = text[1:-1].strip()
    return f"({text})" if is_query else text, is_stream, is_snapshot


def _is_word(cursor: Cursor, ahead: int) -> bool:
    return cursor.tokens[min(cursor.index + ahead, len(cursor.tokens) - 1)].type is TokenType.WORD


class _Clauses:
    """What stands behind the source, clause by clause."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.keys: tuple[str, ...] = ()
        self.ignored_nulls: Selection | None = None
        self.delete_when: str | None = None
        self.truncate_when: str | None = None
        self.sequence_by: str | None = None
        self.columns: Selection | None = None
        self.history = 1
        self.tracked: Selection | None = None
        self.creates = False
        self._tracking: Token | None = None

    def read(self) -> None:
        """Reads all clauses. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY."""
        cursor, seen = self.cursor, set[str]()
        while not cursor.at_end() and not cursor.at(";"):
            words = next((s for s in _STARTS if cursor.at(*s)), None)
            if words is None:
                hint = suggestion(f"{cursor.key()} {cursor.key(1)}", _FIRST_WORDS) or suggestion(
                    cursor.key(), _FIRST_WORDS
                )
                raise cursor.expected("a clause of AUTO CDC INTO", hint)
            name, start = " ".join(w for w in words if w.isalpha()), cursor.token
            if name in seen:
                raise cursor.error(f"{name} is given twice", token=start)
            seen.add(name)
            self._read_clause(name)
        if not self.keys:
            raise cursor.expected("KEYS (column, …)")
        if self._tracking is not None and self.history == 1:
            hint = "write STORED AS SCD TYPE 2, or leave TRACK HISTORY ON out"
            raise cursor.error("TRACK HISTORY ON needs STORED AS SCD TYPE 2", hint=hint, token=self._tracking)

    def _read_clause(self, name: str) -> None:
        cursor = self.cursor
        if name == "KEYS":
            cursor.advance()
            self.keys = self._names("a key column")
        elif name == "IGNORE NULL":
            cursor.expect("IGNORE", "NULL", "UPDATES")
            self.ignored_nulls = self._selection("IGNORE NULL UPDATES ON") if cursor.take("ON") else Selection((), True)
        elif name == "APPLY AS DELETE":
            self.delete_when = self._expression("APPLY", "AS", "DELETE", "WHEN")
        elif name == "APPLY AS TRUNCATE":
            self.truncate_when = self._expression("APPLY", "AS", "TRUNCATE", "WHEN")
        elif name == "SEQUENCE BY":
            self.sequence_by = self._expression("SEQUENCE", "BY")
        elif name == "COLUMNS":
            cursor.advance()
            self.columns = self._selection("COLUMNS")
        elif name == "STORED AS":
            cursor.expect("STORED", "AS", "SCD", "TYPE")
            self.history = self._type()
        elif name == "TRACK HISTORY":
            self._tracking = cursor.expect("TRACK", "HISTORY", "ON")
            self.tracked = self._selection("TRACK HISTORY ON")
        else:
            self._options()

    def _expression(self, *words: str) -> str:
        self.cursor.expect(*words)
        return self.cursor.raw(f"an expression behind {' '.join(words)}", self._at_clause)

    def _at_clause(self) -> bool:
        return any(self.cursor.at(*words) for words in _STARTS)

    def _type(self) -> int:
        token, number = self.cursor.token, self.cursor.integer()
        if number not in (1, 2):
            hint = "write STORED AS SCD TYPE 1 for a copy, or STORED AS SCD TYPE 2 for a history"
            raise self.cursor.error(
                f"SCD TYPE takes 1 or 2, found {token.text or token.type.value}", hint=hint, token=token
            )
        return number

    def _selection(self, clause: str) -> Selection:
        """Reads `(a, b)`, `a, b`, `*`, or `* EXCEPT (a, b)`."""
        cursor = self.cursor
        if not cursor.take("*"):
            return Selection(self._names(f"a column of {clause}"))
        return Selection(self._names(f"a column of {clause} * EXCEPT") if cursor.take("EXCEPT") else (), True)

    def _names(self, what: str) -> tuple[str, ...]:
        cursor = self.cursor
        in_parentheses, names = cursor.take("("), list[str]()
        while True:
            name = self._name(what)
            if name.lower() in (n.lower() for n in names):
                raise cursor.error(f"the column {name} is named twice", token=cursor.tokens[cursor.index - 1])
            names.append(name)
            if not cursor.take(","):
                break
        if in_parentheses:
            cursor.expect(")", hint="columns are separated by commas, the list ends with )")
        return tuple(names)

    def _name(self, what: str) -> str:
        """Reads the name of a column, which may be any word: `at`, `set`."""
        token = self.cursor.token
        name = string_value(token) if token.type is TokenType.DOUBLE_QUOTED else name_part(token)
        if not name:
            raise self.cursor.expected(what)
        self.cursor.advance()
        if self.cursor.at("."):
            raise self.cursor.error(f"{what} has one part", token=token)
        return name

    def _options(self) -> None:
        """Reads `WITH (CREATE_TARGET = TRUE)`."""
        cursor = self.cursor
        cursor.expect("WITH", "(")
        cursor.choice("the options of AUTO CDC INTO", ("CREATE_TARGET",), "write WITH (CREATE_TARGET = TRUE)")
        cursor.take("=")
        self.creates = cursor.boolean("CREATE_TARGET")
        cursor.expect(")")


def nearly(cursor: Cursor) -> StreamqlError | None:
    """Returns the error for APPLY CHANGES INTO, the former name of the statement, and for CREATE FLOW; None: it is neither."""
    if cursor.at("APPLY", "CHANGES", "INTO"):
        return cursor.not_a_statement(3, ("AUTO", "CDC", "INTO"))
    keys = [token.key for token in cursor.tokens]
    if cursor.at("CREATE", "FLOW") and any(keys[i : i + 3] == ["AUTO", "CDC", "INTO"] for i in range(len(keys))):
        hint = "write AUTO CDC INTO … by itself, and run it by a schedule"
        return cursor.refused("CREATE FLOW", "streamql has no pipelines of Spark", hint, cursor.tokens[0])
    return None
