package org.apache.spark.sql.streamql.autocdc

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, EqualTo, Literal, Not}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.{OptimisticTransaction, TransactionExecutionObserver}
import org.apache.spark.sql.delta.commands.MergeIntoCommand
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.streamql.bridge.{Errors, Shared}
import org.apache.spark.sql.streamql.changes.Newest
import org.apache.spark.sql.streamql.consume.DelegatingObserver
import org.apache.spark.sql.streamql.plans.Preparation
import org.apache.spark.sql.streamql.rules.KeptRows

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
      def events = computed(session, IntervalEnd.placed(rows.child), AutoCdcStatement.EVENTS, kept)
      val once = if (rows.compares) None else Some(events)
      def attempt(left: Int): T =
        try run(prepared(session, merge, rows, once.getOrElse(events), kept)) catch { case _: TargetChanged if left > 1 => attempt(left - 1) }
      try attempt(ATTEMPTS_MAX) catch { case _: TargetChanged => throw Errors("AUTO_CDC_BUSY", "TARGET") }
    } finally kept.free(session)
  }

  /** A plan in which the query that WITH names `name` is computed, and kept. */
  private def computed(session: ClassicSession, plan: LogicalPlan, name: String, kept: KeptRows): LogicalPlan = plan.transformUp {
    case WithCTE(body, definitions) =>
      val own = definitions.find(d => nameOf(d).contains(name)).map(d => d.id -> kept.keep(session, inlined(d, definitions))._1)
      own.fold(WithCTE(body, definitions): LogicalPlan) { case (id, rows) =>
        def placed(p: LogicalPlan): LogicalPlan = p.transformUpWithSubqueries { case r: CTERelationRef if r.cteId == id => named(rows, r.output) }
        WithCTE(placed(body), definitions.filterNot(_.id == id).map(d => d.copy(child = placed(d.child))))
      }
  }

  private def nameOf(definition: CTERelationDef): Option[String] = definition.child match {
    case SubqueryAlias(alias, _) => Some(alias.name)
    case _ => None
  }

  /** The query of a name, with the queries of the names that it reads. */
  private def inlined(of: CTERelationDef, all: Seq[CTERelationDef]): LogicalPlan = {
    val read = of.child.collectWithSubqueries { case r: CTERelationRef => r.cteId }.toSet
    if (read.isEmpty) of.child else WithCTE(of.child, all.takeWhile(_.id != of.id))
  }

  /** Rows under the names and ids of `output`. */
  private def named(rows: LogicalPlan, output: Seq[Attribute]): LogicalPlan =
    Project(output.zip(rows.output).map { case (as, column) => Alias(column, as.name)(exprId = as.exprId, qualifier = as.qualifier) }, rows)

  /** The MERGE over the rows, computed as of the newest version of the target. */
  private def prepared(session: ClassicSession, merge: MergeIntoCommand, rows: AutoCdcRows, events: LogicalPlan, kept: KeptRows): LogicalPlan = {
    val log = merge.targetFileIndex.deltaLog
    val snapshot = session.withActive(Newest.of(log))
    val state = rows.state.map(kept => new TargetState(session, snapshot, kept.retention))
    val plan = computed(session, events, AutoCdcStatement.ROWS_NOW, kept).transformUpWithSubqueries { case s: StateEvents => named(state.get.read(s.output), s.output) }
    val (all, _) = kept.keep(session, plan)
    val op = all.output.find(_.name == OP).get
    val noted = state.map { s =>
      val columns = rows.state.get.columns.map(name => all.output.find(_.name == name).get)
      (s, s.next(Project(columns, Filter(EqualTo(op, Literal(EVENT)), all))))
    }
    // They are computed already, and do not change. So Delta need not keep them as well.
    session.conf.set(DeltaSQLConf.MERGE_MATERIALIZE_SOURCE.key, DeltaSQLConf.MergeMaterializeSource.NONE)
    val merged = if (state.isEmpty) all else Filter(Not(EqualTo(op, Literal(EVENT))), all)
    val source = merge.source.transformUp { case r: AutoCdcRows => named(merged, r.output) }
    val own = CurrentOrigin.withOrigin(merge.origin) { merge.copy(source = source) }
    AutoCdcWrite(own, if (rows.compares || rows.readsTarget || state.nonEmpty) Some(snapshot.version) else None, noted)
  }
}

/** The target has another version than that for which rows were computed. */
class TargetChanged extends RuntimeException("the target has changed")

/**
 * Runs the MERGE. `version`: of the target, for which the rows were computed; None: they do not depend on the target. `noted`: the state of
 * the target, and the number of the one that the commit names.
 */
case class AutoCdcWrite(merge: MergeIntoCommand, version: Option[Long], noted: Option[(TargetState, Long)]) extends LeafRunnableCommand {
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
  }
}
