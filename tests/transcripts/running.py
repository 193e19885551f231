"""Runs the steps of a transcript in a schema of its own and compares what comes with what should."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamql.delta.jvm import message
from streamql.dialect.text.tokens import tokenize
from streamql.errors import StreamqlError
from tests.lines import DELTA, SPARK
from tests.transcripts.masks import Bindings, masked, match, match_table
from tests.transcripts.script import ERROR_START, FIRST_CONNECTION, WARNING_START, Step, Transcript
from tests.transcripts.tables import Table, ordered, parse_table, render
from tests.transcripts.topics import Topics

SCHEMA = "demo"
"""What the schema of every transcript is called, so that names in messages are the same in each."""

RunSql = Callable[[str, SparkSession], DataFrame]

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "SHOW", "DESC", "DESCRIBE", "(")
_TAILS = re.compile(r"\n+JVM stacktrace:|;?\s*SQLSTATE: \w{5}|\n+== (?:SQL|DataFrame)|; line \d+ pos \d+;?(?:\n|\Z)")


@dataclass(frozen=True)
class Result:
    """What a statement gave: a table, an error's lines, or neither; and the warnings it logged."""

    table: Table | None = None
    error: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """As a transcript shows it."""
        if self.error:
            return [masked(line) for line in self.error]
        if self.table is None:
            return []
        return render(_mapped(self.table, masked))

    def mapped(self, change: Callable[[str], str]) -> Result:
        """The result with each of its texts changed."""
        table = None if self.table is None else _mapped(self.table, change)
        return Result(table, tuple(map(change, self.error)), tuple(map(change, self.warnings)))


def _mapped(table: Table, change: Callable[[str], str]) -> Table:
    return Table(table.header, tuple(tuple(map(change, row)) for row in table.rows))


@dataclass(frozen=True)
class Difference:
    """A step whose result is not the expected one."""

    transcript: Transcript
    step: Step
    result: Result

    def __str__(self) -> str:
        expected = "\n".join(self.step.block) or "(no error)"
        if not self.step.block and not self.result.error:
            expected = "(a query without a result below it: run python -m tests.transcripts --update)"
        got = "\n".join([*(f"{WARNING_START}{w}" for w in self.result.warnings), *self.result.lines()])
        where = f"{self.transcript.path.name}:{self.step.line}"
        return f"{where}\n{self.step.text};\nexpected\n{expected}\ngot\n{got or '(nothing)'}\n"


@dataclass(frozen=True)
class Outcome:
    """A step as it ran, and the difference if there is one."""

    step: Step
    result: Result
    difference: Difference | None


def plain_sql(text: str, spark: SparkSession) -> DataFrame:
    """As anyone runs SQL on Spark."""
    return spark.sql(text)


def run(
    transcript: Transcript,
    spark: SparkSession,
    run_sql: RunSql = plain_sql,
    bootstrap: Callable[[], str] | None = None,
) -> Generator[Outcome, None, None]:
    """Runs the steps one by one, each in its connection, in a fresh schema that is dropped afterwards. `bootstrap` gives the address of
    a Kafka broker; it is called if the transcript needs one, and None if it does not."""
    with Topics(bootstrap) as topics, _schema(spark):
        connections: dict[str, SparkSession] = {}
        bindings: Bindings = {}
        for step in transcript.steps:
            if step.action is not None:
                topics.do(step.action)
                yield Outcome(step, Result(), None)
                continue
            if any(line > {"spark": SPARK, "delta": DELTA}[of] for of, line in step.needs):
                continue
            if step.connection not in connections:
                connections[step.connection] = spark.newSession()
                connections[step.connection].sql(f"USE {SCHEMA}")
            result = _run_step(replace(step, text=topics.to_broker(step.text)), connections[step.connection], run_sql)
            result = result.mapped(topics.from_broker)
            after = _compare(transcript, step, result, bindings)
            bindings = bindings if after is None else after
            yield Outcome(step, result, Difference(transcript, step, result) if after is None else None)


