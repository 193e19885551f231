package org.apache.spark.sql.streamql.plans

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.{AddColumns, AlterColumns, DropColumns, LogicalPlan, RenameColumn, ReplaceColumns, V2WriteCommand}
import org.apache.spark.sql.delta.{DeltaDynamicPartitionOverwriteCommand, DeltaLog}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.{DeleteCommand, MergeIntoCommand, RestoreTableCommand, UpdateCommand}
import org.apache.spark.sql.delta.sources.DeltaDataSource
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand
import org.apache.spark.sql.streamql.bridge.{Errors, Shared}
import org.apache.spark.sql.streamql.shims.DeltaShim

/** Guards the tables that hold the rows of dynamic tables: only refreshes write them. */
object DynamicTables {
  private val OURS = Shared.constant("dynamicTables", "setting")
  val MARK: String = Shared.constant("properties", "dynamicTable")
  private val KEY = Shared.constant("dynamicTables", "keyPrefix")
  private val STATE = Shared.constant("dynamicTables", "statePrefix")

  /** Whether a column of the rows that a dynamic table stores is one that it does not show: a key or a state. */
  def isHidden(column: String): Boolean = isHiddenKey(column) || startsWith(column, STATE)
  def isHiddenKey(column: String): Boolean = startsWith(column, KEY)
  private def startsWith(column: String, prefix: String) = column.regionMatches(true, 0, prefix, 0, prefix.length)

  /** Whether the session is one in which streamql makes, fills or drops a dynamic table. */
  def isOurs(session: SparkSession): Boolean = session.conf.getOption(OURS).isDefined

  /** Refuses a statement that writes the rows of a dynamic table, or changes the columns of the table that they are in. */
  def guard(session: SparkSession, plan: LogicalPlan): Unit = written(session, plan).foreach { log =>
    if (log.unsafeVolatileSnapshot.metadata.configuration.contains(MARK))
      throw Errors("UNSUPPORTED_TARGET", "DYNAMIC_TABLE", "table" -> log.dataPath.getName)
  }

  /** The log of the table whose rows or columns a statement changes. */
  def written(session: SparkSession, plan: LogicalPlan): Option[DeltaLog] = plan match {
    case w: V2WriteCommand => logOf(w.table)
    case m: MergeIntoCommand => Some(m.targetFileIndex.deltaLog)
    case u: UpdateCommand => Some(u.tahoeFileIndex.deltaLog)
    case d: DeleteCommand => Some(d.deltaLog)
    case r: RestoreTableCommand => Some(r.sourceTable.deltaLog)
    case o: DeltaDynamicPartitionOverwriteCommand => Some(o.deltaTable.deltaLog)
    case s: SaveIntoDataSourceCommand if s.dataSource.isInstanceOf[DeltaDataSource] => s.options.get("path").map(DeltaLog.forTable(session, _))
    case c @ (_: AddColumns | _: ReplaceColumns | _: DropColumns | _: RenameColumn | _: AlterColumns) => c.children.headOption.flatMap(logOf)
    case other => DeltaShim.truncated(other).flatMap(logOf)
  }

  def logOf(table: LogicalPlan): Option[DeltaLog] = table.collectFirst {
    case DeltaRelation(t) => t.deltaLog
    case ResolvedTable(_, _, t: DeltaTableV2, _) => t.deltaLog
  }
}
