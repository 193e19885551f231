package org.apache.spark.sql.streamql.queries

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.types._

/**
 * Columns that a dynamic table stores beside those that it shows: counts, sums, and extrema. With them its aggregates follow from the change
 * of their rows. The first state is the number of rows of the group.
 */
object AggregateStates {
  val STATE: String = Shared.constant("dynamicTables", "statePrefix")

  /** A keyed query with the states of its groups, if nothing but projections and an order is above them; and the columns that they are in. */
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

  /** Whether one of its states is a least or greatest value, which a change can take away. */
  def hasExtremum(a: Aggregate): Boolean = of(a).map(_._2.aggregateFunction).exists {
    case _: Min | _: Max => true
    case _ => false
  }

  /** What the states are for which all functions of an aggregate follow. None: one does not. */
  private def needed(a: Aggregate): Option[Seq[AggregateExpression]] = {
    val functions = a.aggregateExpressions.flatMap(_.collect { case f: AggregateExpression => f })
    val found = functions.map(FollowedFunction.of)
    // Of strings that a collation takes to be equal, a group shows one, which may go.
    val areStable = !a.groupingExpressions.exists(g => Inexact.hasEqualStrings(g.dataType))
    def areExact = !Inexact.areInexact(a.expressions, Seq(a.child))
    if (!areStable || a.expressions.exists(SubqueryExpression.hasSubquery) || found.exists(_.isEmpty) || !areExact) None
    else Some((FollowedFunction.rows +: found.flatMap(_.get.states)).foldLeft(Seq.empty[AggregateExpression]) { (known, s) =>
      if (known.exists(_.semanticEquals(s))) known else known :+ s
    })
  }
}

/** An aggregate function that follows from states. `value`: what it is, by their values. */
case class FollowedFunction(states: Seq[AggregateExpression], value: Seq[Expression] => Expression)

object FollowedFunction {
  val rows: AggregateExpression = Count(Literal(1)).toAggregateExpression()

  /** None: it does not follow, or another order of its rows could give other digits. */
  def of(f: AggregateExpression): Option[FollowedFunction] = if (f.isDistinct) None else {
    def taken(e: Expression) = f.filter.fold(e)(If(_, e, Literal(null, e.dataType)))
    bare(f.aggregateFunction) match {
      case Count(arguments) =>
        val nullable = arguments.filter(_.nullable)
        val there = if (nullable.size == 1) nullable.head
          else nullable.map(IsNotNull(_): Expression).reduceOption(And(_, _)).fold(Literal(1): Expression)(If(_, Literal(1), Literal(null, IntegerType)))
        Some(FollowedFunction(Seq(count(taken(there))), _.head))
      case s: Sum if s.evalContext.evalMode != EvalMode.TRY && isExact(s.child, s.evalContext.evalMode) =>
        Some(FollowedFunction(Seq(count(taken(s.child)), s.copy(child = taken(s.child)).toAggregateExpression()), _(1)))
      case a: Average if a.evalMode != EvalMode.TRY && isExact(a.child, a.evalMode) => // of a DECIMAL: see ExactAggregates
        val sum = Sum(taken(a.child), ExactAggregates.context(a.evalMode)).toAggregateExpression()
        Some(FollowedFunction(Seq(count(taken(a.child)), sum), values => a.evaluateExpression.transform {
          case b: AttributeReference if b.exprId == a.aggBufferAttributes(0).exprId => Cast(values(1), b.dataType)
          case b: AttributeReference if b.exprId == a.aggBufferAttributes(1).exprId => values(0)
        }))
      case m: Min if isCompared(m.dataType) => Some(FollowedFunction(Seq(Min(taken(m.child)).toAggregateExpression()), _.head))
      case m: Max if isCompared(m.dataType) => Some(FollowedFunction(Seq(Max(taken(m.child)).toAggregateExpression()), _.head))
      case _ => None
    }
  }

  /** A function as Spark computes it: some are others, such as regr_avgx() avg(). */
  def bare(f: Expression): Expression = f match {
    case r: RuntimeReplaceableAggregate => bare(r.replacement)
    case other => other
  }

  /** How many values a function takes. */
  def count(e: Expression): AggregateExpression = if (e.nullable) Count(e).toAggregateExpression() else rows

  /** Whether a sum does not depend on the order of its terms. Without ANSI, a sum of decimals that overflowed is NULL for good. */
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
