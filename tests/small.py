"""Settings for the sessions of tests: small data, of which many plans are made and each is run once."""

from __future__ import annotations

from streamql.extension.host import QUICK_JVM

FEW_TASKS = {"spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1"}
"""Spark writes and compiles code for each task anew; what is to be shuffled for real asks for more partitions itself."""

SHORT_LIVED = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": " ".join(QUICK_JVM),
    **FEW_TASKS,
}
"""For a process that a test starts: on a busy machine it takes half the time that Java's own defaults take."""

SHORT_LIVED_ARGUMENTS = [word for key, value in SHORT_LIVED.items() for word in ("--conf", f"{key}={value}")]
"""The same for a command line of `streamql`."""
