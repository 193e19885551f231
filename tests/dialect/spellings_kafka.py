"""Random statements about connections and external tables, and their spellings: a part of `spellings`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from streamql.dialect import quote_string
from streamql.dialect.statements import (
    Statement,
)
from streamql.dialect.text.tokens import NameParts
from streamql.features.kafka.language.kafka import KAFKA_COLUMNS
from streamql.features.kafka.language.statements import (
    CreateConnection,
    CreateExternalTable,
    DescribeConnection,
    DescribeExternalTable,
    DropConnection,
    DropExternalTable,
    ShowConnections,
    ShowCreateExternalTable,
    ShowExternalTables,
)
from streamql.names import quote

if TYPE_CHECKING:
    from .spellings import Renderer

KEYWORDS = frozenset(
    ("STORAGE", "CONNECTION", "CONNECTIONS", "TYPE", "KAFKA", "OPTIONS", "EXTERNAL", "TABLES", "USING", "NULL")
)

texts = st.text(st.characters(codec="utf-8"), max_size=8)
parts = st.sampled_from(["c", "k", "connection", "table", "Kafka", "my name", "on", "type", "流"])
names = st.lists(parts, min_size=1, max_size=3).map(tuple)
references = st.sampled_from(["${env:NAME}", "${file:/run/secrets/kafka:password}"])
servers = st.lists(st.sampled_from(["h:9092", "a.b-c:1", "[::1]:65535", "${env:HOST}"]), min_size=1, max_size=3)
positions = st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), min_size=1, max_size=3).map(
    lambda numbers: tuple((str(partition), numbers[partition]) for partition in sorted(numbers))
)
jaas = st.builds(
    lambda name, reference: f"a.B required {name}=\"{reference}\" user='it' ;",
    st.sampled_from(["password", "clientSecret"]),
    references,
)
settings = st.fixed_dictionaries(
    {},
    optional={
        "security.protocol": texts,
        "sasl.mechanism": texts,
        "a.setting": texts,
        "ssl.truststore.location": texts,
        "ssl.key.password": references,
        "sasl.jaas.config": jaas,
    },
)


def positions_text(pairs: tuple[tuple[str, int], ...]) -> str:
    return "{" + ", ".join(f'"{partition}": {offset}' for partition, offset in pairs) + "}"


@st.composite
def connections(draw: st.DrawFn) -> CreateConnection:
    replaces = draw(st.booleans())
    options = {"bootstrap.servers": ",".join(draw(servers)), **draw(settings)}
    keeps = not replaces and draw(st.booleans())
    return CreateConnection(draw(parts), "KAFKA", options, replaces, keeps, draw(st.none() | texts))


@st.composite
def tables(draw: st.DrawFn) -> CreateExternalTable:
    replaces = draw(st.booleans())
    starts = st.sampled_from(["earliest", "latest"]) | positions.map(positions_text)
    optional = {"group_id": texts, "starting_offset": starts, "cz.kafka.a": texts, "kafka.isolation.level": texts}
    options = draw(st.fixed_dictionaries({"topics": st.sampled_from(["t", "a.b_c-1"])}, optional=optional))
    columns = draw(st.lists(st.sampled_from(KAFKA_COLUMNS), unique=True, max_size=4))
    return CreateExternalTable(
        draw(names),
        tuple((name, type_.upper()) for name, type_ in columns),
        options,
        draw(parts),
        replaces,
        not replaces and draw(st.booleans()),
        draw(st.none() | texts),
    )


schemas = st.none() | st.lists(parts, min_size=1, max_size=2).map(tuple)
likes = st.none() | texts
statements = st.one_of(
    connections(),
    tables(),
    st.builds(DropConnection, parts, st.booleans()),
    st.builds(ShowConnections, likes),
    st.builds(DescribeConnection, parts),
    st.builds(DropExternalTable, names, st.booleans()),
    st.builds(ShowExternalTables, schemas, likes),
    st.builds(DescribeExternalTable, names),
    st.builds(ShowCreateExternalTable, names),
)


def render(r: Renderer, statement: Statement) -> list[str] | None:
    """The pieces of one of its texts; None: the statement is about something else."""
    if isinstance(statement, CreateConnection):
        return _connection(r, statement)
    if isinstance(statement, CreateExternalTable):
        return _table(r, statement)
    exists = ["IF", "EXISTS"] if getattr(statement, "if_exists", False) else []
    if isinstance(statement, DropConnection):
        return ["DROP", *r.maybe("STORAGE"), "CONNECTION", *exists, *r.name((statement.name,))]
    if isinstance(statement, ShowConnections):
        return ["SHOW", *r.maybe("STORAGE"), "CONNECTIONS", *_like(statement.like)]
    if isinstance(statement, DescribeConnection):
        return [*r.one("DESC", "DESCRIBE"), "STORAGE", "CONNECTION", *r.name((statement.name,))]
    if isinstance(statement, DropExternalTable):
        return ["DROP", "EXTERNAL", "TABLE", *exists, *r.name(statement.name)]
    if isinstance(statement, DescribeExternalTable):
        return [*r.one("DESC", "DESCRIBE"), "EXTERNAL", "TABLE", *r.name(statement.name)]
    if isinstance(statement, ShowCreateExternalTable):
        return ["SHOW", "CREATE", "EXTERNAL", "TABLE", *r.name(statement.name)]
    if isinstance(statement, ShowExternalTables):
        clauses = [_like(statement.like)]
        if statement.schema is not None:
            clauses.append([*r.one("IN", "FROM", "IN SCHEMA"), *_quoted(statement.schema)])
        ordered = r.draw(st.permutations(clauses))
        return ["SHOW", "EXTERNAL", "TABLES", *(piece for clause in ordered for piece in clause)]
    return None


def _like(pattern: str | None) -> list[str]:
    return [] if pattern is None else ["LIKE", quote_string(pattern)]


def _quoted(name: NameParts) -> list[str]:
    return [piece for part in name for piece in (".", quote(part))][1:]


def _created(statement: CreateConnection | CreateExternalTable, *keywords: str) -> list[str]:
    keeps = ["IF", "NOT", "EXISTS"] if statement.if_not_exists else []
    return ["CREATE", *(["OR", "REPLACE"] if statement.or_replace else []), *keywords, *keeps]


def _connection(r: Renderer, statement: CreateConnection) -> list[str]:
    clauses: list[list[str]] = []
    listed: dict[str, str] = {}
    for key, value in statement.options.items():
        if r.draw(st.booleans()):
            listed[key] = value
        else:
            clauses.append([*_key(r, key), "=", *_value(r, key, value), *r.maybe(",")])
    if statement.comment is not None:
        clauses.append(["COMMENT", *r.maybe("="), quote_string(statement.comment)])
    if listed:
        pairs = [[",", *_key(r, key), *r.maybe("="), *_value(r, key, value)] for key, value in listed.items()]
        heads = ("OPTIONS (", "WITH OPTIONS (", "PROPERTIES (", "WITH (")
        clauses.append([*r.one(*heads), *[piece for pair in pairs for piece in pair][1:], ")"])
    pieces = [piece for clause in r.draw(st.permutations(clauses)) for piece in clause]
    head = [*_created(statement, "STORAGE", "CONNECTION"), *r.name((statement.name,)), "TYPE"]
    return [*head, *r.one("KAFKA", "'Kafka'", "`kafka`"), *(pieces[:-1] if pieces[-1] == "," else pieces)]


def _key(r: Renderer, key: str) -> list[str]:
    bare = key.replace(".", "_")
    return r.one(f"'{key}'", f"'kafka.{key}'", f"`{key}`", f'"{key}"', bare, bare.upper(), key)


def _value(r: Renderer, key: str, value: str) -> list[str]:
    if key == "bootstrap.servers" and r.draw(st.booleans()):
        return ["[", *[piece for server in value.split(",") for piece in (",", quote_string(server))][1:], "]"]
    return [quote_string(value)]


def _table(r: Renderer, statement: CreateExternalTable) -> list[str]:
    columns: list[str] = []
    for name, type_ in statement.columns:
        extra = [*r.one(*("NOT NULL",)), "COMMENT", "'it,)'"] if r.draw(st.booleans()) else []
        columns += [",", *r.one(quote(name), name), *r.one(*_types(type_)), *extra]
    clauses = [_options(r, statement.options), ["CONNECTION", *r.name((statement.connection,))]]
    if statement.comment is not None:
        clauses.append(["COMMENT", *r.maybe("="), quote_string(statement.comment)])
    return [
        *_created(statement, "EXTERNAL", "TABLE"),
        *r.name(statement.name),
        *(["(", *columns[1:], ")"] if columns else []),
        "USING",
        *r.one("KAFKA", "'Kafka'", "`kafka`"),
        *(piece for clause in r.draw(st.permutations(clauses)) for piece in clause),
    ]


def _types(type_: str) -> list[str]:
    """Spellings that read back as the same text; pieces are separated by one space."""
    return [type_.replace(" ", ""), type_.lower().replace("<", " < ").replace(">", " > ").replace("  ", " ").strip()]


def _options(r: Renderer, options: Mapping[str, str]) -> list[str]:
    pieces: list[str] = []
    for key, value in options.items():
        other = {"topics": "topic", "starting_offset": "startingOffsets"}.get(key, key)
        keys = [f"'{key}'", f"`{key}`", f'"{other}"', key]
        if key in ("group_id", "topics", "starting_offset"):
            keys += [key.upper(), f"'{key.upper()}'"]
        pieces += [",", *r.one(*keys), *r.maybe("="), quote_string(value)]
    return ["OPTIONS", "(", *pieces[1:], ")"]
