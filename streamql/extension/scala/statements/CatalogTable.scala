package org.apache.spark.sql.streamql.statements

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{AlterTableCommand, LogicalPlan, RenameTable}
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.streamql.bridge.{Errors, Shared}
import org.apache.spark.sql.streamql.plans.DynamicTables

/**
 * Guards the table that holds the streams and the ledger: only streamql writes it. Python checks the names in statements that create and
 * drop (`Handler.guard`).
 */
object CatalogTable {
  private val MARK = Shared.constant("properties", "catalogVersion")
  private val GUARD = Shared.constant("settings", "catalogGuard")

  /** Refuses a statement that writes the table, or changes its columns, properties or name. OPTIMIZE and VACUUM are not refused: streamql's
   * own upkeep runs them too. */
  def guard(session: SparkSession, plan: LogicalPlan): Unit = if (session.conf.get(GUARD, "true").trim.toLowerCase != "false") {
    changed(session, plan).foreach { log =>
      if (log.unsafeVolatileSnapshot.metadata.configuration.contains(MARK)) throw Errors("UNSUPPORTED_TARGET", "CATALOG")
    }
  }

  private def changed(session: SparkSession, plan: LogicalPlan): Option[DeltaLog] = plan match {
    case a: AlterTableCommand => DynamicTables.logOf(a.table)
    case r: RenameTable => DynamicTables.logOf(r.child)
    case _ => DynamicTables.written(session, plan)
  }
}
