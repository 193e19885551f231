package org.apache.spark.sql.streamql.session

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.streamql.bridge.{Errors, Shared}

/**
 * The versions of Spark and Delta that the extension is compiled against. It uses their internals, which change with each minor release.
 */
object SupportedSpark {
  /** Raises SPARK_NOT_SUPPORTED if the session has other versions. It is an exception of Java's, because streamql's may not load in another
   * Spark. */
  def check(): Unit = {
    val (spark, delta) = (Shared.constant("versions", "spark"), Shared.constant("versions", "delta"))
    val found = try io.delta.VERSION catch { case _: LinkageError => "none" }
    if (minor(SPARK_VERSION) != minor(spark) || minor(found) != minor(delta))
      throw new IllegalArgumentException(Errors.text("SPARK_NOT_SUPPORTED", "VERSIONS", "foundSpark" -> SPARK_VERSION, "foundDelta" -> found, "spark" -> spark, "delta" -> delta))
  }

  private def minor(version: String): String = version.split("\\.").take(2).mkString(".")
}
