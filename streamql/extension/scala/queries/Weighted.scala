package org.apache.spark.sql.streamql.queries

import org.apache.spark.sql.catalyst.analysis.DeduplicateRelations
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * The change of a plan's rows. `plan`: the changed rows, in the plan's columns under their ids. `weight`: 1 if the row is added, -1 if it
 * is removed. `isNet`: at most one row of each key is removed and one added. If not, the weights that several terms give to one row must be
 * summed.
 */
case class Weighted(plan: LogicalPlan, weight: Attribute, isNet: Boolean)

object Weighted {
  val WEIGHT = "__streamql_weight"

  def constant(plan: LogicalPlan, columns: Seq[Attribute], weight: Long): Weighted = of(plan, columns, Literal(weight), isNet = true)

  def of(plan: LogicalPlan, columns: Seq[NamedExpression], weight: Expression, isNet: Boolean): Weighted = {
    val own = Alias(weight, WEIGHT)()
    Weighted(Project(columns :+ own, plan), own.toAttribute, isNet)
  }

  /** The UNION ALL of terms. `columns`: those that all terms have. */
  def sum(terms: Seq[Weighted], columns: Seq[Attribute], isNet: Boolean): Option[Weighted] = if (terms.size < 2) terms.headOption.map(_.copy(isNet = isNet)) else {
    val union = TrackedQuery.unionAll(terms.map(_.plan), terms.map(t => columns.map(c => t.plan.output.find(_.exprId == c.exprId).get) :+ t.weight))
    val weight = Alias(union.output.last, WEIGHT)()
    Some(Weighted(Project(TrackedQuery.renamed(union.output.init, columns) :+ weight, union), weight.toAttribute, isNet))
  }

  /** A copy of a plan whose columns have new ids. */
  def fresh(p: LogicalPlan): LogicalPlan = {
    val copy = DeduplicateRelations(Join(p, p, Inner, None, JoinHint.NONE)).children(1)
    if (copy.outputSet.intersect(p.outputSet).isEmpty) copy else Project(copy.output.map(a => Alias(a, a.name)()), copy)
  }
}
