"""When a table is refreshed: TARGET_LAG = …, and REFRESH [START WITH time] [INTERVAL n unit] [VCLUSTER v]."""

from __future__ import annotations

from collections.abc import Collection

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import Token, TokenType, string_value
from streamql.durations import MEANING, UNITS, read_seconds
from streamql.errors import StreamqlError
from streamql.features.dynamic.language.statements import Schedule
from streamql.misspelt import suggestion

LAG_HINT = "write TARGET_LAG = '10 minutes', or TARGET_LAG = DOWNSTREAM"
INTERVAL_HINT = "write REFRESH INTERVAL 10 MINUTE"
_NUMBER_HINT = "write a whole number and SECOND, MINUTE, HOUR or DAY, such as REFRESH INTERVAL 10 MINUTE"

_UNITS = [unit.name.upper() for unit in UNITS]
_SECONDS_MAX = 100 * 365 * 86400

_BEFORE_OPERAND = frozenset(("+", "-", "*", "/"))
_MODES = {
    "COMPLETE": "FULL",
    "FULL": "FULL",
    "FAST": "INCREMENTAL",
    "INCREMENTAL": "INCREMENTAL",
    "FORCE": "AUTO",
    "AUTO": "AUTO",
}
_OTHER_SCHEDULES = frozenset(("ON", "ASYNC", "MANUAL", "EVERY", "NEVER", "NEXT"))


def read_target_lag(cursor: Cursor) -> Schedule:
    """`[=] 'n unit'` or `[=] DOWNSTREAM`; TARGET_LAG is read. Raises INVALID_PROPERTY."""
    cursor.take("=")
    token = cursor.token
    text = string_value(token) if cursor.at_string() else token.key
    if text.strip().upper() == "DOWNSTREAM":
        cursor.advance()
        return Schedule(is_downstream=True)
    lag_s = _seconds(text) if cursor.at_string() else None
    if lag_s is None:
        raise _not_duration(cursor, "TARGET_LAG", LAG_HINT, ", or DOWNSTREAM")
    _check(cursor, lag_s, "TARGET_LAG", LAG_HINT, token)
    cursor.advance()
    return Schedule(lag_s=lag_s)


def read_refresh(cursor: Cursor, following: Collection[str]) -> tuple[Schedule | None, bool]:
    """Returns what follows REFRESH, which is read: the schedule, and whether VCLUSTER names a cluster. `following`: the keywords that may
    come after the clause. Raises SYNTAX_ERROR, UNSUPPORTED_CLAUSE, INVALID_PROPERTY."""
    _refuse(cursor)
    start: str | None = None
    interval_s: int | None = None
    seen: set[str] = set()
    while cursor.at_any(("START", "INTERVAL", "VCLUSTER")):
        token = cursor.advance()
        if token.key in seen:
            raise cursor.error(f"{token.key} is given twice", token=token)
        seen.add(token.key)
        if token.key == "START":
            cursor.expect("WITH", hint="write REFRESH START WITH time INTERVAL 10 MINUTE")
            start = cursor.raw("a time", lambda: _ends_time(cursor, following))
        elif token.key == "INTERVAL":
            interval_s = _interval(cursor)
        else:
            read_compute_name(cursor, "the cluster")
    if not seen:
        raise _no_schedule(cursor)
    if start is not None and interval_s is None:
        raise cursor.expected("INTERVAL", "write REFRESH START WITH time INTERVAL 10 MINUTE")
    schedule = None if interval_s is None else Schedule(interval_s=interval_s, start=start)
    return schedule, "VCLUSTER" in seen


def read_compute_name(cursor: Cursor, what: str) -> None:
    """Step over `[=] name`, where the name may be a string: what VCLUSTER and WAREHOUSE name."""
    cursor.take("=")
    if cursor.at_string():
        cursor.advance()
    else:
        cursor.single_name(f"the name of {what}")


def _refuse(cursor: Cursor) -> None:
    key = cursor.key()
    if key in _MODES:
        raise cursor.refused(f"REFRESH {key}", "the mode has its own clause", f"write REFRESH_MODE = {_MODES[key]}")
    if key in _OTHER_SCHEDULES:
        hint = f"{INTERVAL_HINT}, or leave the clause out: then only REFRESH statements refresh"
        raise cursor.refused(f"REFRESH {key}", "a schedule is an interval or a lag", hint)


def _no_schedule(cursor: Cursor) -> StreamqlError:
    hint = suggestion(cursor.key(), ("START", "INTERVAL", "VCLUSTER"))
    return cursor.expected("START WITH, INTERVAL or VCLUSTER", hint or INTERVAL_HINT)


def _ends_time(cursor: Cursor, following: Collection[str]) -> bool:
    """Returns whether the expression of START WITH ends before the next token. An INTERVAL behind an operator is a part of it."""
    if cursor.at("INTERVAL"):
        return cursor.key(-1) not in _BEFORE_OPERAND
    return cursor.at_any(("VCLUSTER", "START", *following))


def _interval(cursor: Cursor) -> int:
    """`n unit [n unit]…`, `'n' unit` or `'n unit'` in seconds; INTERVAL is read."""
    first, start = cursor.index, cursor.token
    seconds = _seconds(string_value(start)) if cursor.at_string() else None
    if seconds is not None:
        cursor.advance()
    else:
        seconds = _seconds(_numbers_and_units(cursor))
    if seconds is None:
        cursor.index = first
        raise _not_duration(cursor, "REFRESH INTERVAL", _NUMBER_HINT)
    _check(cursor, seconds, "REFRESH INTERVAL", _NUMBER_HINT, start)
    return seconds


def _numbers_and_units(cursor: Cursor) -> str:
    """Returns numbers and units as one text. Raises INVALID_PROPERTY at the first token that does not fit."""
    words: list[str] = []
    while not words or cursor.token.type is TokenType.NUMBER:
        number = string_value(cursor.token) if cursor.at_string() else cursor.token.text
        for word, with_other in ((number, f"{number} s"), (cursor.key(1), f"1 {cursor.key(1)}")):
            if _seconds(with_other) is None:
                raise _not_duration(cursor, "REFRESH INTERVAL", _NUMBER_HINT)
            cursor.advance()
            words.append(word)
    return " ".join(words)


def _seconds(text: str) -> int | None:
    """Returns a duration of whole numbers and whole seconds; None: the text is something else."""
    seconds = None if "." in text else read_seconds(text)
    return int(seconds) if seconds is not None and seconds.is_integer() else None


def _check(cursor: Cursor, seconds: int, what: str, hint: str, token: Token) -> None:
    if not 1 <= seconds <= _SECONDS_MAX:
        limit = "least 1 second" if seconds < 1 else "most 100 years"
        raise cursor.error(f"{what} is at {limit}", hint=hint, token=token, code="INVALID_PROPERTY")


def _not_duration(cursor: Cursor, what: str, hint: str, or_else: str = "") -> StreamqlError:
    """Returns the error for the next token. Its last word may be a misspelt unit. `or_else`: what the clause takes beside durations."""
    words = (string_value(cursor.token) if cursor.at_string() else cursor.key()).split()
    guess = suggestion(words[-1].removesuffix("s"), _UNITS) if words and words[-1].isalpha() else ""
    message = f"{what} takes {MEANING}{or_else}, found {cursor.found()}"
    return cursor.error(message, hint=guess or hint, code="INVALID_PROPERTY")
