"""The first keywords of statements about streams and transactions, and what completion offers behind them. Data."""

from __future__ import annotations

from streamql.dialect.grammar import A_NAME, Follows, Phrase

LISTING = Follows(clauses=("IN", "LIKE", "WHERE", "LIMIT"), query=("WHERE",))
"""Of SHOW statements that list objects."""
_OPTIONS = (
    "TABLE_STREAM_MODE = STANDARD", "TABLE_STREAM_MODE = APPEND_ONLY", "SHOW_INITIAL_ROWS = TRUE", "IDENTITY = KEY",
    "COMMENT = ''",
)  # fmt: skip
_CLAUSES = (
    "ON TABLE", "WITH (TABLE_STREAM_MODE = STANDARD)", "WITH (TABLE_STREAM_MODE = APPEND_ONLY)", "AT (VERSION => ", "AT (TIMESTAMP => ",
    "AT (STREAM => ", "BEFORE (VERSION => ", "TIMESTAMP AS OF", "VERSION AS OF", "APPEND_ONLY = TRUE", "SHOW_INITIAL_ROWS = TRUE",
    "IDENTITY = KEY", "COMMENT = ''",
)  # fmt: skip
_ACTIONS = (
    "SET COMMENT = ''", "UNSET COMMENT", "RENAME TO", "SET OFFSET TO LATEST", "SET OFFSET VERSION", "SET OFFSET TIMESTAMP",
    "SET OFFSET '{\"0\": 0}'", "SET IDENTITY = KEY", "RELEASE",
)  # fmt: skip


def _created(*options: str) -> Follows:
    lists = dict.fromkeys(("WITH", "PROPERTIES", "TBLPROPERTIES"), _OPTIONS)
    return Follows(A_NAME, options, _CLAUSES, {("ON", "STREAM"): "stream"}, lists)


def _both(verb: tuple[str, ...], follows: Follows, what: str = "STREAM") -> tuple[Phrase, Phrase]:
    """Returns the phrases with TABLE and without it. suggest.py explains misspelt ones, whose words may stand in another order."""
    with_table = Phrase((*verb, "TABLE", what), follows=follows, is_compared=False, is_offered=verb[0] == "CREATE")
    return Phrase((*verb, what), follows=follows, is_compared=False), with_table


PHRASES = (
    *_both(("CREATE",), _created("IF NOT EXISTS")),
    *_both(("CREATE", "OR", "REPLACE"), _created()),
    *_both(("DROP",), Follows("stream", ("IF EXISTS",))),
    *_both(("ALTER",), Follows("stream", ("IF EXISTS",), _ACTIONS)),
    *_both(("SHOW",), LISTING, "STREAMS"),
    Phrase(("SHOW", "TERSE", "STREAMS"), follows=LISTING, is_compared=False, is_offered=False),
    *_both(("SHOW", "CREATE"), Follows("stream")),
    *_both(("DESCRIBE",), Follows("stream")),
    *_both(("DESC",), Follows("stream")),
    *(
        Phrase(words, is_compared=False)
        for words in (
            ("BEGIN", "TRANSACTION"),
            ("START", "TRANSACTION"),
            ("COMMIT",),
            ("ROLLBACK",),
            ("ROLLBACK", "STATEMENT"),
        )
    ),
)
