package org.apache.spark.sql.streamql.shims

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{InsertIntoStatement, LogicalPlan, Sample, Statistics}
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.execution.LogicalRDD

/** Spark 4.1. */
object SparkShim extends SparkSince41 {
  override def unseeded(sample: Sample): Sample = sample.copy(seed = 0)
  override def isPath(e: Expression): Boolean = false
  override def evolves(insert: InsertIntoStatement): Boolean = false
  override def like(plan: LogicalPlan): Option[Like] = None
  override def sized(rows: LogicalRDD, session: ClassicSession, statistics: Statistics): LogicalRDD =
    rows.copy()(session, Some(statistics), None)
}

/** The parser of this line. */
trait LineParser extends ParameterParser
