package org.apache.spark.sql.streamql.autocdc

import io.delta.exceptions.DeltaConcurrentModificationException
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Alias, And, Attribute, EqualTo, Expression, Literal, Not}
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.{OptimisticTransaction, TransactionExecutionObserver}
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streamql.bridge.{Errors, Shared}
import org.apache.spark.sql.streamql.changes.{Newest, TableBytes}
import org.apache.spark.sql.streamql.consume.DelegatingObserver
import org.apache.spark.sql.streamql.plans.Preparation
import org.apache.spark.sql.streamql.queries.ClockReads
import org.apache.spark.sql.streamql.rules.{JoinedKeys, KeptRows, SharedRows}

/**
 * Prepares the MERGE of AUTO CDC INTO. The events, and then the rows to merge, are computed once, and kept until the MERGE has run. Rows
 * that only the state takes are written into it before. The commit of the MERGE names the new state, so that both are there, or neither.
 */
object AutoCdcMerge extends Preparation {
  /** The column that says what happens to a row: EVENT is for the state, the others are for the MERGE. */
  private val OP = Shared.constant("autoCdc", "op")
  private val EVENT = Shared.constant("autoCdc", "event")
  private val ATTEMPTS_MAX = 10

  override def prepared[T](session: ClassicSession, merge: MergeIntoCommand)(run: LogicalPlan => T): T = {
    val rows = merge.source.collectFirst { case r: AutoCdcRows => r }.get
    val kept = new KeptRows
    try {
      def events = computed(session, IntervalEnd.placed(rows.child), AutoCdcStatement.EVENTS, if (rows.dependOnTarget) 1 else 2, kept)
      // What does not depend on the target is computed once, also because the rows of streams are counted when they are read.
      val once = if (rows.compares) None else Some(if (rows.dependOnTarget) events else kept.keep(session, events)._1)
      def exact = AssumedRows.chosen(once.getOrElse(events), assumes = false)
      def attempt(left: Int, assumed: Option[AssumedRows]): T =
        try run(assumed.fold(prepared(session, merge, rows, exact, kept))(a => written(session, merge, a.rows, None, None, assumed)))
        catch {
          case e: Throwable if causes(e).exists(_.isInstanceOf[NotAsAssumed]) => attempt(left, None)
          case e: Throwable if left > 1 && isConflict(e) => attempt(left - 1, assumed)
        }
      val assumed = if (isSteady(session, rows.child)) once.flatMap(AssumedRows.of(session, _, kept)) else None
      try attempt(ATTEMPTS_MAX, assumed) catch { case e: Throwable if isConflict(e) => throw Errors("AUTO_CDC_BUSY", "TARGET") }
    } finally kept.free(session)
  }

  /** Whether another statement has written the target meanwhile, so that nothing was committed. */
  private def isConflict(e: Throwable): Boolean = causes(e).exists {
    case _: TargetChanged | _: DeltaConcurrentModificationException => true
    case _ => false
  }

  /** Whether the query of the events gives a row of the source the same values each time. If it does not, as with the time of day, the old
   * image of a change is not what the target has. */
  private def isSteady(session: ClassicSession, plan: LogicalPlan): Boolean = {
    val events = AutoCdcStatement.events(plan)
    !events.exists(_.expressions.exists(!_.deterministic)) && ClockReads.of(events, session.sessionState.conf.sessionLocalTimeZone) == null
  }

  private def causes(e: Throwable): Iterator[Throwable] = Iterator.iterate(e)(_.getCause).takeWhile(_ != null)

  /** A plan in which the query of a name of WITH is computed, and kept, if at least so many places read it. Spark has put a copy of the
   * query into each of them, as it does in commands. All copies are equal, so one is computed. */
  private def computed(session: ClassicSession, plan: LogicalPlan, name: String, atLeast: Int, kept: KeptRows): LogicalPlan =
    plan.collectWithSubqueries { case q: SubqueryAlias if q.alias == name => q.child } match {
      case queries if queries.size >= atLeast =>
        val (rows, _) = kept.keep(session, queries.head)
        plan.transformUpWithSubqueries { case q: SubqueryAlias if q.alias == name => q.copy(child = named(rows, q.child.output)) }
      case _ => plan
    }

  /** Rows under the names and ids of `output`. */
  private def named(rows: LogicalPlan, output: Seq[Attribute]): LogicalPlan =
    Project(output.zip(rows.output).map { case (as, column) => Alias(column, as.name)(exprId = as.exprId, qualifier = as.qualifier) }, rows)

  /** The plan, in which less is read of tables whose rows are those of the events' keys. */
  private def touched(session: ClassicSession, plan: LogicalPlan): LogicalPlan = plan.transformUpWithSubqueries {
    case j @ Join(table, keys, LeftSemi, Some(condition), _) =>
      val joined = JoinedKeys.of(condition, table.outputSet, SharedRows(session, keys, counted(keys)))
      less(session, joined, table).reduceOption(And(_, _)).fold(j)(by => j.copy(left = Filter(by, table)))
  }

