package org.apache.spark.sql.streamql.queries

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types._

/**
 * States: columns that a dynamic table stores and does not show. They are counts, sums, minima and maxima of its groups. From the states
 * and the changed rows, a refresh computes the aggregates, without the other rows of the groups. The first state is the number of rows of
 * the group.
 */
object AggregateStates {
  val STATE: String = Shared.constant("dynamicTables", "statePrefix")

  /** A keyed query with the states of its groups, and the columns of the states. There are none if anything but projections and sorts is
   * above the aggregate, or if a function of the aggregate does not follow from states. */
  def added(p: LogicalPlan): (LogicalPlan, Seq[Attribute]) = p match {
    case Project(list, child) =>
      val (below, own) = added(child)
      (Project(list ++ own, below), own)
    case s: Sort =>
      val (below, own) = added(s.child)
      (s.copy(child = below), own)
    case Distinct(child) => added(Aggregate(child.output, child.output, child))
    case a: Aggregate =>
      val own = needed(a).getOrElse(Nil).map(s => Alias(s, STATE)())
      (a.copy(aggregateExpressions = a.aggregateExpressions ++ own), own.map(_.toAttribute))
    case other => (other, Nil)
  }

  /** The states that an aggregate has, each with its column. */
  def of(a: Aggregate): Seq[(Attribute, AggregateExpression)] =
    a.aggregateExpressions.collect { case s @ Alias(f: AggregateExpression, STATE) => s.toAttribute -> f }

  /** Whether one of its states is a minimum or a maximum. A change can remove the row that has
   * it, and the states do not tell the next one. */
  def hasExtremum(a: Aggregate): Boolean = of(a).map(_._2.aggregateFunction).exists {
    case _: Min | _: Max => true
    case _ => false
  }

  /** The states from which all functions of an aggregate follow. None: a function does not follow from states. */
  private def needed(a: Aggregate): Option[Seq[AggregateExpression]] = {
    val functions = a.aggregateExpressions.flatMap(_.collect { case f: AggregateExpression => f })
    val found = functions.map(FollowedFunction.of)
    // A group shows one of the strings that a collation takes to be equal. The row with this string may be deleted.
    val areStable = !a.groupingExpressions.exists(g => Inexact.hasEqualStrings(g.dataType))
    def areExact = !Inexact.areInexact(a.expressions, Seq(a.child))
    if (!areStable || a.expressions.exists(SubqueryExpression.hasSubquery) || found.exists(_.isEmpty) || !areExact) None
    else Some((FollowedFunction.rows +: found.flatMap(_.get.states)).foldLeft(Seq.empty[AggregateExpression]) { (known, s) =>
      if (known.exists(_.semanticEquals(s))) known else known :+ s
    })
  }
}

/** An aggregate function that follows from states. `value`: makes the function's value of the values of the states. */
case class FollowedFunction(states: Seq[AggregateExpression], value: Seq[Expression] => Expression)

object FollowedFunction {
  val rows: AggregateExpression = Count(Literal(1)).toAggregateExpression()

  /** None: the function does not follow from states, or its digits may differ in another order of rows. */
  def of(f: AggregateExpression): Option[FollowedFunction] = if (f.isDistinct) None else {
    def taken(e: Expression) = f.filter.fold(e)(If(_, e, Literal(null, e.dataType)))
    bare(f.aggregateFunction) match {
      case Count(arguments) =>
        val nullable = arguments.filter(_.nullable)
        val there = if (nullable.size == 1) nullable.head
          else nullable.map(IsNotNull(_): Expression).reduceOption(And(_, _)).fold(Literal(1): Expression)(If(_, Literal(1), Literal(null, IntegerType)))
        Some(FollowedFunction(Seq(count(taken(there))), _.head))
      case s: Sum if SparkShim.mode(s) != EvalMode.TRY && isExact(s.child, SparkShim.mode(s)) =>
        Some(FollowedFunction(Seq(count(taken(s.child)), s.copy(child = taken(s.child)).toAggregateExpression()), _(1)))
      // The average is of DECIMAL: ExactAggregates has replaced those of integers.
      case a: Average if a.evalMode != EvalMode.TRY && isExact(a.child, a.evalMode) =>
        val sum = SparkShim.sum(taken(a.child), a.evalMode).toAggregateExpression()
        Some(FollowedFunction(Seq(count(taken(a.child)), sum), values => a.evaluateExpression.transform {
          case b: AttributeReference if b.exprId == a.aggBufferAttributes(0).exprId => Cast(values(1), b.dataType)
          case b: AttributeReference if b.exprId == a.aggBufferAttributes(1).exprId => values(0)
        }))
      case m: Min if isCompared(m.dataType) => Some(FollowedFunction(Seq(Min(taken(m.child)).toAggregateExpression()), _.head))
      case m: Max if isCompared(m.dataType) => Some(FollowedFunction(Seq(Max(taken(m.child)).toAggregateExpression()), _.head))
      case _ => None
    }
  }

  /** A function as Spark computes it: Spark replaces some functions by others, such as regr_avgx() by avg(). */
  def bare(f: Expression): Expression = f match {
    case r: RuntimeReplaceableAggregate => bare(r.replacement)
    case other => other
  }

  /** Counts the values of an expression that are not NULL. */
  def count(e: Expression): AggregateExpression = if (e.nullable) Count(e).toAggregateExpression() else rows

  /** Whether a sum does not depend on the order of its terms. Without ANSI, a sum of decimals that has overflowed stays NULL. */
  private def isExact(e: Expression, mode: EvalMode.Value): Boolean = e.dataType match {
    case _: IntegralType => true
    case _: DecimalType => mode == EvalMode.ANSI
    case _ => false
  }

  private def isCompared(t: DataType): Boolean = t match {
    case s: StringType => s.isUTF8BinaryCollation // Delta stores no column of another collation
    case _: NumericType | BooleanType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }
}
