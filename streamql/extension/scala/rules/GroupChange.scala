package org.apache.spark.sql.streamql.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.expressions.objects.{AssertNotNull, StaticInvoke}
import org.apache.spark.sql.catalyst.plans.LeftOuter
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.changes.TableBytes
import org.apache.spark.sql.streamql.queries.{AggregateStates, FollowedFunction, KeyedQuery, TrackedQuery, Weighted}
import org.apache.spark.sql.streamql.shims.SparkShim
import org.apache.spark.sql.types._

/**
 * Computes the groups of an aggregate that a change touches, from their stored states. The aggregate's tables are read only for groups that
 * lost their minimum or maximum.
 *
 * `change`: of the aggregate's input. `stored`: the rows of the dynamic table. `keys` and `states`: the keys and the states of groups, as
 * expressions over these rows.
 */
class GroupChange(a: Aggregate, change: Weighted, stored: LogicalPlan, keys: Seq[Expression], states: Seq[Expression], tables: ChangedTables) {
  private val own = AggregateStates.of(a)
  private val groups = a.groupingExpressions
  private val byChange = own.map { case (_, f) => new StateChange(f, change) }

  /** The groups that the change touches, and what it adds to their states. */
  private val aggregated = Aggregate(groups,
    groups.zipWithIndex.map { case (g, i) => Alias(g, s"group$i")() } ++ byChange.flatMap(_.aggregates), change.plan)
  private val by = aggregated.output.take(groups.size)
  /** The same, computed. */
  private lazy val touched: SharedRows = tables.once(aggregated)
  private def isLarge = TableBytes.of(stored) > GroupChange.SMALL

  def isEmpty: Boolean = touched.isEmpty

  /** The stored rows of touched groups. */
  lazy val was: LogicalPlan = (if (groups.isEmpty) tables.once(stored) else tables.once(touched.among(stored, keys, by, isLarge))).plan

  /** The touched groups as of the end: their keys, their states, and their stored rows, which are NULL for new groups. `touched`: as
   * `aggregated`. `was`: stored rows, among which are those of all touched groups. */
  private class Groups(touched: LogicalPlan, was: LogicalPlan, hint: JoinHint) {
    private val before = Weighted.fresh(was)
    private val there = Alias(Literal(true), "there")()
    val stored: Seq[Attribute] = before.output
    val isStored: Attribute = there.toAttribute.withNullability(true)

    private val ids = AttributeMap(was.output.zip(before.output))
    private def inRows(e: Expression) = e.transform { case r: Attribute => ids(r) }
    // If the stored columns cannot hold the states, the states are NULL in them. Then the statement fails for such a group, and a full
    // refresh takes its place.
    private def known(old: Expression) = If(IsNull(isStored), Literal(null, old.dataType), AssertNotNull(inRows(old)))
    private val added = aggregated.output.drop(groups.size).iterator
    private val olds = known(states.head) +: states.tail.map(inRows)
    private val next = byChange.zip(olds).map { case (s, old) => s.next(old, s.aggregates.map(_ => added.next())) }
    private val computed = next.zip(own).map { case (n, (column, _)) => Alias(n.value, column.name)() }
    private val lost = Alias(next.map(_.isLost).reduce(Or(_, _)), "isLost")()
    private val gone = Alias(EqualTo(next.head.value, Literal(0L)), "isGone")()
    val values: Seq[Attribute] = computed.map(_.toAttribute)
    /** Whether the group lost its minimum or maximum. */
    val isLost: Attribute = lost.toAttribute
    /** Whether the group has no rows as of the end. None: a group without keys always has its row. */
    val isGone: Option[Attribute] = if (groups.isEmpty) None else Some(gone.toAttribute)

    val rows: LogicalPlan = {
      val same = by.zip(keys).map { case (g, k) => EqualNullSafe(g, inRows(k)): Expression }.reduceOption(And(_, _))
      val joined = Join(touched, Project(stored :+ there, before), LeftOuter, same, hint)
      Project(by ++ computed ++ stored :+ isStored :+ lost :+ gone, joined)
    }
  }

  /** The rows of the aggregate for touched groups, as of the end. `anew`: computes the
   * aggregate of some groups from the rows of its input. */
  def now(anew: Touched => LogicalPlan): LogicalPlan = {
    val g = new Groups(touched.plan, was, JoinHint.NONE)
    withLost(Project(by ++ g.values :+ g.isLost, g.isGone.fold(g.rows)(is => Filter(Not(is), g.rows))), g.isLost, g.values, anew)
  }

