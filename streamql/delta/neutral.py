"""Sessions in which our own SQL, DDL and expressions mean the same, whatever the user's session has set (`Neutral.scala`)."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamql.delta.jvm import scala, session_of
from streamql.shared import constants


def neutral_clone(spark: SparkSession) -> SparkSession:
    """Makes a session for our own statements. It has the user's settings of storage and speed; its changes are its own. It may write what
    the extension keeps others from: the catalog, and the tables and views of dynamic tables."""
    made = SparkSession(spark.sparkContext, scala(spark).session.Neutral.cloned(session_of(spark)))
    made.conf.set(constants("dynamicTables")["setting"], "true")
    return made


def dynamic_session(spark: SparkSession) -> SparkSession:
    """Makes a session that may write the tables and views of dynamic tables, which the extension keeps others from."""
    return neutral_clone(spark)


def neutral(spark: SparkSession) -> SparkSession:
    """Returns a session for our own reads: `spark` itself if its settings leave our text alone, else a shared clone. Do not alter it."""
    other = scala(spark).session.Neutral.other(session_of(spark))
    return spark if other is None else SparkSession(spark.sparkContext, other)


def run(spark: SparkSession, statement: str) -> None:
    """Runs a statement of our own, without rows, on a user's table: in the user's session, whose settings do not change its text."""
    scala(spark).session.Neutral.run(session_of(spark), statement)
