package org.apache.spark.sql.streamql.autocdc

import org.apache.spark.sql.catalyst.expressions.{LeafExpression, Not, Unevaluable}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan}
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.streamql.rules.KeptRows
import org.apache.spark.sql.types.{BooleanType, DataType}

/** Stands for whether the rows are computed from the changes alone. The target is then assumed to have what the old images show. */
case class Assumes() extends LeafExpression with Unevaluable {
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = false
}

/** The target has other rows than those that were assumed. */
class NotAsAssumed extends RuntimeException("the target is not as assumed")

/** Rows that are computed from the changes alone. `updated`, `inserted`: the rows that their MERGE writes if the target is as assumed. */
case class AssumedRows(rows: LogicalPlan, updated: Long, inserted: Long) {
  /** Raises NotAsAssumed if the MERGE has counted otherwise. It is called before the commit. */
  def check(merge: MergeIntoCommand): Unit = {
    def count(of: String): Long = merge.metrics(s"numTargetRows$of").value
    if (count("Updated") != updated || count("Inserted") != inserted || count("Deleted") != 0) throw new NotAsAssumed
  }
}

object AssumedRows {
  private val Seq(op, ended, same, nu, next, unknown) = Seq("op", "ended", "same", "new", "next", "unknown").map(Shared.constant("autoCdc", _))

  /** The rows of a plan. None: the changes do not tell them, or no change has an old image. A table of events has none: each event is an
   * INSERT, and the target may have its key. */
  def of(session: ClassicSession, plan: LogicalPlan, kept: KeptRows): Option[AssumedRows] = if (!plan.exists(isChoice)) None else {
    val rows = kept.keep(session, chosen(plan, assumes = true))._1
    val counts = Dataset.ofRows(session, rows).groupBy(op).count().collect().map(r => r.getString(0) -> r.getLong(1)).toMap.withDefaultValue(0L)
    val updated = counts(ended) + counts(same)
    if (counts(unknown) > 0 || updated == 0) None else Some(AssumedRows(rows, updated, counts(nu) + counts(next)))
  }

  /** The plan with one of two ways to compute the rows. */
  def chosen(plan: LogicalPlan, assumes: Boolean): LogicalPlan = plan.transformUp {
    case Filter(Assumes(), child) => if (assumes) child else LocalRelation(child.output)
    case Filter(Not(Assumes()), child) => if (assumes) LocalRelation(child.output) else child
  }

  private def isChoice(p: LogicalPlan): Boolean = p match {
    case Filter(Assumes(), _) => true
    case _ => false
  }
}