  /** The same for an aggregate without minima and maxima, with the stored row of each group beside its row. None: no group is touched. */
  def paired: Option[PairedGroups] = {
    // If the stored table is large, the touched groups are computed first, because they tell which of its files to read. If it is small, it
    // is joined with them while they are computed.
    def near = touched.among(stored, keys, by)
    val groups = if (!isLarge) Some(new Groups(aggregated, stored, JoinHint.NONE))
      else if (touched.isEmpty) None
      else Some(new Groups(touched.plan, near, SharedRows.hint(right = touched.isSmall)))
    groups.map(g => PairedGroups(shown(g.rows, g.values, g.isGone, g.stored ++ g.isGone :+ g.isStored), g.stored, g.isStored, g.isGone))
  }

  /** Computes the groups that lost a minimum or maximum from their rows, and the other ones from states. */
  private def withLost(left: LogicalPlan, isLost: Attribute, values: Seq[Attribute], anew: Touched => LogicalPlan): LogicalPlan = {
    val once = tables.once(left)
    val lost = tables.once(Project(by.zipWithIndex.map { case (g, i) => Alias(g, s"key$i")() } :+ Alias(Literal(1), "there")(), Filter(isLost, once.plan)))
    val kept = shown(Filter(Not(isLost), once.plan), values, None)
    if (lost.isEmpty) kept else {
      val keys = if (groups.isEmpty) Touched.all else Touched(Seq(a.child -> groups), Some(lost.copy(plan = Project(lost.plan.output.init, lost.plan))))
      val again = anew(keys)
      if (lost.rows.isEmpty) kept /* the rules are only tried */ else {
        val union = TrackedQuery.unionAll(Seq(kept, again), Seq(kept.output, again.output))
        Project(TrackedQuery.renamed(union.output, a.output), union)
      }
    }
  }

  /** The columns of the aggregate, made of keys and states, and then `others` of the plan. They are NULL where `isGone`. */
  private def shown(p: LogicalPlan, values: Seq[Attribute], isGone: Option[Attribute], others: Seq[Attribute] = Nil): LogicalPlan = {
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
    val list = a.aggregateExpressions.map {
      case s @ Alias(f: AggregateExpression, AggregateStates.STATE) => Alias(value(f), s.name)(exprId = s.exprId)
      case n => Alias(of(KeyedQuery.bare(n)), n.name)(exprId = n.exprId)
    }
    Project(GroupChange.unless(isGone, list) ++ others, p)
  }
}

/**
 * Touched groups of an aggregate as of the end. `rows`: its columns, then the `stored` row of the group, and whether there is one
 * (`isStored`: true or NULL). `isGone`: whether the group has no rows now, so that its columns are NULL; None: groups always have their
 * row.
 */
case class PairedGroups(rows: LogicalPlan, stored: Seq[Attribute], isStored: Attribute, isGone: Option[Attribute])

object GroupChange {
  /** A stored table of fewer bytes is joined in less time than it takes to compute the keys first. */
  private val SMALL = 4L << 20

  /** Columns that are NULL for groups without rows. To compute them could fail, as a division by their count would. */
  def unless(isGone: Option[Attribute], columns: Seq[NamedExpression]): Seq[NamedExpression] = isGone.fold(columns) { is =>
    columns.map {
      case a: Alias => Alias(If(is, Literal(null, a.dataType), a.child), a.name)(exprId = a.exprId, explicitMetadata = Some(a.metadata))
      case other => other
    }
  }
}

/**
 * Computes a state of a group from the stored one and a change.
 *
 * The sum of a change may have more digits than the sum of any rows, so BIGINT values are added as DECIMAL. If a DECIMAL cannot be wider,
 * added rows and removed rows are summed apart. In a net change, the rows of each of these sums are in the table together.
 */
class StateChange(state: AggregateExpression, change: Weighted) {
  private def summed(e: Expression, mode: EvalMode.Value = EvalMode.ANSI) =
    Alias(SparkShim.sum(e, mode).toAggregateExpression(), "added")()
  private val comes = GreaterThan(change.weight, Literal(0L))
  private def least(e: Expression, of: Expression) = (state.aggregateFunction match {
    case _: Min => Min(If(of, e, Literal(null, e.dataType)))
    case _ => Max(If(of, e, Literal(null, e.dataType)))
  }).toAggregateExpression()

