"""When a table is refreshed: TARGET_LAG = …, and REFRESH [START WITH time] [INTERVAL n unit] [VCLUSTER v]."""

from __future__ import annotations

import re
from collections.abc import Collection

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.tokens import Token, string_value
from streamql.errors import StreamqlError
from streamql.features.dynamic.language.statements import Schedule
from streamql.misspelt import suggestion

LAG_HINT = "write TARGET_LAG = '10 minutes', or TARGET_LAG = DOWNSTREAM"
INTERVAL_HINT = "write REFRESH INTERVAL 10 MINUTE"

_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}
_DIGITS_MAX = 9
_NUMBER = re.compile(rf"\s*(\d{{1,{_DIGITS_MAX}}})\s*", re.ASCII)
_DURATION = re.compile(rf"{_NUMBER.pattern}({'|'.join(_UNITS)})S?\s*", re.IGNORECASE | re.ASCII)

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
        message = (
            f"TARGET_LAG takes a duration in seconds, minutes, hours or days, or DOWNSTREAM, found {cursor.found()}"
        )
        raise cursor.error(message, hint=_unit_hint(text) or LAG_HINT, code="INVALID_PROPERTY")
    if lag_s < 1:
        raise cursor.error("TARGET_LAG is at least 1 second", hint=LAG_HINT, code="INVALID_PROPERTY")
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
    """`n unit`, `'n' unit` or `'n unit'` in seconds; INTERVAL is read."""
    start = cursor.token
    if cursor.at_string() and (seconds := _seconds(string_value(start))) is not None:
        cursor.advance()
    else:
        seconds = _number_and_unit(cursor, start)
    if seconds < 1:
        raise cursor.error(
            "REFRESH INTERVAL is at least 1 second", hint=INTERVAL_HINT, token=start, code="INVALID_PROPERTY"
        )
    return seconds


def _number_and_unit(cursor: Cursor, start: Token) -> int:
    text = string_value(start) if cursor.at_string() else start.text
    number = _NUMBER.fullmatch(text)
    if number is None:
        message = f"REFRESH INTERVAL takes a whole number of seconds, minutes, hours or days, found {cursor.found()}"
        raise cursor.error(message, hint=_unit_hint(text) or INTERVAL_HINT, code="INVALID_PROPERTY")
    cursor.advance()
    unit = cursor.key().removesuffix("S")
    if unit not in _UNITS:
        message = f"REFRESH INTERVAL takes SECOND, MINUTE, HOUR or DAY, found {cursor.found()}"
        raise cursor.error(message, hint=_unit_hint(cursor.key()) or INTERVAL_HINT, code="INVALID_PROPERTY")
    cursor.advance()
    return int(number.group(1)) * _UNITS[unit]


def _seconds(text: str) -> int | None:
    found = _DURATION.fullmatch(text)
    return None if found is None else int(found.group(1)) * _UNITS[found.group(2).upper()]


def _unit_hint(text: str) -> str:
    """Returns the hint for a misspelt unit, the last word of the text; empty: it resembles none."""
    words = text.split()
    return suggestion(words[-1].removesuffix("s"), _UNITS) if words and words[-1].isalpha() else ""
