package org.apache.spark.sql.streamql.shims

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.{DeltaErrors, OptimisticTransaction, SnapshotDescriptor}

/** What Delta Lake has in common until 4.2. */
trait DeltaUntil42 extends ShimOfDelta {
  override def truncated(plan: LogicalPlan): Option[LogicalPlan] = None
  override def metadataChanged(txn: OptimisticTransaction): Throwable = DeltaErrors.metadataChangedException(None)
}

/** What describes the table of a log. */
trait TableDescriptor extends SnapshotDescriptor