  /** Whether sums of BIGINT wrap around, as they do without ANSI. Then the sums of changes may do so too. */
  private def wraps(s: Sum) = SparkShim.mode(s) == EvalMode.LEGACY
  /** Whether sums of an expression fit into BIGINT: that of two billion INT values does. */
  private def isNarrow(e: Expression): Boolean = e match {
    case Cast(child, LongType, _, _) => isNarrow(child)
    case other => other.dataType.isInstanceOf[IntegralType] && other.dataType != LongType
  }

  /** The aggregates of the change of each group. */
  val aggregates: Seq[Alias] = state.aggregateFunction match {
    case Count(Seq(e)) => Seq(summed(if (e.nullable) If(IsNotNull(e), change.weight, Literal(0L)) else change.weight))
    case s: Sum =>
      def signed(e: Expression) = If(comes, e, UnaryMinus(e, failOnError = false))
      s.child.dataType match {
        case t: DecimalType if t.precision + StateChange.DIGITS_OF_ROWS > DecimalType.MAX_PRECISION =>
          Seq(comes, Not(comes)).map(of => summed(If(of, s.child, Literal(null, t))))
        case _: DecimalType => Seq(summed(signed(s.child)))
        case _ if wraps(s) => Seq(summed(signed(Cast(s.child, LongType)), EvalMode.LEGACY))
        case _ if isNarrow(s.child) => Seq(summed(signed(Cast(s.child, LongType))))
        case _ => Seq(summed(signed(Cast(s.child, DecimalType.LongDecimal))))
      }
    case f => Seq(Alias(least(f.children.head, comes), "come")(), Alias(least(f.children.head, Not(comes)), "gone")())
  }

  /** A state as of the end. `isLost`: whether it does not follow from the stored state and the change. */
  case class Next(value: Expression, isLost: Expression)

  /** The state as of the end. `old`: the stored one; NULL: there is none. `added`: what `aggregates` have returned. */
  def next(old: Expression, added: Seq[Attribute]): Next = state.aggregateFunction match {
    case _: Count => Next(Add(orZero(old), orZero(added.head), EvalMode.LEGACY), Literal.FalseLiteral)
    case s: Sum =>
      val before = orZero(old)
      def plus(t: DecimalType)(terms: Expression*) =
        CheckOverflow(terms.map(e => orZero(Cast(e, t))).reduce[Expression](DecimalAddNoOverflowCheck(_, _, t)), t, nullOnOverflow = false)
      val sum = (s.dataType, added.head.dataType) match {
        case (t: DecimalType, _) if added.size == 2 => plus(t)(before, StateChange.negative(added(1)), added.head)
        case (t: DecimalType, _) => plus(t)(before, added.head)
        case (_, t: DecimalType) => Cast(plus(t)(before, added.head), LongType, None, EvalMode.ANSI)
        case _ => Add(before, orZero(added.head), SparkShim.mode(s))
      }
      Next(sum, Literal.FalseLiteral)
    case f =>
      val Seq(come, gone) = added
      val (best, beats) = f match {
        case _: Min => (Least(Seq(old, come)), (x: Expression, y: Expression) => LessThanOrEqual(x, y))
        case _ => (Greatest(Seq(old, come)), (x: Expression, y: Expression) => GreaterThanOrEqual(x, y))
      }
      // In a net change, at most one image of a row is added and one removed. So the added value is there as of the end.
      val isKept = if (change.isNet) And(IsNotNull(come), beats(come, gone)) else Literal.FalseLiteral
      Next(best, And(IsNotNull(gone), And(beats(gone, best), Not(Coalesce(Seq(isKept, Literal.FalseLiteral))))))
  }

  private def orZero(e: Expression) = Coalesce(Seq(e, Cast(Literal(0), e.dataType)))
}

object StateChange {
  /** Spark gives a sum of DECIMAL so many digits more than its terms have. */
  private val DIGITS_OF_ROWS = 10

  /** Changes the sign of a DECIMAL. Spark's UnaryMinus rounds to 34 digits. */
  private def negative(e: Expression): Expression = StaticInvoke(getClass, e.dataType, "negated", Seq(e))

  // -- called by generated code

  def negated(value: Decimal): Decimal = Decimal(value.toJavaBigDecimal.negate, value.precision, value.scale)
}
