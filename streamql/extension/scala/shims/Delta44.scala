package org.apache.spark.sql.streamql.shims

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.{DeltaErrors, OptimisticTransaction, SnapshotDescriptor}
import org.apache.spark.sql.delta.commands.TruncateDeltaTableCommand

/** Delta Lake 4.4. */
object DeltaShim extends DeltaSince42 {
  override def truncated(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case t: TruncateDeltaTableCommand => t.children.headOption
    case _ => None
  }
  override def metadataChanged(txn: OptimisticTransaction): Throwable = DeltaErrors.metadataChangedException(txn.tableNameOrPath, None)
}

/** What describes the table of a log. */
trait TableDescriptor extends SnapshotDescriptor {
  override def dataPath: Path = deltaLog.dataPath
  override def logPath: Path = deltaLog.logPath
}
