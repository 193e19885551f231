"""Random statements, and for each a random one of its spellings: order, case, quotes, comments between the words."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from streamql.dialect import quote_string
from streamql.dialect.actions import RenameTo, SetComment
from streamql.dialect.grammar import grammars
from streamql.dialect.statements import (
    AlterStream,
    BeginTransaction,
    CommitTransaction,
    CreateStream,
    DescribeStream,
    DropStream,
    PointInTime,
    Release,
    RollbackStatement,
    RollbackTransaction,
    SetOffset,
    SetTableProperties,
    ShowCreateStream,
    ShowStreams,
    Statement,
)
from streamql.dialect.text.tokens import NameParts
from streamql.model import StreamMode
from streamql.names import quote

from . import spellings_dynamic, spellings_kafka

# --- random statements, as data

parts = st.one_of(
    st.sampled_from(["s", "t", "stream", "table", "on", "with", "set", "comment", "select", "Db1", "流"]),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=6),
)
names = st.lists(parts, min_size=1, max_size=3).map(tuple)
comments = st.none() | st.text(st.characters(codec="utf-8"), max_size=8)
expressions = st.sampled_from(
    ["'2024-01-01'", "now() - INTERVAL 1 DAY", "f(1, (2))", "TIMESTAMP '2024-01-01'", "x['a)']"]
)
points = st.one_of(
    st.builds(lambda b, e: PointInTime("TIMESTAMP", b, e), st.booleans(), expressions),
    st.builds(lambda b, n: PointInTime("OFFSET", b, f"-{n} * 60"), st.booleans(), st.integers(0, 99)),
    st.builds(lambda b, n: PointInTime("VERSION", b, version=n), st.booleans(), st.integers(0, 10**17)),
    st.builds(lambda b, n: PointInTime("STREAM", b, stream=n), st.booleans(), names),
    st.builds(lambda p: PointInTime("POSITIONS", positions=p), spellings_kafka.positions),
)


@st.composite
def created(draw: st.DrawFn) -> CreateStream:
    replaces = draw(st.booleans())
    return CreateStream(
        draw(names),
        draw(names),
        draw(st.sampled_from([" ".join(words) for grammar in grammars() for words in grammar.sources])),
        draw(st.none() | st.sampled_from(StreamMode)),
        replaces,
        not replaces and draw(st.booleans()),
        draw(st.none() | points),
        draw(st.booleans()),
        draw(comments),
    )


offsets = st.one_of(
    st.none(),
    st.builds(lambda n: PointInTime("VERSION", version=n), st.integers(0, 99)),
    st.builds(lambda e: PointInTime("TIMESTAMP", expression=e), expressions),
    st.builds(lambda p: PointInTime("POSITIONS", positions=p), spellings_kafka.positions),
)
actions = st.one_of(
    st.builds(SetComment, comments), st.builds(RenameTo, names), st.builds(SetOffset, offsets), st.builds(Release)
)
schemas = st.none() | st.lists(parts, min_size=1, max_size=2).map(tuple)
shows = st.builds(
    ShowStreams,
    schemas,
    st.none(),
    st.none() | st.sampled_from(["a > 1", "name LIKE 'x'"]),
    st.none() | st.integers(0, 9),
    st.booleans(),
)
likes = st.builds(ShowStreams, schemas, comments, st.none(), st.none() | st.integers(0, 9), st.booleans())
tracked = st.builds(
    SetTableProperties,
    names,
    st.booleans(),
    st.none() | st.integers(1, 999),
    st.dictionaries(
        st.sampled_from(["delta.appendOnly", "a b", "k"]),
        st.text(st.characters(codec="utf-8"), max_size=4),
    ),
)
statements = st.one_of(
    created(),
    st.builds(DropStream, names, st.booleans()),
    st.builds(AlterStream, names, actions, st.booleans()),
    shows,
    likes,
    st.builds(DescribeStream, names),
    st.builds(ShowCreateStream, names),
    tracked,
    spellings_kafka.statements,
    spellings_dynamic.statements,
    st.sampled_from([BeginTransaction(), CommitTransaction(), RollbackTransaction(), RollbackStatement()]),
)

# --- rendering: pieces of text between which anything invisible may stand


class Renderer:
    """Spells a statement in one of its ways, chosen by hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def maybe(self, word: str) -> list[str]:
        return [word] if self.draw(st.booleans()) else []

    def one(self, *choices: str) -> list[str]:
        return self.draw(st.sampled_from(choices)).split(" ")

    def name(self, name: NameParts) -> list[str]:
        pieces: list[str] = []
        for part in name:
            is_plain = re.fullmatch("[A-Za-z][A-Za-z0-9]*", part) and part.upper() not in (*KEYWORDS, "SELECT")
            spellings = [quote(part), *([part] if is_plain else [])]
            if "\\" not in part and '"' not in part:
                spellings.append(f'"{part}"')
            pieces += [".", self.draw(st.sampled_from(spellings))]
        return pieces[1:]

    def boolean(self, value: bool) -> list[str]:
        return self.one(*(("TRUE", "'true'") if value else ("FALSE", "'false'")))

    def point(self, point: PointInTime) -> list[str]:
        if point.type == "VERSION" and not point.before and self.draw(st.booleans()):
            return ["VERSION", "AS", "OF", str(point.version)]
        if point.type == "TIMESTAMP" and not point.before and self.draw(st.booleans()):
            return ["TIMESTAMP", "AS", "OF", str(point.expression)]
        if point.positions is not None:
            text = quote_string(spellings_kafka.positions_text(point.positions))
            return ["AT", "(", "OFFSET", "=>", text, ")"]
        value = [point.expression or str(point.version)]
        if point.stream is not None:
            quoted = quote_string(".".join(quote(part) for part in point.stream))
            value = [quoted] if self.draw(st.booleans()) else self.name(point.stream)
        return ["BEFORE" if point.before else "AT", "(", point.type, "=>", *value, ")"]

    def properties(self, pairs: list[tuple[str, list[str]]]) -> list[str]:
        pieces: list[str] = []
        for key, value in pairs:
            pieces += [",", *self.one(key, f"'{key.lower()}'"), *self.maybe("="), *value]
        return [*self.one("WITH PROPERTIES (", "WITH (", "PROPERTIES ("), *pieces[1:], ")"]

    def create(self, statement: CreateStream) -> list[str]:
        clauses: list[list[str]] = []
        listed: list[tuple[str, list[str]]] = []
        if statement.mode is not None:
            if self.draw(st.booleans()):
                listed.append(
                    ("TABLE_STREAM_MODE", self.one(statement.mode.value, f"'{statement.mode.value.lower()}'"))
                )
            else:
                is_append = statement.mode is StreamMode.APPEND_ONLY
                clauses.append([*self.one("APPEND_ONLY =", "INSERT_ONLY ="), *self.boolean(is_append)])
        if statement.show_initial_rows or self.draw(st.booleans()):
            value = self.boolean(statement.show_initial_rows)
            if self.draw(st.booleans()):
                listed.append(("SHOW_INITIAL_ROWS", value))
            else:
                clauses.append(["SHOW_INITIAL_ROWS", "=", *value])
        if statement.comment is not None:
            if self.draw(st.booleans()):
                listed.append(("COMMENT", [quote_string(statement.comment)]))
            else:
                clauses.append(["COMMENT", *self.maybe("="), quote_string(statement.comment)])
        if listed:
            clauses.append(self.properties(self.draw(st.permutations(listed))))
        if statement.point is not None:
            clauses.append(self.point(statement.point))
        head = ["CREATE", *(["OR", "REPLACE"] if statement.or_replace else []), *self.maybe("TABLE"), "STREAM"]
        head += ["IF", "NOT", "EXISTS"] if statement.if_not_exists else []
        head += [
            *self.name(statement.name),
            "ON",
            *statement.source_type.split(" "),
            *self.name(statement.source),
        ]
        return head + [piece for clause in self.draw(st.permutations(clauses)) for piece in clause]

    def alter(self, statement: AlterStream) -> list[str]:
        action = statement.action
        pieces = ["ALTER", *self.maybe("TABLE"), "STREAM", *(["IF", "EXISTS"] if statement.if_exists else [])]
        pieces += self.name(statement.name)
        if isinstance(action, RenameTo):
            return [*pieces, "RENAME", "TO", *self.name(action.name)]
        if isinstance(action, Release):
            return [*pieces, "RELEASE"]
        if isinstance(action, SetComment):
            if action.comment is None:
                return [*pieces, "UNSET", "COMMENT"]
            return [*pieces, "SET", "COMMENT", *self.maybe("="), quote_string(action.comment)]
        point = action.point
        if point is None:
            return [*pieces, "SET", "OFFSET", "TO", "LATEST"]
        if point.positions is not None:
            return [*pieces, "SET", "OFFSET", quote_string(spellings_kafka.positions_text(point.positions))]
        return [*pieces, "SET", "OFFSET", point.type, point.expression or str(point.version)]

    def show(self, statement: ShowStreams) -> list[str]:
        clauses = []
        if statement.schema is not None:
            clauses.append(
                [*self.one("IN", "FROM", "IN SCHEMA", "FROM DATABASE"), *(quote(p) + "." for p in statement.schema)]
            )
            clauses[-1][-1] = clauses[-1][-1][:-1]
        if statement.like is not None:
            clauses.append(["LIKE", quote_string(statement.like)])
        if statement.where is not None:
            clauses.append(["WHERE", statement.where])
        limit = [] if statement.limit is None else ["LIMIT", str(statement.limit)]
        return [
            "SHOW",
            *(["TERSE"] if statement.terse else self.maybe("FULL")),
            *self.maybe("TABLE"),
            "STREAMS",
            *(p for c in clauses for p in c),
            *limit,
        ]

    def tracked(self, statement: SetTableProperties) -> list[str]:
        pieces = ["ALTER", "TABLE", *(quote(p) + "." for p in statement.table)]
        pieces[-1] = pieces[-1][:-1]
        if statement.data_retention_days is None and not statement.others and self.draw(st.booleans()):
            return [*pieces, "SET", "CHANGE_TRACKING", "=", *self.boolean(bool(statement.change_tracking))]
        pairs = [("change_tracking", self.boolean(bool(statement.change_tracking)))]
        if statement.data_retention_days is not None:
            days = statement.data_retention_days
            pairs.append(("data_retention_days", self.one(str(days), f"'{days}'")))
        listed = [[*self.one(key.upper(), f"'{key}'"), *self.maybe("="), *value] for key, value in pairs]
        listed += [[quote_string(key), "=", quote_string(value)] for key, value in statement.others.items()]
        joined = [piece for item in self.draw(st.permutations(listed)) for piece in (",", *item)]
        return [*pieces, "SET", *self.one("PROPERTIES", "TBLPROPERTIES"), "(", *joined[1:], ")"]

    def render(self, statement: Statement) -> list[str]:
        if isinstance(statement, CreateStream):
            return self.create(statement)
        if isinstance(statement, DropStream):
            exists = ["IF", "EXISTS"] if statement.if_exists else []
            return ["DROP", *self.maybe("TABLE"), "STREAM", *exists, *self.name(statement.name)]
        if isinstance(statement, AlterStream):
            return self.alter(statement)
        if isinstance(statement, ShowStreams):
            return self.show(statement)
        if isinstance(statement, DescribeStream):
            return [*self.one("DESC", "DESCRIBE"), *self.maybe("TABLE"), "STREAM", *self.name(statement.name)]
        if isinstance(statement, ShowCreateStream):
            return ["SHOW", "CREATE", *self.maybe("TABLE"), "STREAM", *self.name(statement.name)]
        if isinstance(statement, BeginTransaction):
            return self.draw(
                st.sampled_from([["BEGIN"], ["START", "TRANSACTION"], ["BEGIN", "WORK"], ["BEGIN", "TRAN"]])
            )
        if isinstance(statement, CommitTransaction | RollbackTransaction):
            verb = "COMMIT" if isinstance(statement, CommitTransaction) else "ROLLBACK"
            return [verb, *self.draw(st.sampled_from([[], ["TRANSACTION"], ["WORK"]]))]
        if isinstance(statement, RollbackStatement):
            return ["ROLLBACK", "STATEMENT"]
        if isinstance(statement, SetTableProperties):
            return self.tracked(statement)
        pieces = spellings_kafka.render(self, statement) or spellings_dynamic.render(self, statement)
        assert pieces is not None
        return pieces


