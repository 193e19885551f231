"""The words of expectations for the console and the shell."""

from __future__ import annotations

from streamql.dialect.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    keywords=frozenset(("CHECK", "EXPECT", "EXPECTATION", "FAIL", "QUARANTINE", "VIOLATION", "WARN")),
    functions={"stream_violations": ("stream",)},
    after={("ON", "VIOLATION"): ("FAIL", "DROP", "QUARANTINE", "QUARANTINE INTO", "WARN")},
    clauses_of={("ALTER", "STREAM"): ("ADD EXPECTATION", "DROP EXPECTATION")},
)
