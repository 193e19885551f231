package org.apache.spark.sql.streamql.shims

import org.apache.spark.sql.catalyst.analysis.{FunctionRegistry, TableFunctionRegistry}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{InsertIntoStatement, LogicalPlan, Sample}

/** What Spark has in common until 4.1. */
trait SparkUntil41 extends Shim {
  override def unseeded(sample: Sample): Sample = sample.copy(seed = 0)
  override def isPath(e: Expression): Boolean = false
  override def evolves(insert: InsertIntoStatement): Boolean = false
  override def like(plan: LogicalPlan): Option[Like] = None

  override def takeForOwn(scalar: Seq[Shim.Scalar], table: Seq[Shim.Table]): Unit = {
    scalar.foreach { case (name, info, builder) => FunctionRegistry.builtin.registerFunction(name, info, builder) }
    table.foreach { case (name, info, builder) => TableFunctionRegistry.builtin.registerFunction(name, info, builder) }
  }
}
