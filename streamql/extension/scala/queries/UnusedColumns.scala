package org.apache.spark.sql.streamql.queries

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Removes unused columns from queries in which all columns of a node identify its rows, as with LATERAL (SELECT * …) and UNPIVOT. Otherwise
 * a column that a table gets would be one of those that identify them.
 */
object UnusedColumns {
  /** How often Spark's rule is applied. Each time it looks below what it removed the time before. */
  private val ROUNDS = 5

  /** The query without its unused columns. A query with LIMIT or OFFSET stays as it is: Spark's rule puts projections between these and
   * their ORDER BY. */
  def removed(query: LogicalPlan): LogicalPlan =
    if (!query.exists(isByColumns) || query.exists(isLimit)) query
    else {
      val pruned = (1 to ROUNDS).foldLeft(query)((p, _) => ColumnPruning(p))
      val used = QueryShape.used(pruned) ++ AttributeSet(pruned.output)
      if (pruned.exists(p => p.isInstanceOf[Expand] && p.output.isEmpty)) query // no column would be left to identify its rows
      else pruned.transform { case l: LateralJoin =>
        val (kept, rest) = l.right.plan.output.partition(used.contains)
        if (kept.isEmpty || rest.isEmpty) l else l.copy(right = l.right.withNewPlan(Project(kept, l.right.plan)))
      }
    }

  private def isByColumns(p: LogicalPlan): Boolean = p match {
    case _: LateralJoin => true
    case _: Aggregate => false
    case other => other.children.exists(_.isInstanceOf[Expand]) // UNPIVOT; GROUPING SETS have an Aggregate above it
  }

  private def isLimit(p: LogicalPlan): Boolean = p match {
    case _: GlobalLimit | _: LocalLimit | _: Offset | _: Tail => true
    case _ => false
  }
}
