package org.apache.spark.sql.streamql.refreshes

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.changes.Newest
import org.apache.spark.sql.streamql.plans.{Plans, Preparation}
import org.apache.spark.sql.streamql.rules.{ComputedRows, JoinedKeys, KeptRows, SharedRows}

/**
 * Prepares the MERGE by which a refresh writes the rows that differ. The source is computed once. `RefreshWrite` runs the MERGE if the
 * table allows that, and otherwise Delta does. If the source is too large for a broadcast, a Bloom filter of its keys drops other rows of
 * the target before Spark shuffles them.
 */
object RefreshMerge extends Preparation {
  /** Runs the MERGE of a refresh over rows that are computed first, and freed afterwards. */
  override def prepared[T](session: ClassicSession, merge: MergeIntoCommand)(run: LogicalPlan => T): T = {
    val bindings = Plans.reads(merge).map(_.binding).filter(_.preparation.nonEmpty).distinct
    val plans = bindings.map(_.plan)
    val early = new KeptRows
    try {
      val kept = plans.map(p => changes(session, merge, RefreshRows.expanded(p, early), early))
      bindings.zip(kept).foreach { case (binding, (rows, _)) => binding.plan = rows }
      run(kept.zip(plans).headOption.fold(merge: LogicalPlan) { case ((rows, count), plan) =>
        val own = if (EqualRows.was(rows.output).isEmpty) merge else EqualRows.over(merge)
        written(session, own, refreshed(session, rows, count, plan))
      })
    } finally {
      early.free(session)
      bindings.zip(plans).foreach { case (binding, plan) => binding.plan = plan }
    }
  }

  /** What a refresh writes, computed, and the number of its rows. If it has pairs of equal rows, it has the columns of `EqualRows`. */
  private def changes(session: ClassicSession, merge: MergeIntoCommand, plan: LogicalPlan, early: KeptRows): (LogicalRDD, Long) = {
    val keys = EqualRows.keys(merge)
    val computed = early.computed(session, plan)
    val counts = ChangeCounts.of(computed, wanted = keys.nonEmpty)
    val rows = ComputedRows.sized(session, computed, counts.rows)
    val paired = keys.flatMap(k => new EqualRows(rows, k).paired(counts, early.keep(session, _)._1))
    val shown = rows.output.filterNot(EqualRows.was(rows.output).contains)
    paired.fold(if (shown.size == rows.output.size) (rows, counts.rows) else early.keep(session, Project(shown, rows)))(early.keep(session, _))
  }

  /** `rows`: the computed rows of `plan`. */
  private def refreshed(session: ClassicSession, rows: LogicalRDD, count: Long, plan: LogicalPlan): RefreshedRows = {
    val version = if (StoredRows.places(rows).isEmpty) None else plan.collectFirst { case r: RefreshRows => r.version }.flatten
    RefreshedRows(count, isSmall = rows.stats.sizeInBytes <= session.sessionState.conf.autoBroadcastJoinThreshold, version)
  }

  /** The plan that runs the statement. */
  private def written(session: ClassicSession, merge: MergeIntoCommand, rows: RefreshedRows): LogicalPlan =
    if (RefreshWrite.isPossible(session.withActive(Newest.of(merge.targetFileIndex.deltaLog)))) RefreshWrite(merge, rows) else filtered(session, merge, rows.count)

  /** The statement with a Bloom filter in its condition. `rows`: how many rows the source has. */
  private[streamql] def filtered(session: ClassicSession, merge: MergeIntoCommand, rows: Long): MergeIntoCommand = {
    // The rows of the source are computed already, and do not change. So Delta need not keep them as well.
    session.conf.set(DeltaSQLConf.MERGE_MATERIALIZE_SOURCE.key, DeltaSQLConf.MergeMaterializeSource.NONE)
    val filter = joined(session, merge, rows).mayMatch
    // Spark takes the size of a table's files for that of its rows, and would broadcast a table of ten million keys.
    if (filter.isEmpty) Seq(SQLConf.AUTO_BROADCASTJOIN_THRESHOLD, SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD).foreach(c => session.conf.set(c.key, "-1"))
    filter.fold(merge)(f => CurrentOrigin.withOrigin(merge.origin) { merge.copy(condition = And(f, merge.condition)) })
  }

  /** The key columns of the target, each with the source's column that it is compared with. */
  private[streamql] def keys(merge: MergeIntoCommand): Seq[(Attribute, Attribute)] = JoinedKeys.pairs(merge.condition, merge.target.outputSet)

  /** The keys of the source, of which `rows` rows are computed. */
  private[streamql] def joined(session: ClassicSession, merge: MergeIntoCommand, rows: Long): JoinedKeys =
    JoinedKeys.of(merge.condition, merge.target.outputSet, SharedRows(session, merge.source, Some(rows)))
}
