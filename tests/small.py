"""Settings for the sessions of tests: small data, of which many plans are made and each is run once."""

from __future__ import annotations

from streamql.extension.host import QUICK_JVM

FEW_TASKS = {"spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1"}
"""Spark writes and compiles code for each task anew; what is to be shuffled for real asks for more partitions itself."""

CODE_CACHE = "-XX:ReservedCodeCacheSize=512m"
"""Without C2, Java reserves 48 MB for compiled code. A session of some minutes fills that, and is interpreted from then on."""

SHORT_LIVED = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": " ".join([*QUICK_JVM, CODE_CACHE]),
    **FEW_TASKS,
}
"""For a process that a test starts: on a busy machine it takes half the time that Java's own defaults take."""

SHORT_LIVED_ARGUMENTS = [word for key, value in SHORT_LIVED.items() for word in ("--conf", f"{key}={value}")]
"""The same for a command line of `streamql`."""
