package org.apache.spark.sql.streamql.session

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.streamql.bridge.{Errors, Shared}

/** The versions that the extension is compiled against. It uses internals of Spark and Delta, which change with each minor release. */
object SupportedSpark {
  /** Raises SPARK_NOT_SUPPORTED, by an exception that every Spark has. */
  def check(): Unit = {
    val (spark, delta) = (Shared.constant("versions", "spark"), Shared.constant("versions", "delta"))
    val found = try io.delta.VERSION catch { case _: LinkageError => "none" }
    if (minor(SPARK_VERSION) != minor(spark) || minor(found) != minor(delta))
      throw new IllegalArgumentException(Errors.text("SPARK_NOT_SUPPORTED", "VERSIONS", "foundSpark" -> SPARK_VERSION, "foundDelta" -> found, "spark" -> spark, "delta" -> delta))
  }

  private def minor(version: String): String = version.split("\\.").take(2).mkString(".")
}
