package org.apache.spark.sql.streamql.queries

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.changes.Values

/** Finds filters that keep one row of each partition: row_number() OVER (PARTITION BY … ORDER BY …) = 1. The columns of PARTITION BY are a
 * key of what they keep. */
object FirstRows extends PredicateHelper {
  /** The columns. None: the filter is another one, or rows that have equal keys may show other values of these columns, as 0.0 and -0.0. */
  def keys(f: Filter): Option[Seq[Attribute]] =
    splitConjunctivePredicates(f.condition).collect { case e @ BinaryComparison(a: Attribute, _) if isFirst(e) => a }
      .flatMap(a => partition(f.child, a))
      .find(own => own.nonEmpty && own.forall(k => Values.isExact(k.dataType) && f.outputSet.contains(k)))

  private def isFirst(e: Expression): Boolean = e match {
    case EqualTo(_, one) => is(one, 1)
    case LessThanOrEqual(_, one) => is(one, 1)
    case LessThan(_, two) => is(two, 2)
    case _ => false
  }

  private def is(e: Expression, number: Int): Boolean = e.foldable && (e.eval() match {
    case n: Number => n.doubleValue == number
    case _ => false
  })

  /** The columns of PARTITION BY within which a column numbers the rows, in the columns of a plan. None: the column has other numbers, or
   * PARTITION BY has an expression. */
  private def partition(p: LogicalPlan, number: Attribute): Option[Seq[Attribute]] = p match {
    case w: Window => w.windowExpressions.find(_.exprId == number.exprId) match {
      case Some(Alias(WindowExpression(_: RowNumber, spec), _)) => attributes(spec.partitionSpec)
      case Some(_) => None
      case None => partition(w.child, number)
    }
    case Project(list, child) => list.find(_.exprId == number.exprId).map(KeyedQuery.bare) match {
      case Some(a: Attribute) => partition(child, a).map(_.map(shown(_, list)))
      case _ => None
    }
    case Filter(_, child) => partition(child, number)
    case _ => None
  }

  /** A column under the name that a projection gives it. If the projection drops it, it stays, and the plan above lacks it. */
  private def shown(column: Attribute, list: Seq[NamedExpression]): Attribute =
    list.find(n => KeyedQuery.unchanged(KeyedQuery.bare(n)).contains(column.exprId)).fold(column)(_.toAttribute)

  private def attributes(spec: Seq[Expression]): Option[Seq[Attribute]] = {
    val own = spec.collect { case a: Attribute => a }
    if (own.size == spec.size) Some(own) else None
  }
}
