"""Settings for the sessions of tests: small data, of which many plans are made and each is run once."""

from __future__ import annotations

from streamql.extension.host import QUICK_JVM

FEW_TASKS = {"spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1"}
"""Spark writes and compiles code for each task anew; what is to be shuffled for real asks for more partitions itself."""

CODE_CACHE = "-XX:ReservedCodeCacheSize=512m"
"""Without C2, Java reserves 48 MB for compiled code. A session of some minutes fills that, and is interpreted from then on."""

QUICK_JAVA = " ".join([*QUICK_JVM, CODE_CACHE])
"""Options of every Java that a test starts: as JDK_JAVA_OPTIONS where it takes none of Spark's settings (a demo, a launcher, an executor).
Compiling by C2 pays off only after minutes, and takes a core meanwhile."""

LASTING_JAVA = f"-XX:+UseSerialGC -Xss8m -XX:NewRatio=1 -XX:MetaspaceSize=512m {CODE_CACHE}"
"""Options of a Java that runs for an hour. It compiles by C2 (after two minutes of tests, they take a quarter less), collects garbage
less often, and does not collect classes."""

SHORT_LIVED = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    **FEW_TASKS,
}
"""For a process that a test starts: on a busy machine it takes half the time that Java's own defaults take."""

INTERPRETED = (("spark.sql.codegen.wholeStage", "false"), ("spark.sql.codegen.factoryMode", "NO_CODEGEN"))
"""Compiling a plan takes longer than running it on a few thousand rows."""

COMPILED = (
    ("spark.sql.codegen.wholeStage", "true"),
    ("spark.sql.codegen.factoryMode", "FALLBACK"),
    ("spark.sql.adaptive.enabled", "true"),
)
"""Spark's own defaults, as in production."""

QUICK_DEMO = " ".join([QUICK_JAVA, *(f"-D{key}={value}" for key, value in INTERPRETED)])
"""For JDK_JAVA_OPTIONS of a demo, whose sessions take no settings otherwise: Spark takes those of its Java."""

SHORT_LIVED_ARGUMENTS = [word for key, value in SHORT_LIVED.items() for word in ("--conf", f"{key}={value}")]
"""The same for a command line of `streamql`."""