@contextmanager
def _schema(spark: SparkSession) -> Iterator[None]:
    before, connections = _shown(spark, "SCHEMAS"), _shown(spark, "CONNECTIONS")
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    try:
        yield
    finally:
        for schema in sorted(_shown(spark, "SCHEMAS") - before - {"streamql"}):
            for object_type in ("TASK", "STREAM", "EXTERNAL TABLE", "DYNAMIC TABLE", "MATERIALIZED VIEW"):
                for name in _shown(spark, f"{object_type}S IN `{schema}`"):
                    spark.sql(f"DROP {object_type} `{schema}`.`{name}`")
            spark.sql(f"DROP SCHEMA `{schema}` CASCADE")
        for name in _shown(spark, "CONNECTIONS") - connections:
            spark.sql(f"DROP STORAGE CONNECTION `{name}`")


def _shown(spark: SparkSession, what: str) -> set[str]:
    """The names that SHOW … lists."""
    return {row[0] for row in spark.sql(f"SHOW {what}").collect()}


class _Warnings(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def _run_step(step: Step, spark: SparkSession, run_sql: RunSql) -> Result:
    heard = _Warnings()
    logger = logging.getLogger("streamql")
    logger.addHandler(heard)
    try:
        table = _rows(run_sql(step.text, spark))
        if table is not None and not is_ordered(step.text):
            table = ordered(table)
        return Result(table, warnings=tuple(heard.texts))
    except (PySparkException, Py4JJavaError, StreamqlError) as e:
        return Result(error=error_lines(e), warnings=tuple(heard.texts))
    finally:
        logger.removeHandler(heard)


def _rows(frame: DataFrame) -> Table | None:
    """All rows, as Spark itself turns values into text; None for a statement that has no columns."""
    if not frame.columns:
        return None
    names = [f"c{i}" for i in range(len(frame.columns))]
    texts = frame.toDF(*names).select(*(F.col(n).cast("string") for n in names))
    rows = tuple(tuple("NULL" if v is None else v.replace("\n", "\\n") for v in row) for row in texts.collect())
    return Table(tuple(frame.columns), rows)


def error_lines(e: Exception) -> tuple[str, ...]:
    """ERROR [CODE] message, and the hint in a line of its own; without Spark's plans and stack traces."""
    text, behind, hint = message(e).split("\n\nJVM stacktrace:")[0].strip().partition("\nHint: ")
    text = _TAILS.split(text, maxsplit=1)[0].strip() + (behind + _TAILS.split(hint, maxsplit=1)[0]).rstrip()
    return tuple(line.rstrip() for line in f"ERROR {text}".splitlines() if line.strip())


def is_query(text: str) -> bool:
    """Whether the statement is there for its rows, so that a transcript must show them."""
    return tokenize(text)[0].key in _QUERIES


def is_ordered(text: str) -> bool:
    """Whether the statement's rows have an order: it has an ORDER BY of its own, outside all parentheses; or it says how refreshes run."""
    depth = 0
    tokens = tokenize(text)
    keys = [token.key for token in tokens]
    if keys[:2] == ["EXPLAIN", "REFRESH"] or (keys[0] == "SHOW" and keys[3:5] == ["REFRESH", "HISTORY"]):
        return True
    for token, following in pairwise(tokens):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth == 0 and token.key in ("ORDER", "SORT") and following.key == "BY":
            return True
    return False


def _compare(transcript: Transcript, step: Step, result: Result, bindings: Bindings) -> Bindings | None:
    """The bindings after the step; None where its result is not the expected one."""
    as_written = transcript.times_as_written
    warnings = [line for line in step.block if line.startswith(WARNING_START)]
    for line in warnings:
        if not any(match(line[len(WARNING_START) :], heard, bindings) is not None for heard in result.warnings):
            return None
    block = step.block[len(warnings) :]
    if block and block[0].startswith(ERROR_START):
        return match_error(block, result.error, bindings)
    if result.error:
        return None
    if not block:
        return None if is_query(step.text) and result.table is not None else bindings
    expected = parse_table(block)
    if expected is None or result.table is None:
        return None
    return match_table(expected, result.table, bindings, in_order=is_ordered(step.text), times_as_written=as_written)


def match_error(block: tuple[str, ...], error: tuple[str, ...], bindings: Bindings) -> Bindings | None:
    """A block that is a bare ERROR [CODE] is content with the code; else every line must match."""
    if not error:
        return None
    if len(block) == 1 and block[0].endswith("]"):
        return bindings if error[0].startswith(block[0]) else None
    return match("\n".join(block), "\n".join(error), bindings)


def first_connection(transcript: Transcript) -> bool:
    """Whether one connection is enough, so that the transcript is a script that any client runs."""
    return all(step.connection == FIRST_CONNECTION for step in transcript.steps)
