package org.apache.spark.sql.streamql.autocdc

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{UnresolvedFunction, UnresolvedRelation}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MergeIntoTable, SubqueryAlias, UnresolvedWith}
import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, Origin}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.streamql.session.Neutral
import org.apache.spark.sql.streamql.shims.SparkShim

/** Runs AUTO CDC INTO as the MERGE that it is. */
object AutoCdcStatement {
  val EVENTS: String = Shared.constant("autoCdc", "events")
  private val STATE = Shared.constant("autoCdc", "state")
  private val ASSUMES = Shared.constant("autoCdc", "assumes")
  private val END = Shared.constant("autoCdc", "intervalEnd")
  /** The rows that the target has of the keys of the events. */
  val ROWS_NOW: String = Shared.constant("autoCdc", "rowsNow")

  /**
   * Runs `merge`. In its source, the relation EVENTS has the events, and STATE those in the state of the target. `text`: the statement as
   * the user wrote it, by which it is matched when it is run again. `columns`: of STATE, as DDL; empty: there is no state. `retention`: how
   * long the state keeps an event, in milliseconds.
   */
  def run(session: SparkSession, merge: String, text: String, compares: Boolean, readsTarget: Boolean, columns: String, retention: Long): DataFrame = {
    val own = session.asInstanceOf[ClassicSession]
    own.withActive {
      val leaf = if (columns.isEmpty) None else Some(StateEvents(DataTypeUtils.toAttributes(Neutral.columns(columns))))
      val plan = own.sessionState.sqlParser.parsePlan(merge) match {
        case m: MergeIntoTable =>
          def rows(source: LogicalPlan): LogicalPlan = source match {
            case a: SubqueryAlias => a.copy(child = AutoCdcRows(placed(a.child, leaf), compares, readsTarget, leaf.map(l => StateColumns(l.output.map(_.name), retention))))
            case other => other.withNewChildren(other.children.map(rows))
          }
          CurrentOrigin.withOrigin(Origin(sqlText = Some(text), startIndex = Some(0), stopIndex = Some(text.length - 1))) { m.copy(sourceTable = rows(m.sourceTable)) }
        case other => throw new IllegalStateException(s"not a MERGE: ${other.nodeName}")
      }
      Dataset.ofRows(own, plan)
    }
  }

  /** The query of the events in an analysed plan. Spark has put copies of it into commands, which are equal. */
  def events(plan: LogicalPlan): LogicalPlan = plan.collectWithSubqueries { case q: SubqueryAlias if q.alias == EVENTS => q.child }.head

  /** The source with the leaf in the place of STATE, and IntervalEnd and Assumes in the place of their functions. */
  private def placed(plan: LogicalPlan, leaf: Option[StateEvents]): LogicalPlan = plan.transformUpWithSubqueries {
    case w: UnresolvedWith => SparkShim.withQueries(w)(query => placed(query, leaf).asInstanceOf[SubqueryAlias])
    case UnresolvedRelation(Seq(STATE), _, _) if leaf.nonEmpty => leaf.get
  }.transformAllExpressionsWithSubqueries {
    case f: UnresolvedFunction if f.nameParts == Seq(END) => IntervalEnd()
    case f: UnresolvedFunction if f.nameParts == Seq(ASSUMES) => Assumes()
  }
}
