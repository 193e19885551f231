"""The words of AUTO CDC INTO for the console and the shell, beside its first keywords (`language/grammar.py`)."""

from __future__ import annotations

from streamql.dialect.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    dml={"AUTO": "AUTO CDC"},
    keywords=frozenset(("KEYS", "SEQUENCE", "STORED", "SCD", "TRACK", "HISTORY", "IGNORE", "CREATE_TARGET")),
    after={
        ("STORED", "AS"): ("SCD TYPE 1", "SCD TYPE 2"),
        ("CREATE_TARGET", "="): ("TRUE",),
        ("IGNORE", "NULL"): ("UPDATES",),
        ("APPLY", "AS"): ("DELETE WHEN", "TRUNCATE WHEN"),
    },
)
