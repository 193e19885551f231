package org.apache.spark.sql.streamql.rules

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.streamql.queries.{TableImages, TableLeaf, Weighted}

/**
 * Tables for trying the rules: they are not read. How often a refresh would read each table is counted. `changed`: the ids of tables that
 * have changed.
 */
class CountedTables(session: ClassicSession, images: TableImages, changed: Set[String]) extends ChangedTables {
  /** How often tables would be read, by their ids. */
  val reads: mutable.HashMap[String, Int] = mutable.HashMap()

  override def begin(p: LogicalPlan): LogicalPlan = counted(p)
  override def end(p: LogicalPlan): LogicalPlan = counted(p)
  override def both(p: LogicalPlan): (LogicalPlan, LogicalPlan) = {
    val rest = p.transformDown { case RowsWithKeys(near) if hasChanged(near.leaf) => counted(near.plan) }
    (counted(rest), counted(rest))
  }
  override def hasChanged(leaf: TableLeaf): Boolean = changed(leaf.table.id)
  override def bytes(p: LogicalPlan): Long = images.bytes(p)
  override def change(leaf: TableLeaf): Weighted = Weighted.constant(LocalRelation(leaf.output), leaf.output, 1L)
  override def once(p: LogicalPlan): SharedRows = { counted(p); SharedRows(session, LocalRelation(p.output), None) }

  private def counted(p: LogicalPlan): LogicalPlan = p.transformUp { case leaf: TableLeaf =>
    reads(leaf.table.id) = reads.getOrElse(leaf.table.id, 0) + 1
    LocalRelation(leaf.output)
  }.transformAllExpressions { case s: SubqueryExpression => s.withNewPlan(counted(s.plan)) }
}