  /** Conditions of a large table's rows, which are true of those that the rows' keys match. */
  private def less(session: ClassicSession, keys: JoinedKeys, table: LogicalPlan): Seq[Expression] =
    if (TableBytes.of(table) <= TableBytes.SMALL) Nil
    else keys.isInRange.toSeq ++ (if (keys.rows.plan.stats.sizeInBytes <= session.sessionState.conf.autoBroadcastJoinThreshold) None else keys.mayMatch)

  /** How many rows a plan over computed rows has at most. None: it has other rows. */
  private def counted(plan: LogicalPlan): Option[Long] = plan.collectFirst { case r: LogicalRDD => r.stats.rowCount }.flatten.map(_.toLong)

  /** The MERGE over the rows, computed as of the newest version of the target. */
  private def prepared(session: ClassicSession, merge: MergeIntoCommand, rows: AutoCdcRows, events: LogicalPlan, kept: KeptRows): LogicalPlan = {
    val log = merge.targetFileIndex.deltaLog
    val snapshot = session.withActive(Newest.of(log))
    val state = rows.state.map(kept => new TargetState(session, snapshot, kept.retention))
    val known = events.transformUpWithSubqueries { case s: StateEvents => named(state.get.read(s.output), s.output) }
    val plan = computed(session, touched(session, known), AutoCdcStatement.ROWS_NOW, 2, kept)
    val all = if (rows.dependOnTarget) kept.keep(session, plan)._1 else plan
    val noted = state.map { s =>
      val columns = rows.state.get.columns.map(name => all.output.find(_.name == name).get)
      (s, s.next(Project(columns, Filter(EqualTo(op(all), Literal(EVENT)), all))))
    }
    val merged = if (state.isEmpty) all else Filter(Not(EqualTo(op(all), Literal(EVENT))), all)
    written(session, merge, merged, if (rows.dependOnTarget) Some(snapshot.version) else None, noted, None)
  }

  private def op(rows: LogicalPlan): Attribute = rows.output.find(_.name == OP).get

  /** The MERGE over rows that are computed. The others are as in `AutoCdcWrite`. */
  private def written(session: ClassicSession, merge: MergeIntoCommand, merged: LogicalPlan, version: Option[Long], noted: Option[(TargetState, Long)],
      assumed: Option[AssumedRows]): LogicalPlan = {
    // They are computed already, and do not change. So Delta need not keep them as well.
    session.conf.set(DeltaSQLConf.MERGE_MATERIALIZE_SOURCE.key, DeltaSQLConf.MergeMaterializeSource.NONE)
    // The rows are few beside those of the target, so that these need not be sorted to be joined with them.
    session.conf.set(SQLConf.ADAPTIVE_MAX_SHUFFLE_HASH_JOIN_LOCAL_MAP_THRESHOLD.key, session.conf.get(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES.key))
    val source = merge.source.transformUp { case r: AutoCdcRows => named(merged, r.output) }
    val keys = JoinedKeys.of(merge.condition, merge.target.outputSet, SharedRows(session, source, counted(source)))
    val condition = (less(session, keys, merge.target) :+ merge.condition).reduce(And(_, _))
    val own = CurrentOrigin.withOrigin(merge.origin) { merge.copy(source = source, condition = condition) }
    AutoCdcWrite(own, version, noted, assumed)
  }
}

/** The target has another version than that for which rows were computed. */
class TargetChanged extends RuntimeException("the target has changed")

/**
 * Runs the MERGE. `version`: of the target, for which the rows were computed; None: they do not depend on the target. `noted`: the state of
 * the target, and the number of the one that the commit names. `assumed`: the rows, if they were computed from the changes alone.
 */
case class AutoCdcWrite(merge: MergeIntoCommand, version: Option[Long], noted: Option[(TargetState, Long)], assumed: Option[AssumedRows]) extends LeafRunnableCommand {
  override val output: Seq[Attribute] = merge.output
  override def innerChildren: Seq[LogicalPlan] = Seq(merge)

  override def run(session: SparkSession): Seq[Row] =
    TransactionExecutionObserver.withObserver(new Observer) { merge.run(session) }

  private class Observer extends DelegatingObserver(TransactionExecutionObserver.getObserver) {
    private var isFirst = true
    override def startingTransaction(f: => OptimisticTransaction): OptimisticTransaction = {
      val txn = before.startingTransaction(f)
      if (isFirst && txn.deltaLog.dataPath == merge.targetFileIndex.deltaLog.dataPath) {
        isFirst = false
        if (version.exists(_ != txn.snapshot.version)) throw new TargetChanged
        noted.foreach { case (state, next) => state.note(txn, next) }
      }
      txn
    }

    override def beginDoCommit(): Unit = {
      assumed.foreach(_.check(merge))
      super.beginDoCommit()
    }
  }
}
