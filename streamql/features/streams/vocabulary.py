"""The words of streams for completion, beside the first keywords of statements (`streamql/dialect/phrases.py`)."""

from __future__ import annotations

from streamql.dialect.rewrites.dollar_names import FUNCTIONS
from streamql.dialect.vocabulary import Vocabulary
from streamql.shared import constants

_POINTS = ("VERSION => ", "TIMESTAMP => ", "OFFSET => ", "STREAM => ")
_PROPERTIES = ("'change_tracking' = 'true'", "'data_retention_days' = '30'")

# fmt: off
VOCABULARY = Vocabulary(
    keywords=frozenset((
        "APPEND_ONLY", "AT", "BEFORE", "CHANGES", "CHANGE_TRACKING", "CONSUME", "INFORMATION", "LATEST", "MAX_BATCH_SIZE", "PROPERTIES",
        "RELEASE", "SHOW_INITIAL_ROWS", "STANDARD", "TABLE_STREAM_MODE",
    )),
    after={
        ("TABLE_STREAM_MODE", "="): ("STANDARD", "APPEND_ONLY"),
        ("SHOW_INITIAL_ROWS", "="): ("TRUE", "FALSE"),
        ("APPEND_ONLY", "="): ("TRUE", "FALSE"),
        ("CONSUME", "="): ("TRUE",),
        ("INFORMATION", "=>"): ("DEFAULT", "APPEND_ONLY"),
        ("CHANGES", "("): ("INFORMATION => DEFAULT", "INFORMATION => APPEND_ONLY"),
        ("SET", "OFFSET"): ("TO LATEST", "VERSION", "TIMESTAMP", "'{\"0\": 0}'"),
        ("SET", "PROPERTIES"): tuple(f"({text})" for text in _PROPERTIES),
        ("SET", "PROPERTIES", "("): _PROPERTIES,
        ("AT", "("): _POINTS,
        ("BEFORE", "("): _POINTS,
        ("END", "("): (_POINTS[-1], *_POINTS[:-1]),
    },
    clauses=(
        "CHANGES (INFORMATION => DEFAULT)", "AT (VERSION => ", "AT (TIMESTAMP => ", "BEFORE (VERSION => ", "END (VERSION => ",
        "AT (STREAM => ", "END (STREAM => ", "WITH (CONSUME = TRUE)", "MAX_BATCH_SIZE",
    ),
    clauses_of={
        ("ALTER", "TABLE"): ("SET PROPERTIES ('change_tracking' = 'true')", "SET CHANGE_TRACKING = TRUE"),
    },
    functions=dict.fromkeys(("stream_has_data", "stream_backlog", "stream_status", *FUNCTIONS), ("stream",)),
    quoted={("STREAM", "=>"): ("stream",)},
    hidden_columns={constants("columns")["changeType"]: ("METADATA$ACTION", "METADATA$ISUPDATE", "METADATA$ROW_ID")},
)
# fmt: on
