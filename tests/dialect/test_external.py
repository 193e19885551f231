"""Storage connections and Kafka external tables: spellings, positions, columns, options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamql.dialect import might_be_ours, parse, quote_string, split
from streamql.dialect.points import parse_positions
from streamql.dialect.statements import (
    CreateStream,
)
from streamql.features.kafka.language.kafka import KAFKA_COLUMNS, column_fault, option_value
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

from .test_parse import without_spans

SERVERS = {"bootstrap.servers": "h:9092"}
C = CreateConnection("c", "KAFKA", SERVERS)
K = CreateExternalTable(("k",), (), {"topics": "t"}, "c")
SASL = {**SERVERS, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
JAAS = 'org.a.PlainLoginModule required username="u" password="${env:KAFKA_PASSWORD}";'

PARSED: list[tuple[str, object]] = [
    ("CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = ['h:9092']", C),
    ("create /* x */ storage connection c type kafka bootstrap_servers 'h:9092';", C),
    ("CREATE STORAGE CONNECTION c TYPE = 'kafka' BOOTSTRAP_SERVERS = [r'h:9092']", C),
    (
        "CREATE OR REPLACE STORAGE CONNECTION `my c` TYPE KAFKA BOOTSTRAP_SERVERS = ['h:9092', ' h2:9092 '] COMMENT 'x'",
        CreateConnection("my c", "KAFKA", {"bootstrap.servers": "h:9092,h2:9092"}, True, False, "x"),
    ),
    (
        "CREATE STORAGE CONNECTION IF NOT EXISTS c TYPE KAFKA BOOTSTRAP_SERVERS = 'h:9092, h2:9092' COMMENT = 'x'",
        CreateConnection("c", "KAFKA", {"bootstrap.servers": "h:9092,h2:9092"}, False, True, "x"),
    ),
    (
        "CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = 'h:9092' SECURITY_PROTOCOL = 'SASL_SSL', SASL_MECHANISM 'PLAIN'",
        CreateConnection("c", "KAFKA", SASL),
    ),
    (
        (
            "CREATE STORAGE CONNECTION c TYPE KAFKA WITH OPTIONS ('bootstrap.servers' = 'h:9092', kafka.security.protocol 'SASL_SSL') "
            "PROPERTIES (`sasl.mechanism` = 'PLAIN')"
        ),
        CreateConnection("c", "KAFKA", SASL),
    ),
    (
        (
            "CREATE STORAGE CONNECTION c TYPE KAFKA 'bootstrap.servers' = 'h:9092' 'kafka.security.protocol' = 'SASL_SSL' "
            "'sasl.mechanism' 'PLAIN'"
        ),
        CreateConnection("c", "KAFKA", SASL),
    ),
    (
        (
            "CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = '[::1]:9092,SSL://h:1' RECEIVE_BUFFER_BYTES = -1 A.B = TRUE "
            "RETRIES = 3"
        ),
        CreateConnection(
            "c",
            "KAFKA",
            {"bootstrap.servers": "[::1]:9092,SSL://h:1", "receive.buffer.bytes": "-1", "A.B": "true", "retries": "3"},
        ),
    ),
    (
        (
            f"CREATE STORAGE CONNECTION c TYPE KAFKA BOOTSTRAP_SERVERS = '${{env:SERVERS}}' SASL_JAAS_CONFIG = {quote_string(JAAS)} "
            "SSL_KEY_PASSWORD '$' '{file:/run/secrets/kafka:password}'"
        ),
        CreateConnection(
            "c",
            "KAFKA",
            {
                "bootstrap.servers": "${env:SERVERS}",
                "sasl.jaas.config": JAAS,
                "ssl.key.password": "${file:/run/secrets/kafka:password}",
            },
        ),
    ),
    ("DROP STORAGE CONNECTION c", DropConnection("c")),
    ("DROP CONNECTION IF EXISTS `c d`;", DropConnection("c d", True)),
    ("SHOW CONNECTIONS", ShowConnections()),
    ("SHOW STORAGE CONNECTIONS LIKE 'a%'", ShowConnections("a%")),
    ("DESC STORAGE CONNECTION c", DescribeConnection("c")),
    ('DESCRIBE storage connection "c"', DescribeConnection("c")),
    ("CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('topics' = 't') CONNECTION c", K),
    ("create external table k using `kafka` connection = c options (TOPIC 't');", K),
    ("CREATE EXTERNAL TABLE using USING 'Kafka' OPTIONS (topics = [' t ']) CONNECTION c", replace(K, name=("using",))),
    (
        "CREATE OR REPLACE EXTERNAL TABLE a.b.k USING KAFKA COMMENT 'x' CONNECTION `c d` OPTIONS ('group_id' = 'g', 'topics' = 't')",
        CreateExternalTable(("a", "b", "k"), (), {"group_id": "g", "topics": "t"}, "c d", True, False, "x"),
    ),
    (
        (
            "CREATE EXTERNAL TABLE IF NOT EXISTS k (topic STRING NOT NULL COMMENT 'x, )', `key` binary, "
            "headers array < struct<`key`:STRING,value : binary> > COMMENT 'y') USING KAFKA OPTIONS ('topics' = 't') CONNECTION c"
        ),
        CreateExternalTable(
            ("k",),
            (("topic", "STRING"), ("key", "BINARY"), ("headers", "ARRAY<STRUCT<KEY: STRING, VALUE: BINARY>>")),
            {"topics": "t"},
            "c",
            if_not_exists=True,
        ),
    ),
    (
        (
            "CREATE EXTERNAL TABLE k (Headers MAP<STRING,BINARY>, offset LONG, `timestamp` TIMESTAMP) USING KAFKA "
            "OPTIONS (Topics = 't', STARTING_OFFSET = 'Earliest', endingOffsets = 'latest', 'kafka.isolation.level' = 'x', "
            "'cz.kafka.seek' = 1, 'kafka.ssl.key.password' = '${env:P}') CONNECTION c"
        ),
        CreateExternalTable(
            ("k",),
            (("Headers", "MAP<STRING, BINARY>"), ("offset", "LONG"), ("timestamp", "TIMESTAMP")),
            {
                "topics": "t",
                "starting_offset": "earliest",
                "ending_offset": "latest",
                "kafka.isolation.level": "x",
                "cz.kafka.seek": "1",
                "kafka.ssl.key.password": "${env:P}",
            },
            "c",
        ),
    ),
    (
        "CREATE EXTERNAL TABLE k USING KAFKA OPTIONS ('topics' = 't', 'starting_offset' = '{\"0\": 17}') CONNECTION c",
        CreateExternalTable(("k",), (), {"topics": "t", "starting_offset": '{"0": 17}'}, "c"),
    ),
    ("DROP EXTERNAL TABLE k", DropExternalTable(("k",))),
    ("DROP EXTERNAL TABLE IF EXISTS a.k;", DropExternalTable(("a", "k"), True)),
    ("SHOW EXTERNAL TABLES", ShowExternalTables()),
    ("SHOW EXTERNAL TABLES LIKE 'a%' FROM db", ShowExternalTables(("db",), "a%")),
    ("SHOW EXTERNAL TABLES IN SCHEMA a.b", ShowExternalTables(("a", "b"))),
    ("SHOW EXTERNAL TABLES IN schema LIKE 'x'", ShowExternalTables(("schema",), "x")),
    ("DESC EXTERNAL TABLE a.k", DescribeExternalTable(("a", "k"))),
    ("DESCRIBE external table `k`", DescribeExternalTable(("k",))),
    ("SHOW CREATE EXTERNAL TABLE k", ShowCreateExternalTable(("k",))),
]


@pytest.mark.parametrize(("text", "expected"), PARSED)
def test_parses(text: str, expected: object) -> None:
    assert without_spans(parse(text)) == expected
    assert might_be_ours(text)
    assert [fragment.text for fragment in split(f"SELECT 1; {text.rstrip(';')}; SELECT 2")][1] == text.rstrip(";")


def test_streams_take_external_tables() -> None:
    statement = parse("CREATE STREAM s ON EXTERNAL TABLE a.k APPEND_ONLY = TRUE")
    assert isinstance(statement, CreateStream)
    assert (statement.source_type, statement.source) == ("EXTERNAL TABLE", ("a", "k"))


def test_spans_say_where() -> None:
    text = "CREATE EXTERNAL TABLE\n a.k USING KAFKA OPTIONS (topics = 't')\n CONNECTION `c`"
    statement = parse(text)
    assert isinstance(statement, CreateExternalTable)
    spans = [statement.name_span, statement.connection_span]
    assert [(text[s.start : s.end], s.line, s.column) for s in spans if s] == [("a.k", 2, 2), ("`c`", 3, 13)]


# --- positions, columns, options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"0": 17}', (("0", 17),)),
        (' { "10":0 ,"2" : 9223372036854775807 } ', (("2", 2**63 - 1), ("10", 0))),
        ("{}", None),
        ("", None),
        ('{"0": 17', None),
        ('{"0": 17,}', None),
        ('{"00": 17}', (("00", 17),)),
        ('{"default.orders": 17, "spark_catalog.default.items": 3}', (("default.orders", 17), ("spark_catalog.default.items", 3))),
        ('{"b": 1, "10": 2, "a": 3, "9": 4}', (("9", 4), ("10", 2), ("a", 3), ("b", 1))),
        ('{"`a \\"b`.c": 1, "\\u6d41": 0}', (('`a "b`.c', 1), ("流", 0))),
        ('{"": 17}', None),
        ('{"a": 17, "\\u0061": 18}', None),
        ('{"\\ud800": 17}', None),
        ('{"0": null}', None),
        ('{"0": NaN}', None),
        ('{"0": 1.0}', None),
        ('{"t": {"0": 17}}', None),
        ('{"0": 1} {"1": 1}', None),
        ("null", None),
        ("17", None),
        ('{"0": 017}', None),
        ('{"-1": 17}', (("-1", 17),)),
        ('{"0": -2}', None),
        ('{"0": "17"}', None),
        ('{"0": true}', None),
        ('{"0": 1e3}', None),
        ('{0: 17}', None),
        ('{"0": 17, "0": 17}', None),
        ('{"2147483648": 1}', (("2147483648", 1),)),
        ('{"0": 9223372036854775808}', None),
        ('[{"0": 17}]', None),
        ('{"٣": 17}', (("٣", 17),)),
    ],
)  # fmt: skip
def test_positions(text: str, expected: object) -> None:
    assert parse_positions(text) == expected


def test_each_column_alone_and_all_of_them() -> None:
    columns = [(name, type_.upper()) for name, type_ in KAFKA_COLUMNS]
    assert column_fault(columns) is None
    assert column_fault(columns[::-1]) is None
    assert column_fault([]) is None
    for column in columns:
        assert column_fault([column]) is None
        found = column_fault([columns[0], (column[0], "INTERVAL DAY")])
        assert found is not None
        assert found[0] == 1
    found = column_fault([("a_column", "STRING")])
    assert found is not None
    assert all(name in found[1][1] and type_ in found[1][1] for name, type_ in KAFKA_COLUMNS)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("topics", " a.b_C-1 ", "a.b_C-1"),
        ("topics", "x" * 249, "x" * 249),
        ("starting_offset", "EARLIEST", "earliest"),
        ("starting_offset", " latest ", "latest"),
        ("ending_offset", '{"0": 1}', '{"0": 1}'),
        ("starting_offset", ' { "10":0 ,"2147483647" : 3 } ', ' { "10":0 ,"2147483647" : 3 } '),
        ("group_id", " g ", " g "),
        ("kafka.a", "", ""),
    ],
)
def test_option_values(name: str, value: str, expected: str) -> None:
    assert option_value(name, value) == expected


@pytest.mark.parametrize(
    "value", ['{"00": 17}', '{"-1": 17}', '{"2147483648": 1}', '{"٣": 17}', '{"db.t": 1}', '{"0": 1, "a": 1}', "{}"]
)
def test_offsets_of_what_is_not_a_partition(value: str) -> None:
    assert not isinstance(option_value("starting_offset", value), str)
    assert not isinstance(option_value("ending_offset", value), str)


@pytest.mark.parametrize("value", ["", ".", "..", "a,b", "a b", "x" * 250, "${env:T}", "a\nb"])
def test_topics_that_kafka_does_not_have(value: str) -> None:
    assert not isinstance(option_value("topics", value), str)
