package org.apache.spark.sql.streamql.queries

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.expressions.variant.VariantExplode
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Makes `FROM t LATERAL VIEW explode(a)` of `FROM t, LATERAL explode(t.a)`. Then a row is identified by the row of t and its place in it,
 * and a refresh needs only the changed rows of t. Rows of other generators have no place.
 */
object LateralGenerators extends Rule[LogicalPlan] {
  override def apply(query: LogicalPlan): LogicalPlan = query.transformUpWithSubqueries {
    case l @ LateralJoin(left, right, Inner | Cross, condition) =>
      over(left, right.plan).map(rows => condition.fold(rows)(Filter(_, rows))).getOrElse(l)
    // Without a condition, OptimizeOneRowRelationSubquery of Spark 4.2 takes LEFT JOIN LATERAL explode(…) for an inner join. So the
    // condition TRUE is added.
    case l @ LateralJoin(left, right, LeftOuter, None | Some(TrueLiteral)) => outerOver(left, right.plan).getOrElse(l.copy(condition = Some(TrueLiteral)))
  }

  /** A subquery that makes rows of one outer row only, as a plan over the outer rows. None: it does something else. */
  private def over(left: LogicalPlan, p: LogicalPlan): Option[LogicalPlan] = p match {
    case g @ Generate(_: Explode | _: PosExplode | _: Inline | _: VariantExplode, _, _, _, _, _: OneRowRelation) =>
      Some(inner(g.copy(unrequiredChildIndex = Nil, child = left)))
    case Project(list, child) if list.forall(isPlain) => over(left, child).map(rows => inner(Project(left.output ++ list, rows)))
    case Filter(condition, child) if isPlain(condition) => over(left, child).map(rows => inner(Filter(condition, rows)))
    case _ => None
  }

  /** The same for LEFT JOIN, if the subquery returns only columns of the generator. They are NULL for an outer row of which the generator
   * makes no rows. */
  private def outerOver(left: LogicalPlan, p: LogicalPlan): Option[LogicalPlan] = p match {
    case g: Generate => over(left, g.copy(outer = true))
    case Project(list, child) if list.forall(KeyedQuery.bare(_).isInstanceOf[AttributeReference]) =>
      outerOver(left, child).map { rows => Project(left.output ++ list.map(_.transform {
        case a: AttributeReference => a.withNullability(true)
      }.asInstanceOf[NamedExpression]), rows) }
    case _ => None
  }

  private def isPlain(e: Expression): Boolean = e.deterministic && !e.exists(_.isInstanceOf[SubqueryExpression])

  private def inner(p: LogicalPlan): LogicalPlan = p.transformExpressions { case OuterReference(a) => a.toAttribute }
}
