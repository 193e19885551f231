package org.apache.spark.sql.streamql.shims

import org.apache.spark.sql.catalyst.plans.logical.Statistics
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.execution.LogicalRDD

/** Spark 4.1. */
object SparkShim extends SparkUntil41 with SparkSince41 {
  override def sized(rows: LogicalRDD, session: ClassicSession, statistics: Statistics): LogicalRDD =
    rows.copy()(session, Some(statistics), None)
}

/** The parser of this line. */
trait LineParser extends ParameterParser
