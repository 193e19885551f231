package org.apache.spark.sql.streamql.refreshes

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.streamql.bridge.Shared
import org.apache.spark.sql.streamql.plans.{Binding, StreamRead}
import org.apache.spark.sql.streamql.session.OuterParser

/** Runs the statement of a refresh. The rows that it writes are a plan, which stands in the statement as the read of a hidden stream. */
object RefreshStatement {
  private val ROWS = Shared.constant("dynamicTables", "rows")

  /** Runs `text`, an INSERT or a MERGE in which the relation ROWS stands for `rows`. `description`: of the read, JSON: the hidden stream
   * and its interval. `visible`: how many columns of `rows` the stream shows. */
  def run(session: SparkSession, text: String, rows: LogicalPlan, description: String, visible: Int): Unit = {
    val read = StreamRead.of(new Binding(rows, description, preparation = Some(RefreshMerge)), visible)
    val own = session.asInstanceOf[ClassicSession]
    own.withActive {
      val plan = OuterParser.plain(own, text).transformDown { case UnresolvedRelation(Seq(ROWS), _, _) => read }
      Dataset.ofRows(own, plan)
    }
  }
}
