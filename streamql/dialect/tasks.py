"""Tasks of other systems, refused with the `streamql run` line that does the same."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streamql.dialect.text.cursor import Cursor
from streamql.dialect.text.shape import chain
from streamql.dialect.text.tokens import TokenType, string_value
from streamql.durations import in_words, read_seconds
from streamql.errors import StreamqlError

_HAS_DATA = ("SYSTEM$STREAM_HAS_DATA", "STREAM_HAS_DATA", "STREAM_STATUS")
_TASK = re.compile(r"\bTASKS?\b", re.IGNORECASE | re.ASCII)
_DAYS = frozenset(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
_CRON_FIELDS = 5
_ZONE_END = "\n"
_NOT_OF_CRONTAB = re.compile(r"[#?]|(?<![A-Za-z])\d*[LW](?![A-Za-z])")
"""Signs of other systems' cron fields: the last day, the nearest weekday, the nth weekday, any value."""
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
    cursor.take("IF", "EXISTS")
    file = _file(cursor)
    return _ANYTHING if file is None else f"streamql run {file} runs the statements of a file once"


def _created(cursor: Cursor) -> str:
    cursor.take("IF", "NOT", "EXISTS")
    file = _file(cursor) or "task.sql"
    schedule: _Schedule | None = None
    condition: list[str] | None = []
    after: list[str] = []
    final = ""
    while not cursor.at_end() and not cursor.at("AS"):
        if cursor.take("CLONE"):
            return f"copy the script of the task {_task_name(cursor)} into {file}, and run it as that script runs"
        if cursor.take("SCHEDULE"):
            schedule = _schedule(cursor)
        elif cursor.take("WHEN"):
            condition = _condition(cursor)
        elif cursor.take("AFTER"):
            after = _tasks(cursor)
        elif cursor.take("FINALIZE"):
            cursor.take("=")
            final = _task_name(cursor)
        else:
            cursor.advance()
    line = f"streamql run {file}"
    if schedule and schedule.every:
        line += f" --every {schedule.every}"
    line = " ".join((line, *_options(condition or [])))
    hint = f"put the statements after AS into {file}, {_start(line, schedule, after, final)}"
    if condition is None:
        hint += (
            ". Add --when-has-data STREAM for each stream, if data in one of them is enough for a run. "
            "Write any other condition into the statements"
        )
    return hint


def _start(line: str, schedule: _Schedule | None, after: list[str], final: str) -> str:
    """Returns how the command line starts: by itself, from the crontab, or behind other tasks."""
    if schedule and schedule.crontab:
        zone, _, fields = schedule.crontab.rpartition(_ZONE_END)
        where = f"the crontab, below a line {zone}" if zone else "the crontab"
        return f"and this line into {where}: {fields} {line}"
    if schedule and schedule.is_unknown:
        return f"and start it by a scheduler that knows L, # and ?, which crontab does not: {line}"
    if final:
        return f"and type this behind the scripts of the task {final} and those that follow it: {line}"
    if after:
        which = (
            f"the script of the task {after[0]}" if len(after) == 1 else f"the scripts of the tasks {_listed(after)}"
        )
        return f"and type this behind {which}: {line}"
    return f"then type: {line}" + ("" if schedule and schedule.every else " --every 5min")


def _tasks(cursor: Cursor) -> list[str]:
    """`a, b, …` behind AFTER."""
    names = [_task_name(cursor)]
    while cursor.take(","):
        names.append(_task_name(cursor))
    return names


def _task_name(cursor: Cursor) -> str:
    """Returns the name that comes next, or what stands in its place."""
    start = cursor.index
    parts, cursor.index = chain(cursor.tokens, start)
    if parts:
        return ".".join(parts)
    found = cursor.found()
    cursor.advance()
    return found


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _options(streams: list[str]) -> list[str]:
    return [f"--when-has-data {stream}" for stream in streams]


@dataclass(frozen=True)
class _Schedule:
    """The value of --every, or crontab's five fields. `is_unknown`: cron's fields, with signs that crontab does not have."""

    every: str | None = None
    crontab: str | None = None
    is_unknown: bool = False


def _schedule(cursor: Cursor) -> _Schedule:
    """`[=] '5 MINUTES'`, `5 MINUTE`, `'USING CRON …'` or `USING CRON '…' ['zone']`."""
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
    if (seconds := read_seconds(schedule)) is not None:
        return _Schedule(in_words(seconds * 1000, is_exact=True).replace(" ", ""))
    start, _, cron = schedule.upper().partition("CRON")
    if start.strip() != "USING" or not cron.strip():
        return _Schedule()
    crontab = _crontab(schedule[-len(cron) :].split())
    if crontab is not None and any(map(_NOT_OF_CRONTAB.search, crontab.split()[-_CRON_FIELDS:])):
        return _Schedule(is_unknown=True)
    return _Schedule(crontab=crontab)


def _crontab(parts: list[str]) -> str | None:
    """Returns the fields of a cron schedule as a crontab has them, behind a line with its zone; None: these are not cron's fields."""
    zone = ""
    if len(parts) > _CRON_FIELDS and parts[-1][0].isalpha() and parts[-1].upper() not in _DAYS:
        zone = f"CRON_TZ={parts.pop()}{_ZONE_END}"
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
