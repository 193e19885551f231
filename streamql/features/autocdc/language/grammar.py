"""Which texts are AUTO CDC INTO, and what completion offers in it."""

from __future__ import annotations

from streamql.dialect.grammar import ANY_RELATION, Follows, Grammar, Parse, Phrase
from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import EXPLAIN_OPTIONS
from streamql.features.autocdc.language.parse import nearly, parse_auto_cdc, parse_explain

_CLAUSES = (
    "FROM STREAM", "FROM SNAPSHOT", "KEYS (", "IGNORE NULL UPDATES", "APPLY AS DELETE WHEN", "APPLY AS TRUNCATE WHEN", "SEQUENCE BY",
    "COLUMNS (", "COLUMNS * EXCEPT (", "STORED AS SCD TYPE 1", "STORED AS SCD TYPE 2", "TRACK HISTORY ON (", "TRACK HISTORY ON * EXCEPT (",
    "WITH (CREATE_TARGET = TRUE)",
)  # fmt: skip
_FOLLOWS = Follows(
    ANY_RELATION, (), _CLAUSES, {("STREAM",): "stream", ("SNAPSHOT",): ANY_RELATION}, query=("WHEN", "BY")
)


def _recognize(cursor: Cursor) -> Parse | None:
    """Returns the function that parses the statement; None: it is another one. Starts at the first token, and moves the cursor."""
    if cursor.take("EXPLAIN"):
        if cursor.at_any(EXPLAIN_OPTIONS):
            cursor.advance()
        return parse_explain if cursor.at("AUTO", "CDC") else None
    return parse_auto_cdc if cursor.at("AUTO", "CDC") else None


GRAMMAR = Grammar(
    frozenset(("AUTO", "EXPLAIN")),
    _recognize,
    (Phrase(("AUTO", "CDC", "INTO"), follows=_FOLLOWS), Phrase(("EXPLAIN", "AUTO", "CDC", "INTO"), follows=_FOLLOWS)),
    (nearly,),
)
