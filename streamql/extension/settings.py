"""The settings that give a Spark the extension, and how they go with those that are there already."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from streamql.errors import StreamqlError
from streamql.extension.build import extension_jar
from streamql.extension.connectors import connector_jars, parse_connectors
from streamql.extension.host import spark_defaults
from streamql.extension.jars import delta_jars
from streamql.extension.platforms import DELTA_SETTINGS, brings_delta, current, find, given_delta
from streamql.settings import CONNECTORS, PYTHON

EXTENSIONS = ("io.delta.sql.DeltaSparkSessionExtension", "streamql.Extensions")
"""In this order: the parser of the last named is the outermost."""

CLASSPATH = "spark.driver.extraClassPath"
LISTS = {"spark.sql.extensions": ",", "spark.jars": ",", CLASSPATH: os.pathsep}
"""Settings that hold several values, and what stands between them."""


def conf_lines(
    connectors: str = "", given: Mapping[str, str] | None = None, spark: str | None = None, delta: str | None = None
) -> dict[str, str]:
    """Returns the settings that give any Spark the extension, as `streamql conf` prints them for spark-defaults.conf or --conf.

    `connectors`: the value of `spark.streamql.connectors`. `given`: settings that the Spark has already. `spark`: the version of another
    Spark; None: that of this Python. `delta`: the version of the Delta Lake that the Spark has; None: the one that `given` names, or that
    is among the jars of this Python's Spark. If there is none, the settings name streamql's.

    The jars are on the driver's class path, because the threads of the Thrift and Connect servers do not see those in spark.jars. They are
    also in spark.jars, which takes them to the executors of a cluster. If spark.jars or spark.jars.packages names Delta Lake, they are
    there only: classes on the class path would not see Delta Lake. Raises JAVA_NOT_FOUND, JAR_BUILD_FAILED, SPARK_NOT_SUPPORTED,
    INVALID_ARGUMENT for an unknown connector.
    """
    own = given_delta(given or {})
    used = find(spark, delta) if spark else current(delta or (own and own[1]))
    named = parse_connectors(connectors)
    names = ",".join(connector.name for connector in named)
    has_delta = delta is not None or own is not None or (spark is None and brings_delta())
    jars = [
        str(jar)
        for jar in (*([] if has_delta else delta_jars(used)), extension_jar(used), *connector_jars(names, used))
    ]
    is_on_classpath = own is None or own[0] == CLASSPATH
    return {
        "spark.sql.extensions": ",".join(EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.sources.default": "delta",
        **({CLASSPATH: os.pathsep.join(jars)} if is_on_classpath else {}),
        "spark.jars": ",".join(jars),
        PYTHON.key: sys.executable,
        **({CONNECTORS.key: names} if names else {}),
        **{key: value for connector in named for key, value in connector.settings.items()},
    }


def lists_of_spark() -> dict[str, str]:
    """Returns what the spark-defaults.conf of this Spark has of settings that hold several values: ours are appended to these."""
    return {key: value for key, value in spark_defaults().items() if key in LISTS or key in DELTA_SETTINGS}


def small_tables(cores: int) -> dict[str, str]:
    """Returns the settings that make a Spark quick on small tables. `cores`: those that its tasks run on."""
    return {
        # Few, larger partitions; adaptive execution splits what is skewed.
        "spark.sql.shuffle.partitions": str(max(4, 2 * cores)),
        "spark.databricks.delta.snapshotPartitions": str(max(2, min(cores, 8))),
    }


def is_one_process(master: str) -> bool:
    """Tells whether `spark.master` names a Spark whose executors are threads of the driver, as `SparkContext.isLocal` says it."""
    return master == "local" or master.startswith("local[")


def joined(key: str, given: str | None, ours: str) -> str:
    """Returns a setting's value: what is given stays; to one that holds several values ours are appended, each once."""
    if not given:
        return ours
    separator = LISTS.get(key)
    if separator is None:
        return given
    added = ours.split(separator)
    kept = [part for part in given.split(separator) if part.strip() and part.strip() not in added]
    return separator.join([*kept, *added])


def not_installed(why: str) -> StreamqlError:
    """Returns the error of a session without the extension, which shows the lines to add."""
    lines = "\n".join(f"  {key} {value}" for key, value in conf_lines().items())
    return StreamqlError(
        "EXTENSION_NOT_INSTALLED",
        why,
        hint="in a new Python process, call streamql.session() or streamql.configure(SparkSession.builder).getOrCreate() first; "
        "or start Spark (spark-submit, bin/pyspark, bin/spark-shell) with these settings, as lines of spark-defaults.conf "
        f"or each as --conf key=value:\n{lines}",
    )
