"""The words of dynamic tables for the console and the shell, beside the first keywords of statements (`language/phrases.py`)."""

from __future__ import annotations

import re

from streamql.dialect.vocabulary import Vocabulary
from streamql.features.dynamic.language.words import LISTS, TYPES
from streamql.shared import constants

BACKING_NAME = re.compile(re.escape(constants("dynamicTables")["backingPrefix"]) + r"[0-9a-f]{12}\Z")
"""Names of tables that hold the rows of dynamic tables."""

VOCABULARY = Vocabulary(
    queries=frozenset(("VERIFY",)),
    keywords=frozenset(
        ("TARGET_LAG", "DOWNSTREAM", "REFRESH_MODE", "INITIALIZE", "DEFERRED", "INCREMENTAL", "SUSPEND", "RESUME")
    ),
    after={
        ("TARGET_LAG", "="): ("'1 minute'", "'10 minutes'", "'1 hour'", "DOWNSTREAM"),
        ("REFRESH_MODE", "="): ("AUTO", "FULL"),
        ("INITIALIZE", "="): ("ON_CREATE", "ON_SCHEDULE"),
    },
    lists={" ".join(one).lower(): f"SHOW {' '.join(many)}" for one, many in zip(TYPES, LISTS, strict=True)},
    unnamed=BACKING_NAME,
)
