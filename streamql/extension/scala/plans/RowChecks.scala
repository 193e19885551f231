package org.apache.spark.sql.streamql.plans

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}

/** A node of a change set that checks its rows. It may leave some out, and it may fail the statement that consumes them. */
trait ChecksRows extends LogicalPlan { def check: RowCheck }

object ChecksRows {
  /** The checks of a change set. */
  def in(plan: LogicalPlan): Seq[RowCheck] = plan.collect { case node: ChecksRows => node.check }.distinct
}

/** The check of such a node. All copies of the node share it. */
trait RowCheck {
  /** Begins a run in which a statement consumes the rows. Until `end`, a row may fail the statement. */
  def begin(): Unit
  /** Checks the rows that the statement has not read, because it joins or limits them. It is called before the statement commits, and raises
   * what such a row raises. `rows`: the change set. */
  def finish(session: ClassicSession, rows: LogicalPlan): Unit
  def end(): Unit
  /** What the last run has found, as JSON. */
  def found: String
}
