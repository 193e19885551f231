"""The first keywords of statements about storage connections and external tables, and what completion offers behind them. Data."""

from __future__ import annotations

from streamql.dialect.grammar import A_NAME, ANY_RELATION, Follows, Phrase
from streamql.dialect.text.cursor import Cursor
from streamql.features.kafka.language.tables import uses_kafka

CONNECTION = ("STORAGE", "CONNECTION")
TABLE = ("EXTERNAL", "TABLE")

_CONNECTION_CLAUSES = (
    "TYPE KAFKA", "BOOTSTRAP_SERVERS = ['host:9092']", "SECURITY_PROTOCOL = 'SASL_SSL'", "SASL_MECHANISM = 'PLAIN'",
    "SASL_JAAS_CONFIG = ''", "SSL_TRUSTSTORE_LOCATION = ''", "SSL_TRUSTSTORE_PASSWORD = '${env:", "SSL_KEYSTORE_LOCATION = ''",
    "SSL_KEYSTORE_PASSWORD = '${env:", "SSL_KEY_PASSWORD = '${env:", "OPTIONS (", "COMMENT ''",
)  # fmt: skip
_TABLE_CLAUSES = (
    "USING KAFKA", "OPTIONS ('topics' = ''", "CONNECTION", "COMMENT ''", "STORED AS", "LOCATION", "PARTITIONED BY",
    "TBLPROPERTIES",
)  # fmt: skip
_TABLE_OPTIONS = (
    "'topics' = ''", "'group_id' = ''", "'starting_offset' = 'earliest'", "'starting_offset' = 'latest'",
    "'ending_offset' = 'latest'", "'kafka.isolation.level' = 'read_committed'",
)  # fmt: skip


def _means_kafka(cursor: Cursor, words: int) -> bool:
    return uses_kafka(cursor.tokens, words)


def _created(*options: str) -> tuple[Follows, Follows]:
    """Returns what follows CREATE STORAGE CONNECTION, and CREATE EXTERNAL TABLE."""
    table = Follows(A_NAME, options, _TABLE_CLAUSES, lists={"OPTIONS": _TABLE_OPTIONS}, unknown=("CONNECTION",))
    return Follows(A_NAME, options, _CONNECTION_CLAUSES), table


_NEW_CONNECTION, _NEW_TABLE = _created("IF NOT EXISTS")
_REPLACED_CONNECTION, _REPLACED_TABLE = _created()
PHRASES = (
    Phrase(("CREATE", *CONNECTION), follows=_NEW_CONNECTION),
    Phrase(("CREATE", "OR", "REPLACE", *CONNECTION), follows=_REPLACED_CONNECTION),
    Phrase(("DROP", *CONNECTION), follows=Follows(A_NAME, ("IF EXISTS",))),
    Phrase(("DROP", "CONNECTION"), follows=Follows(A_NAME, ("IF EXISTS",))),
    Phrase(("DESCRIBE", *CONNECTION), follows=Follows(A_NAME)),
    Phrase(("DESC", *CONNECTION), follows=Follows(A_NAME)),
    Phrase(("SHOW", "STORAGE", "CONNECTIONS"), follows=Follows(clauses=("LIKE",))),
    Phrase(("SHOW", "CONNECTIONS"), follows=Follows(clauses=("LIKE",))),
    Phrase(("DROP", *TABLE), follows=Follows(ANY_RELATION, ("IF EXISTS",))),
    *(
        Phrase((*verb, *TABLE), follows=Follows(ANY_RELATION))
        for verb in (("DESCRIBE",), ("DESC",), ("SHOW", "CREATE"))
    ),
    Phrase(("SHOW", "EXTERNAL", "TABLES"), follows=Follows(clauses=("IN", "LIKE"))),
    Phrase(("CREATE", *TABLE), _means_kafka, _NEW_TABLE),
    Phrase(("CREATE", "OR", "REPLACE", *TABLE), _means_kafka, _REPLACED_TABLE),
)
