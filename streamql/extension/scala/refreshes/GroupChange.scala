package org.apache.spark.sql.streamql

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.LeftOuter
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types._

/**
 * The groups of an aggregate that a change touches, from the states that are stored of them: the aggregate's tables are not read, but for groups that
 * lost their least or greatest value.
 *
 * `change`: of the aggregate's input. `stored`: the rows of the dynamic table; `keys` and `states`: what groups are known by, and their states, in these rows.
 */
class GroupChange(a: Aggregate, change: Weighted, stored: LogicalPlan, keys: Seq[Expression], states: Seq[Expression], tables: ChangedTables) {
  private val own = AggregateStates.of(a)
  private val groups = a.groupingExpressions
  private val byChange = own.map { case (_, f) => new StateChange(f, change) }

  /** The groups that are touched, and what the change adds to their states. */
  private val touched: Once = tables.once(Aggregate(groups,
    groups.zipWithIndex.map { case (g, i) => Alias(g, s"group$i")() } ++ byChange.flatMap(_.aggregates), change.plan))
  private val by = touched.plan.output.take(groups.size)

  def isEmpty: Boolean = touched.isEmpty

  /** The rows that are stored of touched groups. */
  lazy val was: LogicalPlan = {
    val isLarge = TableBytes.of(stored) > GroupChange.SMALL
    (if (groups.isEmpty) tables.once(stored) else tables.once(touched.among(stored, keys, by, isLarge))).plan
  }

  /** The rows of the aggregate for touched groups, as of the end. `anew`: the aggregate over some groups' rows of its input. */
  def now(anew: Touched => LogicalPlan): LogicalPlan = {
    val before = Weighted.fresh(was)
    val ids = AttributeMap(was.output.zip(before.output))
    def inRows(e: Expression) = e.transform { case r: Attribute => ids(r) }
    val same = by.zip(keys).map { case (g, k) => EqualNullSafe(g, inRows(k)): Expression }.reduceOption(And(_, _))
    val joined = Join(touched.plan, before, LeftOuter, same, JoinHint.NONE)
    val added = touched.plan.output.drop(groups.size).iterator
    val next = byChange.zip(states).map { case (s, old) => s.next(inRows(old), s.aggregates.map(_ => added.next())) }
    val values = next.zip(own).map { case (n, (column, _)) => Alias(n.value, column.name)() }
    val isLost = Alias(next.map(_.isLost).reduce(Or(_, _)), "isLost")()
    val found = Project(by ++ values :+ isLost, joined)
    val left = if (groups.isEmpty) found else Filter(Not(EqualTo(values.head.toAttribute, Literal(0L))), found)
    if (AggregateStates.hasExtremum(a)) withLost(left, isLost.toAttribute, values.map(_.toAttribute), anew) else shown(left, values.map(_.toAttribute))
  }

  /** Groups that lost an extremum are computed from their rows. */
  private def withLost(left: LogicalPlan, isLost: Attribute, values: Seq[Attribute], anew: Touched => LogicalPlan): LogicalPlan = {
    val once = tables.once(left)
    val lost = tables.once(Project(by.zipWithIndex.map { case (g, i) => Alias(g, s"key$i")() } :+ Alias(Literal(1), "there")(), Filter(isLost, once.plan)))
    val kept = shown(Filter(Not(isLost), once.plan), values)
    if (lost.isEmpty || lost.rows.isEmpty) kept else {
      val keys = if (groups.isEmpty) Touched.all else Touched(Seq(a.child -> groups), Some(lost.copy(plan = Project(lost.plan.output.init, lost.plan))))
      val again = anew(keys)
      val union = Union(kept, Project(again.output.map(c => Alias(c, c.name)()), again))
      Project(TrackedQuery.renamed(union.output, a.output), union)
    }
  }

