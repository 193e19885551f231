package org.apache.spark.sql.streamql.shims

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{InsertIntoStatement, LogicalPlan, Sample}

/** What Spark has in common until 4.1. */
trait SparkUntil41 extends Shim {
  override def unseeded(sample: Sample): Sample = sample.copy(seed = 0)
  override def isPath(e: Expression): Boolean = false
  override def evolves(insert: InsertIntoStatement): Boolean = false
  override def like(plan: LogicalPlan): Option[Like] = None
}
