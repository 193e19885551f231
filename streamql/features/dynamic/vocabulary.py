"""The words of dynamic tables for completion, beside the first keywords of statements (`language/phrases.py`)."""

from __future__ import annotations

from streamql.dialect.vocabulary import Vocabulary

VOCABULARY = Vocabulary(
    keywords=frozenset(
        ("TARGET_LAG", "DOWNSTREAM", "REFRESH_MODE", "INITIALIZE", "DEFERRED", "INCREMENTAL", "SUSPEND", "RESUME")
    ),
    after={
        ("TARGET_LAG", "="): ("'1 minute'", "'10 minutes'", "'1 hour'", "DOWNSTREAM"),
        ("REFRESH_MODE", "="): ("AUTO", "FULL"),
        ("INITIALIZE", "="): ("ON_CREATE", "ON_SCHEDULE"),
    },
)
