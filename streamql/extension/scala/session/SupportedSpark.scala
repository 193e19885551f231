package org.apache.spark.sql.streamql.session

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.streamql.bridge.{Errors, Shared}
import org.apache.spark.sql.streamql.shims.DeltaShim

/**
 * The versions of Spark and Delta Lake that this jar is compiled against. It uses their internals, which change with each minor release.
 */
object SupportedSpark {
  /** Raises SPARK_NOT_SUPPORTED if the session has other versions. It is an exception of Java's, because streamql's may not load in another
   * Spark. */
  def check(): Unit = {
    val built = Shared.json("built.json")
    val Seq(spark, oldest, delta, known) = Seq("spark", "oldest", "delta", "known").map(Shared.required(built, _).asText)
    val found = try io.delta.VERSION catch { case _: LinkageError => "none" }
    if (line(SPARK_VERSION) != spark || patch(SPARK_VERSION) < patch(oldest) || line(found) != delta)
      throw new IllegalArgumentException(Errors.text("SPARK_NOT_SUPPORTED", "JAR", "foundSpark" -> SPARK_VERSION, "foundDelta" -> found, "spark" -> spark, "delta" -> delta, "known" -> known))
    DeltaShim.fails.foreach(why => throw new IllegalArgumentException(Errors.text("SPARK_NOT_SUPPORTED", "PAIR", "foundSpark" -> SPARK_VERSION, "foundDelta" -> found, "why" -> why)))
  }

  private def line(version: String): String = version.split("\\.").take(2).mkString(".")
  private def patch(version: String): Int = version.split("\\.", 3).lift(2).map(_.takeWhile(_.isDigit)).filter(_.nonEmpty).fold(0)(_.toInt)
}
