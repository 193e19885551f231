package org.apache.spark.sql.streamql.shims

import org.apache.spark.sql.catalyst.expressions.{CurrentPath, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{CreateTableLike, InsertIntoStatement, LogicalPlan, Sample}

/** What Spark 4.2 and later have in common. */
trait SparkSince42 extends SparkSince41 {
  override def unseeded(sample: Sample): Sample = sample.copy(seed = None)
  override def isPath(e: Expression): Boolean = e.isInstanceOf[CurrentPath]
  override def takeForOwn(scalar: Seq[Shim.Scalar], table: Seq[Shim.Table]): Unit = ()
  override def evolves(insert: InsertIntoStatement): Boolean = insert.withSchemaEvolution
  override def like(plan: LogicalPlan): Option[Like] = plan match {
    case c: CreateTableLike => Some(Like(c.name, c.source, c.provider, c.properties, properties => c.copy(properties = properties)))
    case _ => None
  }
}
