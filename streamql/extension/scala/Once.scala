package org.apache.spark.sql.streamql

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Count, Max, Min}
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.types._

/** Rows that were computed for several parts of a plan. `rows`: how many; None: they are only thought of. */
case class Once(session: ClassicSession, plan: LogicalPlan, rows: Option[Long]) {
  def isEmpty: Boolean = rows.contains(0L)
  def isSmall: Boolean = rows.exists(_ <= Once.BROADCAST_ROWS_MAX)
  def fresh: LogicalPlan = Weighted.fresh(plan)

  /** The rows of a plan for which expressions have values that some expressions have in these rows. */
  def among(p: LogicalPlan, own: Seq[Expression], of: Seq[Expression] = plan.output): LogicalPlan = {
    val keys = fresh
    val ids = AttributeMap(plan.output.zip(keys.output))
    val values = of.map(_.transform { case a: Attribute => ids.getOrElse(a, a) })
    val same = own.zip(values).map { case (o, k) => EqualNullSafe(o, k): Expression }.reduce(And(_, _))
    val within = bounds(of).zip(own).flatMap { case (b, o) => b.map(_(o)) }
    val near = within.reduceOption(And(_, _)).fold(p)(Filter(_, p))
    Join(near, keys, LeftSemi, Some(same), Once.hint(right = isSmall))
  }

  /** For each of some expressions over the rows a condition that is true of each of its values: files whose values lie elsewhere are not read. */
  def bounds(own: Seq[Expression]): Seq[Option[Expression => Expression]] = if (!rows.exists(_ > 0)) own.map(_ => None) else {
    val ranged = own.filter(e => Once.isRanged(e.dataType)).distinct
    if (ranged.isEmpty) own.map(_ => None) else {
      val list = ranged.flatMap(e => Seq(Min(e), Max(e)).map(f => Alias(f.toAggregateExpression(), "bound")()) :+
        Alias(Count(e).toAggregateExpression(), "count")())
      val found = Dataset.ofRows(session, Aggregate(Nil, list, plan)).queryExecution.executedPlan.executeCollect().head
      own.map { e =>
        val i = ranged.indexWhere(_.semanticEquals(e))
        if (i < 0) None else {
          val (low, high) = (found.get(3 * i, e.dataType), found.get(3 * i + 1, e.dataType))
          val hasNull = found.getLong(3 * i + 2) < rows.get
          Some((o: Expression) => Once.between(o, low, high, hasNull))
        }
      }
    }
  }
}

object Once {
  /** So many rows are sent to each task: some 10 MB to 100 MB. */
  val BROADCAST_ROWS_MAX = 250000L

  def hint(left: Boolean = false, right: Boolean = false): JoinHint = {
    def of(is: Boolean) = if (is) Some(HintInfo(strategy = Some(BROADCAST))) else None
    JoinHint(of(left), of(right))
  }

  private def between(e: Expression, low: Any, high: Any, hasNull: Boolean): Expression = {
    def value(v: Any) = Literal(v match { case s: org.apache.spark.unsafe.types.UTF8String => s.copy(); case other => other }, e.dataType)
    val in = if (low == null) Literal.FalseLiteral else And(GreaterThanOrEqual(e, value(low)), LessThanOrEqual(e, value(high)))
    if (hasNull) Or(in, IsNull(e)) else in
  }

  /** Whether a range of values tells which files to read. */
  private def isRanged(t: DataType): Boolean = t match {
    case _: IntegralType | DateType | TimestampType | TimestampNTZType | _: DecimalType => true
    case s: StringType => UnsafeRowUtils.isBinaryStable(s)
    case _ => false
  }
}
