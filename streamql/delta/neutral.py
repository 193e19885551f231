"""Sessions in which streamql's own SQL, DDL and expressions mean the same, whatever the settings of the user's session
(`Neutral.scala`)."""

from __future__ import annotations

from pyspark.sql import SparkSession

from streamql.delta.jvm import scala, session_of
from streamql.shared import constants


def neutral_clone(spark: SparkSession) -> SparkSession:
    """Makes a session for streamql's own statements. It has the user's settings of storage and speed. Settings that are changed in it do
    not change the user's session. It may write what the extension protects from users: the catalog, and the tables and views of dynamic
    tables."""
    made = SparkSession(spark.sparkContext, scala(spark).session.Neutral.cloned(session_of(spark)))
    made.conf.set(constants("dynamicTables")["setting"], "true")
    return made


def dynamic_session(spark: SparkSession) -> SparkSession:
    """Makes a session that may write the tables and views of dynamic tables, which the extension protects from users."""
    return neutral_clone(spark)


def neutral(spark: SparkSession) -> SparkSession:
    """Returns a session for streamql's own reads. It is `spark` if its settings do not change the meaning of these, else a shared clone. Do
    not change its settings."""
    other = scala(spark).session.Neutral.other(session_of(spark))
    return spark if other is None else SparkSession(spark.sparkContext, other)


def run(spark: SparkSession, statement: str) -> None:
    """Runs a statement of streamql on a user's table, in the user's session. It returns no rows. The session's settings do not change how
    its text is parsed."""
    scala(spark).session.Neutral.run(session_of(spark), statement)
