"""The words of primary keys for the console and the shell."""

from __future__ import annotations

from streamql.dialect.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    keywords=frozenset(("IDENTITY", "PRIMARY", "RELY", "ROW_ID")),
    after={("IDENTITY", "="): ("KEY", "ROW_ID"), ("PRIMARY", "KEY"): ("(",)},
    clauses_of={("ALTER", "TABLE"): ("ADD PRIMARY KEY (", "DROP PRIMARY KEY")},
)