WORD = re.compile(r"[A-Za-z_]+\Z")
GAPS = st.sampled_from([" ", " ", "\n", "\t", "\u00a0", "/* x */", "/* /* ; */ ' */", " -- y; '\n", "\r\n", "\f/**/"])
_KEYWORDS = (
    "BEGIN START COMMIT ROLLBACK STATEMENT TRANSACTION RELEASE CREATE OR REPLACE TABLE STREAM STREAMS IF "
    "NOT EXISTS ON WITH PROPERTIES TBLPROPERTIES AT BEFORE AS OF VERSION TIMESTAMP OFFSET SHOW DROP ALTER "
    "SET UNSET COMMENT RENAME TO LATEST DESC DESCRIBE APPEND_ONLY TRUE FALSE IN FROM LIKE WHERE LIMIT "
    "VIEW"
)
KEYWORDS = frozenset(_KEYWORDS.split()) | spellings_kafka.KEYWORDS | spellings_dynamic.KEYWORDS


@st.composite
def spelled(draw: st.DrawFn) -> tuple[Statement, str]:
    """A statement and one of its texts."""
    statement = draw(statements)
    pieces = Renderer(draw).render(statement)
    cased = [draw(st.sampled_from([p, p.lower(), p.capitalize()])) if p in KEYWORDS else p for p in pieces]
    return statement, "".join(draw(GAPS) + piece for piece in cased) + draw(
        st.sampled_from(["", ";", " ; -- z", "/* z */;;"])
    )
