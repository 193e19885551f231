"""The first keywords of statements about dynamic tables, and what completion offers behind them. Data."""

from __future__ import annotations

from collections.abc import Iterator

from streamql.dialect.grammar import A_NAME, Follows, Phrase
from streamql.dialect.phrases import LISTING
from streamql.features.dynamic.language.words import LISTS, TYPES

_SCHEDULES = ("TARGET_LAG = '10 minutes'", "TARGET_LAG = DOWNSTREAM", "REFRESH INTERVAL 10 MINUTE")
_MODES = ("REFRESH_MODE = AUTO", "REFRESH_MODE = FULL")
_FIRST_ROWS = (
    ("INITIALIZE = ON_SCHEDULE", "INITIALIZE = ON_CREATE"),
    ("BUILD DEFERRED", "BUILD IMMEDIATE"),
)
"""In the order of TYPES."""
_CREATED = (*_SCHEDULES, *_MODES, "COMMENT ''", "PARTITIONED BY (", "CLUSTER BY (", "PROPERTIES (", "AS SELECT")
_ALTERED = (
    "SUSPEND", "RESUME", "REFRESH", *(f"SET {text}" for text in (*_SCHEDULES, *_MODES)), "SET COMMENT = ''", "UNSET COMMENT",
    "UNSET SCHEDULE", "RENAME TO",
)  # fmt: skip


def _of_type(words: tuple[str, str], first_rows: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Follows]]:
    """Yields the keywords before a type, and what follows it."""
    name, clauses = " ".join(words).lower(), (*_CREATED, *first_rows)
    yield ("CREATE",), Follows(A_NAME, ("IF NOT EXISTS",), clauses, query=("AS",))
    yield ("CREATE", "OR", "REPLACE"), Follows(A_NAME, (), clauses, query=("AS",))
    yield ("DROP",), Follows(name, ("IF EXISTS",))
    yield ("ALTER",), Follows(name, ("IF EXISTS",), _ALTERED)
    for verb in (("REFRESH",), ("VERIFY",), ("EXPLAIN", "REFRESH"), ("DESCRIBE",), ("DESC",), ("SHOW", "CREATE")):
        yield verb, Follows(name)


def _history(words: tuple[str, str]) -> Phrase:
    name = " ".join(words).lower()
    follows = Follows("", (), ("FOR", "WHERE", "LIMIT"), {("FOR",): name, ("OF",): name}, query=("WHERE",))
    return Phrase(("SHOW", *words, "REFRESH", "HISTORY"), follows=follows)


PHRASES = (
    *(
        Phrase((*verb, *words), follows=follows)
        for words, first_rows in zip(TYPES, _FIRST_ROWS, strict=True)
        for verb, follows in _of_type(words, first_rows)
    ),
    *(Phrase(("SHOW", *words), follows=LISTING) for words in LISTS),
    *(_history(words) for words in TYPES),
)
BEFORE_TYPE = tuple(verb for verb, _ in _of_type(TYPES[0], ()))
"""The keywords before DYNAMIC TABLE."""
