"""Tasks of other systems, refused with the `streamql run` line that does the same."""

from __future__ import annotations

import re

from streamql.dialect.cursor import Cursor
from streamql.dialect.tokens import TokenType, string_value
from streamql.errors import StreamqlError

_HAS_DATA = ("SYSTEM$STREAM_HAS_DATA", "STREAM_HAS_DATA", "STREAM_STATUS")
_TASK = re.compile(r"\bTASKS?\b", re.IGNORECASE | re.ASCII)
_UNITS = {"SECOND": "s", "MINUTE": "min", "HOUR": "h", "DAY": "d"}
_INTERVAL = re.compile(r"\s*(\d+)\s*(SECOND|MINUTE|HOUR|DAY|[SMHD])S?\s*\Z", re.IGNORECASE | re.ASCII)
_DAYS = frozenset(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
_CRON_FIELDS = 5
_ANYTHING = "streamql run FILE.sql --every 5min --when-has-data STREAM runs statements on a schedule"


def task_refused(text: str) -> StreamqlError | None:
    """Returns the UNSUPPORTED_CLAUSE error for a statement about a task; None for any other text.

    The hint for CREATE TASK has the schedule, the streams and the name that the statement gives.
    """
    if _TASK.search(text) is None:
        return None
    cursor = Cursor(text)
    start = cursor.token
    verb = cursor.advance().key
    if verb == "CREATE":
        _ = cursor.take("OR", "REPLACE") or cursor.take("OR", "ALTER")
    is_task = cursor.at("TASK") and verb in ("CREATE", "ALTER", "DROP", "EXECUTE")
    if not is_task and not (verb == "SHOW" and cursor.at("TASKS")):
        return None
    cursor.advance()
    hint = _created(cursor) if verb == "CREATE" else _executed(cursor) if verb == "EXECUTE" else _ANYTHING
    return cursor.error("streamql has no tasks", hint=hint, token=start, code="UNSUPPORTED_CLAUSE")


def _file(cursor: Cursor) -> str | None:
    """Returns the file to name: that of the task's name; None: the statement names no task."""
    try:
        parts, _ = cursor.name("the name of the task")
    except StreamqlError:
        return None
    return (re.sub(r"\W+", "_", parts[-1]) or "task") + ".sql"


def _executed(cursor: Cursor) -> str:
    file = _file(cursor)
    return _ANYTHING if file is None else f"streamql run {file} runs the statements of a file once"


def _created(cursor: Cursor) -> str:
    cursor.take("IF", "NOT", "EXISTS")
    file = _file(cursor) or "task.sql"
    every = crontab = None
    condition: list[str] | None = []
    after = ""
    while not cursor.at_end() and not cursor.at("AS"):
        if cursor.take("SCHEDULE"):
            every, crontab = _schedule(cursor)
        elif cursor.take("WHEN"):
            condition = _condition(cursor)
        elif cursor.take("AFTER"):
            after = cursor.found()
        else:
            cursor.advance()
    line = " ".join((f"streamql run {file}", *([f"--every {every}"] if every else []), *_options(condition or [])))
    hint = f"put the statements after AS into {file}, then type: {line}"
    if crontab:
        hint = f"put the statements after AS into {file}, and this line into the crontab: {crontab} {line}"
    elif after:
        hint = f"put the statements after AS into the script of the task {after}, behind its own"
    elif not every:
        hint += " --every 5min"
    if condition is None:
        hint += (
            ". Add --when-has-data STREAM for each stream, if data in one of them is enough for a run. "
            "Write any other condition into the statements"
        )
    return hint


def _options(streams: list[str]) -> list[str]:
    return [f"--when-has-data {stream}" for stream in streams]


def _schedule(cursor: Cursor) -> tuple[str | None, str | None]:
    """`[=] '5 MINUTES'`, `5 MINUTE`, `'USING CRON …'` or `USING CRON '…' ['zone']`: the value of --every, or crontab's five fields."""
    cursor.take("=")
    schedule = ""
    if cursor.at_string():
        schedule = string_value(cursor.advance())
    elif cursor.take("USING", "CRON"):
        schedule = "USING CRON"
        while cursor.at_string():
            schedule += " " + string_value(cursor.advance())
    elif cursor.token.type is TokenType.NUMBER:
        schedule = f"{cursor.advance().text} {cursor.advance().text}"
    if m := _INTERVAL.match(schedule):
        unit = m.group(2).upper()
        return m.group(1) + (_UNITS.get(unit) or next(u for name, u in _UNITS.items() if name.startswith(unit))), None
    start, _, cron = schedule.upper().partition("CRON")
    return None, _crontab(schedule[-len(cron) :].split()) if start.strip() == "USING" and cron.strip() else None


def _crontab(parts: list[str]) -> str | None:
    """Returns the fields of a cron schedule as a crontab has them; None: these are not cron's fields."""
    zone = ""
    if len(parts) > _CRON_FIELDS and parts[-1][0].isalpha() and parts[-1].upper() not in _DAYS:
        zone = f"CRON_TZ={parts.pop()} "
    fields = parts[-_CRON_FIELDS:]  # Databend's schedules begin with a field for seconds
    return zone + " ".join(fields) if len(fields) == _CRON_FIELDS else None


def _condition(cursor: Cursor) -> list[str] | None:
    """Returns the streams of `f('a') [= TRUE] [OR f('b') …]` up to AS; None: the condition says anything else."""
    streams: list[str] = []
    while (stream := _asked(cursor)) is not None:
        streams.append(_word(stream))
        if cursor.at("AS"):
            return streams
        if not cursor.take("OR"):
            break
    while not cursor.at_end() and not cursor.at("AS"):
        cursor.advance()
    return None


def _asked(cursor: Cursor) -> str | None:
    """Returns the stream of one `f('a') [= TRUE]`; None: it is anything else."""
    opened = 0
    while cursor.take("("):
        opened += 1
    if not cursor.at_any(_HAS_DATA) or cursor.key(1) != "(":
        return None
    cursor.index += 2
    stream = string_value(cursor.advance()) if cursor.at_string() else None
    if not cursor.take(")") or (cursor.take("=") and not cursor.take("TRUE")):
        return None
    while opened and cursor.take(")"):
        opened -= 1
    return None if opened else stream


def _word(name: str) -> str:
    """Returns the name as a word of a shell's command line."""
    return name if re.fullmatch(r"[\w.]+", name) else "'" + name.replace("'", "'\\''") + "'"
