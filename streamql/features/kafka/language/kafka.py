"""What a Kafka external table may say: its columns and its options. Pure; `external` reads the statements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from streamql.dialect.points import POSITIONS_EXAMPLE, parse_positions
from streamql.dialect.text.tokens import Token, TokenType, name_part
from streamql.misspelt import suggestion

KAFKA_COLUMNS: tuple[tuple[str, str], ...] = (
    ("topic", "STRING"),
    ("partition", "INT"),
    ("offset", "BIGINT"),
    ("timestamp", "TIMESTAMP_LTZ"),
    ("timestamp_type", "STRING"),
    ("headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>"),
    ("key", "BINARY"),
    ("value", "BINARY"),
)
"""(name, type) of the columns of each Kafka table. The types do not depend on the session's settings."""

# What statements may write for a type, beside the type itself. ClickZetta writes headers MAP<STRING, BINARY>.
_OTHER_SPELLINGS = {
    "INT": ("INTEGER",),
    "BIGINT": ("LONG",),
    "TIMESTAMP_LTZ": ("TIMESTAMP",),
    "ARRAY<STRUCT<key: STRING, value: BINARY>>": ("ARRAY<STRUCT<KEY STRING, VALUE BINARY>>", "MAP<STRING, BINARY>"),
}
COLUMNS_HINT = (
    f"the columns are {', '.join(f'`{name}` {type_}' for name, type_ in KAFKA_COLUMNS)}; or leave the list out"
)

GROUP, TOPICS, STARTING, ENDING = "group_id", "topics", "starting_offset", "ending_offset"
_OPTIONS = {
    GROUP: GROUP,
    TOPICS: TOPICS,
    "topic": TOPICS,
    STARTING: STARTING,
    "starting_offsets": STARTING,
    "startingoffsets": STARTING,
    ENDING: ENDING,
    "ending_offsets": ENDING,
    "endingoffsets": ENDING,
}
_PATTERNS = frozenset(("topics_pattern", "topic_pattern", "topicspattern", "topicpattern", "subscribepattern"))
KAFKA_PREFIX = "kafka."
_PREFIXES = (KAFKA_PREFIX, "cz.kafka.")
_TOPIC = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,249}")
_PARTITION = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_PARTITION_MAX = 2**31 - 1  # Kafka numbers partitions by 32-bit integers
_WORDS = {STARTING: ("earliest", "latest"), ENDING: ("latest",)}

Fault = tuple[str, str]
"""What is wrong, and a hint."""


def column_fault(columns: Sequence[tuple[str, str]]) -> tuple[int, Fault] | None:
    """Returns the index of the first column that a Kafka table cannot have, and its fault; None: all are right.

    `columns` are (name, type) with types as `type_text` gives them: a part of KAFKA_COLUMNS in any order.
    """
    known = dict(KAFKA_COLUMNS)
    seen: set[str] = set()
    for index, (name, type_) in enumerate(columns):
        lower = name.lower()
        if lower not in known:
            return index, (f"a Kafka table has no column {name}", suggestion(lower, known) or COLUMNS_HINT)
        if lower in seen:
            return index, (f"the column {name} is given twice", "leave one of them out")
        seen.add(lower)
        if type_ not in (known[lower].upper(), *_OTHER_SPELLINGS.get(known[lower], ())):
            return index, (f"the column {name} of a Kafka table has another type", f"write `{lower}` {known[lower]}")
    return None


def type_text(tokens: Sequence[Token]) -> str:
    """Returns a type as written, in upper case, with one space between words and behind commas and colons."""
    text = ""
    for token in tokens:
        word = name_part(token) or token.text
        is_word = token.type in (TokenType.WORD, TokenType.BACKQUOTED)
        space = " " if text.endswith((",", ":")) or (is_word and text[-1:].isalnum()) else ""
        text += space + word.upper()
    return text


def option_name(key: str) -> str | None:
    """Returns the name under which a table keeps an option; None: a table has no such option."""
    lower = key.lower()
    return key if lower.startswith(_PREFIXES) else _OPTIONS.get(lower)


def is_pattern(key: str) -> bool:
    """Returns whether a key names topics by a pattern."""
    return key.lower().replace(".", "_") in _PATTERNS


def unknown_option_hint(key: str) -> str:
    """Returns what to type instead of an option that a table does not have."""
    hint = suggestion(key.replace(".", "_"), (GROUP, TOPICS, STARTING, ENDING))
    if hint:
        return hint
    if "." in key:
        return f"settings of Kafka's client begin with {KAFKA_PREFIX} here: write '{KAFKA_PREFIX}{key}' = '…'"
    return f"the options are {GROUP}, {TOPICS}, {STARTING}, {ENDING}, and settings of Kafka's client: '{KAFKA_PREFIX}…'"


def option_value(name: str, value: str) -> str | Fault:
    """Returns the value to keep for an option of a name, or its fault. Only values of the table's own options are checked."""
    if name == TOPICS:
        return _topic(value.strip())
    if name not in _WORDS:
        return value
    if value.strip().lower() in _WORDS[name]:
        return value.strip().lower()
    if _is_offsets(value):
        return value
    words = " or ".join(f"'{name}' = '{word}'" for word in _WORDS[name])
    what = " or ".join(_WORDS[name])
    return (
        f"{name} takes {what}, or a JSON object of partition and offset",
        f"write {words}, or '{name}' = {POSITIONS_EXAMPLE}",
    )


def _is_offsets(value: str) -> bool:
    """Returns whether a value is an offset for each of some partitions, as JSON."""
    positions = parse_positions(value)
    return positions is not None and all(
        _PARTITION.fullmatch(part) is not None and int(part) <= _PARTITION_MAX for part, _ in positions
    )


def _topic(value: str) -> str | Fault:
    if "," in value:
        return "a table has one topic, this names several", "make a table for each topic"
    if _TOPIC.fullmatch(value) is None:
        return (
            "topics takes the name of a topic: up to 249 letters, digits, dots, underscores and hyphens",
            "write 'topics' = 'name'",
        )
    return value


def missing_option(options: Mapping[str, str]) -> Fault | None:
    """Returns the fault of a table whose options lack one that it needs; None: all are there."""
    if TOPICS in options:
        return None
    return "a Kafka table names its topic, this one names none", "write OPTIONS ('topics' = 'name', …)"
