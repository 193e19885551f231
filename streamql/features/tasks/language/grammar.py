"""Whether the first words of a text are those of a statement about tasks, and what completion offers behind them."""

from __future__ import annotations

from streamql.dialect.grammar import A_NAME, Follows, Grammar, Parse, Phrase
from streamql.dialect.phrases import LISTING
from streamql.dialect.text.cursor import Cursor
from streamql.features.tasks.language.about import (
    parse_describe_task,
    parse_drop_task,
    parse_execute_task,
    parse_show_create_task,
    parse_show_task_history,
    parse_show_tasks,
)
from streamql.features.tasks.language.alter import parse_alter_task
from streamql.features.tasks.language.create import parse_create_task
from streamql.features.tasks.language.parameters import FIELDS

_PLAIN: dict[str, Parse] = {
    "DROP": parse_drop_task,
    "ALTER": parse_alter_task,
    "EXECUTE": parse_execute_task,
}


def _recognize(cursor: Cursor) -> Parse | None:
    """Returns the function that parses the statement; None: it is about something else. Starts at the first token, and moves the cursor."""
    verb = cursor.advance().key
    if verb == "CREATE":
        _ = cursor.take("OR", "REPLACE") or cursor.take("OR", "ALTER")
        return parse_create_task if cursor.at("TASK") else None
    if verb == "SHOW":
        if cursor.at("TASK", "HISTORY"):
            return parse_show_task_history
        if cursor.at("CREATE", "TASK"):
            return parse_show_create_task
        return parse_show_tasks if cursor.at("TASKS") or cursor.at("TERSE", "TASKS") else None
    if verb in ("DESC", "DESCRIBE"):
        # Without a name it is a table that is named task.
        is_ours = cursor.take("TASK") and cursor.at_name() and not cursor.at("AS", "JSON")
        return parse_describe_task if is_ours else None
    return _PLAIN[verb] if verb in _PLAIN and cursor.at("TASK") else None


_PARAMETERS = (
    "SCHEDULE = '5 minutes'", "SCHEDULE = 'USING CRON 0 9 * * MON Europe/Berlin'", "ALLOW_OVERLAPPING_EXECUTION = TRUE",
    "SUSPEND_TASK_AFTER_NUM_FAILURES = ", "TASK_AUTO_RETRY_ATTEMPTS = ", "USER_TASK_TIMEOUT_MS = ", "FINALIZE = ", "COMMENT = ''",
)  # fmt: skip
_CREATED = (*_PARAMETERS, "AFTER", "WHEN stream_has_data('", "AS")
_ALTERED = (
    "RESUME", "SUSPEND", *(f"SET {text}" for text in _PARAMETERS), *(f"UNSET {key}" for key in FIELDS), "ADD AFTER",
    "REMOVE AFTER", "MODIFY AS", "MODIFY WHEN", "REMOVE WHEN",
)  # fmt: skip
_NAMES = {("AFTER",): "task", ("FINALIZE", "="): "task"}


def _phrase(words: tuple[str, ...], follows: Follows) -> Phrase:
    """Returns a phrase whose misspellings are not those of TABLE and TABLES, which are near to TASK."""
    place = next(i for i, word in enumerate(words) if word.startswith("TASK"))
    return Phrase(words, lambda cursor, _: not set(cursor.key(place)) & {"B", "L"}, follows)


PHRASES = (
    _phrase(("CREATE", "TASK"), Follows(A_NAME, ("IF NOT EXISTS",), _CREATED, _NAMES, query=("AS", "WHEN"))),
    _phrase(("CREATE", "OR", "REPLACE", "TASK"), Follows(A_NAME, (), _CREATED, _NAMES, query=("AS", "WHEN"))),
    _phrase(("DROP", "TASK"), Follows("task", ("IF EXISTS",))),
    _phrase(("ALTER", "TASK"), Follows("task", ("IF EXISTS",), _ALTERED, _NAMES, query=("AS", "WHEN"))),
    _phrase(("EXECUTE", "TASK"), Follows("task", (), ("RETRY LAST",))),
    _phrase(("SHOW", "TASKS"), LISTING),
    _phrase(
        ("SHOW", "TASK", "HISTORY"), Follows("", (), ("FOR", "WHERE", "LIMIT"), {("FOR",): "task"}, query=("WHERE",))
    ),
    _phrase(("SHOW", "CREATE", "TASK"), Follows("task")),
    _phrase(("DESCRIBE", "TASK"), Follows("task")),
    _phrase(("DESC", "TASK"), Follows("task")),
)

GRAMMAR = Grammar(frozenset(("CREATE", "SHOW", "DESC", "DESCRIBE", *_PLAIN)), _recognize, PHRASES)
