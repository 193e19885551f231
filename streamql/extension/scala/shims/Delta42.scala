package org.apache.spark.sql.streamql.shims

import org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter

/** Delta Lake 4.2. */
object DeltaShim extends DeltaUntil42 with DeltaSince42 {
  /** It was compiled against Spark 4.1.1. In 4.1.2, a constructor has another parameter. A vendor's 4.1.2 may have both. */
  override def fails: Option[String] =
    if (classOf[ParquetToSparkSchemaConverter].getConstructors.exists(_.getParameterTypes.toSeq == Seq.fill(7)(classOf[Boolean]))) None
    else Some("it cannot read the checkpoint that it writes after ten commits")
}
