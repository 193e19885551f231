package org.apache.spark.sql.streamql.queries

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.streamql.changes.Values

/**
 * Finds functions whose value depends on the order of rows, although the order is known or has no effect: the query names the order, or
 * another function hides it.
 */
object RowOrder {
  /** The expressions below `e` that are still to be checked. If `e` is a function whose order is named or hidden, they are what the
   * function computes from. */
  def operands(e: Expression): Seq[Expression] = e match {
    case SortArray(Collected(a), _) if isExact(a) => inputs(a)
    case ArraySort(Collected(a), f: LambdaFunction, _) if isExact(a) && isDefault(f) => inputs(a)
    case Size(Collected(a), _) => inputs(a)
    case WindowExpression(f, spec) if isByRows(spec) && isInOrder(f) => inputs(f) :+ spec
    case other => other.children
  }

  /** Whether an aggregate function names an order, or sees one row at most. */
  def isNamed(f: Expression): Boolean = f match {
    case _: PivotFirst => true // a GROUP BY below it has made one row of each value
    case m: Mode => m.reverseOpt.isDefined && Values.isExact(m.child.dataType)
    case l: ListAgg => l.orderExpressions.exists(o => Values.isExact(o.child.dataType) && isOf(l.child, o.child))
    case _ => false
  }

  /** A window expression with a frame of rows, if that frame has the same first or last row as its frame of values. `KeyedQuery` can order
   * equal rows for a frame of rows. With FILTER, the first or last row may be another one. */
  def byRows(e: WindowExpression): WindowExpression = {
    def framed(lower: Expression, upper: Expression) = e.copy(windowSpec = e.windowSpec.copy(frameSpecification = SpecifiedWindowFrame(RowFrame, lower, upper)))
    (e.windowFunction, e.windowSpec.frameSpecification) match {
      case (a: AggregateExpression, _) if a.filter.nonEmpty => e
      case (f, SpecifiedWindowFrame(RangeFrame, UnboundedPreceding, UnboundedFollowing)) if isInOrder(f) => framed(UnboundedPreceding, UnboundedFollowing)
      case (AggregateExpression(First(_, false), _, _, _, _), SpecifiedWindowFrame(RangeFrame, UnboundedPreceding, CurrentRow)) =>
        framed(UnboundedPreceding, CurrentRow)
      case (AggregateExpression(Last(_, false), _, _, _, _), SpecifiedWindowFrame(RangeFrame, CurrentRow, UnboundedFollowing)) =>
        framed(CurrentRow, UnboundedFollowing)
      case _ => e
    }
  }

  private object Collected {
    def unapply(e: Expression): Option[AggregateExpression] = e match {
      case a: AggregateExpression if a.aggregateFunction.isInstanceOf[Collect[_]] => Some(a)
      case _ => None
    }
  }

  private def inputs(f: Expression): Seq[Expression] = f match {
    case a: AggregateExpression => a.aggregateFunction.children ++ a.filter
    case other => other.children
  }

  private def isExact(a: AggregateExpression): Boolean = a.aggregateFunction.children.forall(c => Values.isExact(c.dataType))

  private def isDefault(f: LambdaFunction): Boolean = f.arguments match {
    case Seq(left, right) => f.function.semanticEquals(ArraySort.comparator(left, right))
    case _ => false
  }

  private def isInOrder(f: Expression): Boolean = f match {
    case a: AggregateExpression => isInOrder(a.aggregateFunction)
    case _: First | _: Last | _: NthValue | _: CollectList | _: MaxMinBy => true
    case _ => false
  }

  def isByRows(spec: WindowSpecDefinition): Boolean = spec.frameSpecification match {
    case SpecifiedWindowFrame(RowFrame, _, _) => true
    case _ => false
  }

  /** Whether an expression is another one, or casts of it. Then rows that are equal in the other one are equal in it. */
  private def isOf(e: Expression, other: Expression): Boolean = e.semanticEquals(other) || (e match {
    case c: Cast => isOf(c.child, other)
    case _ => false
  })
}
