package org.apache.spark.sql.streamql.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Count, Max, Min}
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.streamql.queries.Weighted

/**
 * Rows that were computed once, for several parts of a plan. `rows`: how many; None: they were not computed, because the rules are only
 * tried.
 */
case class SharedRows(session: ClassicSession, plan: LogicalPlan, rows: Option[Long]) {
  def isEmpty: Boolean = rows.contains(0L)
  def isSmall: Boolean = rows.exists(_ <= SharedRows.BROADCAST_ROWS_MAX)
  def fresh: LogicalPlan = Weighted.fresh(plan)

  /** The rows of `p` for which the expressions `own` have values that the expressions `of` have in these rows. `isBounded`: whether to find
   * the ranges of these values first, by which files are skipped. For a small table, that takes longer than to read it. */
  def among(p: LogicalPlan, own: Seq[Expression], of: Seq[Expression] = plan.output, isBounded: Boolean = true): LogicalPlan = {
    val found = if (isBounded) ranges(of) else of.map(_ => None)
    Narrowed(p, own) { (near, own) =>
      val keys = fresh
      val ids = AttributeMap(plan.output.zip(keys.output))
      val values = of.map(_.transform { case a: Attribute => ids.getOrElse(a, a) })
      val same = own.zip(values).zip(found).map { case ((o, k), r) => Ranges.same(o, k, r) }.reduce(And(_, _))
      val within = found.zip(own).flatMap { case (r, o) => r.map(_.hold(o)) }
      Join(within.reduceOption(And(_, _)).fold(near)(Filter(_, near)), keys, LeftSemi, Some(same), SharedRows.hint(right = isSmall))
    }
  }

  /** The ranges in which the values of some expressions over the rows lie. Files whose values lie elsewhere are not read. None: the ranges
   * are not known. */
  def ranges(own: Seq[Expression]): Seq[Option[Ranges]] = if (!rows.exists(_ > 0)) own.map(_ => None) else {
    val ranged = own.filter(e => Ranges.isRanged(e.dataType) && !SubqueryExpression.hasSubquery(e)).distinct
    val found = if (ranged.isEmpty) Nil else if (isSmall) collected(ranged) else aggregated(ranged)
    own.map(e => found.lift(ranged.indexWhere(_.semanticEquals(e))))
  }

  private def rowsOf(p: LogicalPlan) = Dataset.ofRows(session, p).queryExecution.executedPlan.executeCollect()

  private def collected(values: Seq[Expression]): Seq[Ranges] = {
    val found = rowsOf(Project(values.map(Alias(_, "value")()), plan))
    values.zipWithIndex.map { case (e, i) => Ranges.of(e.dataType, found.iterator.map(r => if (r.isNullAt(i)) null else Ranges.copied(r.get(i, e.dataType)))) }
  }

  private def aggregated(values: Seq[Expression]): Seq[Ranges] = {
    val list = values.flatMap(e => Seq(Min(e), Max(e)).map(f => Alias(f.toAggregateExpression(), "bound")()) :+
      Alias(Count(e).toAggregateExpression(), "count")())
    val found = rowsOf(Aggregate(Nil, list, plan)).head
    values.zipWithIndex.map { case (e, i) =>
      val (low, high) = (found.get(3 * i, e.dataType), found.get(3 * i + 1, e.dataType))
      val hasNull = found.getLong(3 * i + 2) < rows.get
      Ranges(e.dataType, if (low == null) Nil else Seq((Ranges.copied(low), Ranges.copied(high))), hasNull)
    }
  }
}

object SharedRows {
  /** The most rows that Spark sends to each task (broadcast). They are some 10 MB to 100 MB. */
  val BROADCAST_ROWS_MAX = 250000L

  def hint(left: Boolean = false, right: Boolean = false): JoinHint = {
    def of(is: Boolean) = if (is) Some(HintInfo(strategy = Some(BROADCAST))) else None
    JoinHint(of(left), of(right))
  }
}
