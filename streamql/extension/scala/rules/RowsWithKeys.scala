package org.apache.spark.sql.streamql.rules

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.queries.{TableLeaf, TrackedQuery}

/** The rows of one table that have one of some keys: `plan` is as `SharedRows.among` makes it. `leaf`: the read of the table. */
case class RowsWithKeys(plan: Join, leaf: TableLeaf) {
  /** The plan over other rows, which have the columns of `leaf` and perhaps more. */
  def over(rows: LogicalPlan): LogicalPlan = {
    val more = rows.output.filterNot(leaf.outputSet.contains)
    def replaced(p: LogicalPlan): LogicalPlan = p match {
      case _: TableLeaf => rows
      case Project(list, child) => Project(list ++ more, replaced(child))
      case other => other.withNewChildren(Seq(replaced(other.children.head)))
    }
    plan.copy(left = replaced(plan.left))
  }

  /** Some rows under the ids of the plan's columns. `own`: the columns of the rows. */
  def shown(rows: LogicalPlan, own: Seq[Attribute]): LogicalPlan = Project(TrackedQuery.renamed(own, plan.output), rows)
}

object RowsWithKeys {
  def unapply(p: LogicalPlan): Option[RowsWithKeys] = p match {
    case j @ Join(left, keys, LeftSemi, _, _) if keys.collectFirst { case leaf: TableLeaf => leaf }.isEmpty => read(left).map(RowsWithKeys(j, _))
    case _ => None
  }

  private def read(p: LogicalPlan): Option[TableLeaf] = p match {
    case leaf: TableLeaf => Some(leaf)
    case Project(_, child) => read(child)
    case Filter(_, child) => read(child)
    case _ => None
  }
}
