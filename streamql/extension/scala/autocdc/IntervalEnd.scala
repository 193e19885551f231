package org.apache.spark.sql.streamql.autocdc

import org.apache.spark.sql.catalyst.expressions.{LeafExpression, Literal, Unevaluable}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.streamql.changes.CommitTime
import org.apache.spark.sql.streamql.plans.{Plans, StreamRead}
import org.apache.spark.sql.types.{DataType, TimestampType}

/** Stands for the time at which the intervals of the streams end that a plan reads: what is gone has been deleted until then. */
case class IntervalEnd() extends LeafExpression with Unevaluable {
  override def dataType: DataType = TimestampType
  override def nullable: Boolean = false
}

object IntervalEnd {
  /** The plan with the time in its place: of the last commit of the streams' intervals, or now, if a source has no commits. */
  def placed(plan: LogicalPlan): LogicalPlan = {
    lazy val times = Plans.reads(plan).map(time)
    lazy val end = if (times.isEmpty || times.exists(_.isEmpty)) System.currentTimeMillis() * 1000 else times.flatten.max
    plan.transformAllExpressionsWithSubqueries { case IntervalEnd() => Literal(end, TimestampType) }
  }

  /** The time of the last commit of a read's interval, in microseconds. None: its source has no commits, or several tables. */
  private def time(read: StreamRead): Option[Long] = {
    val through = JsonUtils.mapper.readTree(read.binding.description).path("through")
    val times = read.binding.plan.collectWithSubqueries { case p => p.expressions.flatMap(_.collect { case c: CommitTime => c.times }) }.flatten
    if (through.isIntegralNumber) times.distinct.flatMap(t => Option(t.micros(through.asLong)).map(_.longValue)).maxOption else None
  }
}
