"""Runs the statements of a task, in a session of their own.

Statements that read streams are consumptions, so that their rows arrive once. Each other INSERT, UPDATE, DELETE and MERGE carries a
transaction of Delta (txnAppId, txnVersion): the id of the statement, and the number of the graph run. If a process dies after such a
statement has committed, the process that runs the task again passes over it. A consumption replaces this transaction by its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from streamql import bridge
from streamql.consume import session_transactions
from streamql.dialect.text.shape import shape
from streamql.dialect.text.splices import Splice, apply
from streamql.dialect.text.splitting import split
from streamql.dialect.text.tokens import Token, scan, tokenize
from streamql.errors import StreamqlError
from streamql.features.tasks.model.runs import GraphRun
from streamql.features.tasks.model.task import Task
from streamql.names import quote
from streamql.sessions import run_sql

APP_ID, TXN_VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_WRITES = frozenset(("INSERT", "UPDATE", "DELETE", "MERGE"))
_CONTROL = frozenset(
    (
        "DECLARE", "IF", "CASE", "WHILE", "LOOP", "REPEAT", "FOR", "LEAVE", "ITERATE", "SIGNAL", "OPEN", "FETCH", "CLOSE", "BEGIN", "NOT",
        "ATOMIC",
    )
)  # fmt: skip
"""First words inside a block for which it is a script of Spark's, which runs as a whole."""
_PLAIN_BEGIN = frozenset(("", ";", "TRANSACTION", "TRAN", "WORK"))


class Stopped(Exception):
    """The task was asked to stop between two statements."""


def statements_of(body: str) -> list[str]:
    """Returns the statements of a body. A block with control flow is one statement, which Spark runs as a script."""
    tokens = list(scan(body))
    inner = _inside(body, tokens)
    if inner is None:
        return [f.text for f in split(body)]
    found = [f.text for f in split(_with_transactions(inner))]
    return [body] if any(_is_control(text) for text in found) else found


def _inside(body: str, tokens: list[Token]) -> str | None:
    """Returns the text between BEGIN and END; None: the body is not a block."""
    while tokens and tokens[-1].key == ";":
        tokens = tokens[:-1]
    keys = [token.key for token in tokens]
    if len(keys) < 3 or (keys[0], keys[-1]) != ("BEGIN", "END") or keys[1] in _PLAIN_BEGIN:
        return None
    return body[tokens[1].start : tokens[-2].end]


def _with_transactions(text: str) -> str:
    """Returns statements with the plain BEGIN of Databend and Snowflake as BEGIN TRANSACTION, which the splitter tells from a block."""
    tokens = list(scan(text))
    keys = ["", *(token.key for token in tokens), ""]
    plain = [t for i, t in enumerate(tokens) if keys[i] in ("", ";") and keys[i + 1 : i + 3] == ["BEGIN", ";"]]
    return apply(text, [Splice(t.start, t.end, "BEGIN TRANSACTION") for t in plain])


def _is_control(text: str) -> bool:
    tokens = tokenize(text)
    first = tokens[0].key
    if first == "BEGIN" and tokens[1].key in _PLAIN_BEGIN:
        return False
    return first in _CONTROL or tokens[1].key == ":"


def session_for(spark: SparkSession, task: Task) -> SparkSession:
    """Returns a new session in which the statements of a task run: in its schema, with its settings. Raises what USE raises."""
    own = spark.newSession()
    bridge.install(own)
    for key, value in task.conf.items():
        own.conf.set(key, value)
    own.sql("USE " + ".".join(map(quote, task.place)))
    return own


def run_body(spark: SparkSession, root: Task, run: GraphRun, task: Task, stops: Callable[[], bool]) -> None:
    """Runs the statements of a task. `stops`: asked between statements, but not inside a transaction. Raises `Stopped`, what a statement
    raises, and INVALID_TRANSACTION_STATE if the statements end inside a transaction, which is rolled back."""
    own = session_for(spark, task)
    for index, text in enumerate(statements_of(task.body)):
        is_inside = session_transactions.is_open(own)
        if stops() and not is_inside:
            raise Stopped
        once = None if root.allows_overlap else _app_id(root, run, task, index, text)
        try:
            with _once(own, text, once, run.number):
                for _ in run_sql(text, own).toLocalIterator():
                    pass
        except BaseException:
            if session_transactions.is_open(own):
                session_transactions.abandon(own)
            raise
    if session_transactions.is_open(own):
        session_transactions.abandon(own)
        raise StreamqlError(
            "INVALID_TRANSACTION_STATE",
            "the statements of the task end inside a transaction, which was rolled back",
            hint="end them with COMMIT",
        )


def _app_id(root: Task, run: GraphRun, task: Task, index: int, text: str) -> str:
    """Returns the id by which Delta recognizes a statement of a task in another attempt of a run. A corrected statement is another one. A
    finalizer runs behind each attempt."""
    words = hashlib.sha256(text.encode()).hexdigest()[:16]
    again = f":{run.attempt}" if task.finalizes is not None else ""
    return f"streamql:task:{root.uuid}:{task.uuid}:{index}:{words}{again}"


@contextmanager
def _once(own: SparkSession, text: str, app_id: str | None, number: int) -> Iterator[None]:
    """Lets a statement that writes take effect once for a number. `app_id` None: it is not to be passed over."""
    tokens = tokenize(text)
    writes = shape(tokens)
    is_single = sum(token.key == "INSERT" for token in tokens) <= 1  # Delta would pass over the second one into a table
    if app_id is None or tokens[writes.verb].key not in _WRITES or not is_single:
        yield
        return
    own.conf.set(APP_ID, app_id)
    own.conf.set(TXN_VERSION, str(number))
    try:
        yield
    finally:
        own.conf.unset(APP_ID)
        own.conf.unset(TXN_VERSION)