  /** The columns of the aggregate, from groups and states. */
  private def shown(p: LogicalPlan, values: Seq[Attribute]): LogicalPlan = {
    val functions = own.map(_._2)
    def stored(state: AggregateExpression): Expression = values(functions.indexWhere(_.semanticEquals(state)))
    // A sum over no value is NULL.
    def value(state: AggregateExpression): Expression = state.aggregateFunction match {
      case s: Sum => If(EqualTo(stored(FollowedFunction.count(s.child)), Literal(0L)), Literal(null, s.dataType), stored(state))
      case _ => stored(state)
    }
    def of(e: Expression): Expression = e match {
      case f: AggregateExpression =>
        val followed = FollowedFunction.of(f).get
        followed.value(followed.states.map(value))
      case _ => groups.indexWhere(_.semanticEquals(e)) match {
        case -1 => e.mapChildren(of)
        case i => by(i)
      }
    }
    Project(a.aggregateExpressions.map {
      case s @ Alias(f: AggregateExpression, AggregateStates.STATE) => Alias(value(f), s.name)(exprId = s.exprId)
      case n => Alias(of(KeyedQuery.bare(n)), n.name)(exprId = n.exprId)
    }, p)
  }
}

object GroupChange {
  /** A stored table of fewer bytes is joined in less time than it takes to look at the keys first. */
  private val SMALL = 4L << 20
}

/** What a change makes of one state of a group. */
class StateChange(state: AggregateExpression, change: Weighted) {
  private def summed(e: Expression) = Alias(Sum(e).toAggregateExpression(), "added")()
  private val comes = GreaterThan(change.weight, Literal(0L))
  private def least(e: Expression, of: Expression) = (state.aggregateFunction match {
    case _: Min => Min(If(of, e, Literal(null, e.dataType)))
    case _ => Max(If(of, e, Literal(null, e.dataType)))
  }).toAggregateExpression()

  /** What is computed of the change of each group. */
  val aggregates: Seq[Alias] = state.aggregateFunction match {
    case Count(Seq(e)) => Seq(summed(if (e.nullable) If(IsNotNull(e), change.weight, Literal(0L)) else change.weight))
    case s: Sum =>
      val wide = if (s.child.dataType.isInstanceOf[IntegralType]) Cast(s.child, LongType) else s.child
      Seq(summed(If(comes, wide, UnaryMinus(wide, failOnError = false))))
    case f => Seq(Alias(least(f.children.head, comes), "come")(), Alias(least(f.children.head, Not(comes)), "gone")())
  }

  /** `isLost`: whether the value does not follow. */
  case class Next(value: Expression, isLost: Expression)

  /** The state by the one so far (NULL: none) and what `aggregates` are. */
  def next(old: Expression, added: Seq[Attribute]): Next = state.aggregateFunction match {
    case _: Count => Next(Add(orZero(old), orZero(added.head), EvalMode.LEGACY), Literal.FalseLiteral)
    case s: Sum =>
      val sum = s.dataType match {
        case t: DecimalType => CheckOverflow(DecimalAddNoOverflowCheck(orZero(old), orZero(Cast(added.head, t)), t), t, nullOnOverflow = false)
        case _ => Add(orZero(old), orZero(added.head), s.evalContext.evalMode)
      }
      Next(sum, Literal.FalseLiteral)
    case f =>
      val Seq(come, gone) = added
      val (best, beats) = f match {
        case _: Min => (Least(Seq(old, come)), (x: Expression, y: Expression) => LessThanOrEqual(x, y))
        case _ => (Greatest(Seq(old, come)), (x: Expression, y: Expression) => GreaterThanOrEqual(x, y))
      }
      // What comes stays, if of each row at most one image comes and one goes.
      val isKept = if (change.isNet) And(IsNotNull(come), beats(come, gone)) else Literal.FalseLiteral
      Next(best, And(IsNotNull(gone), And(beats(gone, best), Not(Coalesce(Seq(isKept, Literal.FalseLiteral))))))
  }

  private def orZero(e: Expression) = Coalesce(Seq(e, Cast(Literal(0), e.dataType)))
}
