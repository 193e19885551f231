package org.apache.spark.sql.streamql

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning
import org.apache.spark.sql.catalyst.plans.logical._

/** LATERAL subqueries without the columns that their query does not use. All columns of such a subquery identify rows, and `SELECT *` gets those that a table
 * gets. */
object LateralColumns {
  /** How often Spark's rule is applied: each time it looks one projection further down. */
  private val ROUNDS = 5

  def used(query: LogicalPlan): LogicalPlan = if (!query.exists(_.isInstanceOf[LateralJoin])) query else {
    val pruned = (1 to ROUNDS).foldLeft(query)((p, _) => ColumnPruning(p))
    val read = AttributeSet(pruned.output ++ pruned.collect { case p =>
      (if (PlanText.isByPlace(p)) p.children.flatMap(_.output) else Nil) ++ p.expressions.flatMap(_.references)
    }.flatten)
    pruned.transform { case l: LateralJoin =>
      val (kept, rest) = l.right.plan.output.partition(read.contains)
      if (kept.isEmpty || rest.isEmpty) l else l.copy(right = l.right.withNewPlan(Project(kept, l.right.plan)))
    }
  }
}
