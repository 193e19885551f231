package org.apache.spark.sql.streamql.shims

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.FileAction
import org.apache.spark.sql.delta.commands.{DMLWithDeletionVectorsHelper, TouchedFileWithDV}
import org.apache.spark.sql.delta.stats.StatsCollectionUtils
import org.apache.spark.sql.types.Metadata

/** Delta Lake 4.2. */
object DeltaShim {
  /** The directory of a table. */
  def dataPath(table: SnapshotDescriptor): Path = table.deltaLog.dataPath

  /** The table that TRUNCATE empties. None: it is another statement, or this Delta makes DELETE of it. */
  def truncated(plan: LogicalPlan): Option[LogicalPlan] = None

  def hasCommitted(txn: OptimisticTransaction): Boolean = txn.getCommitted.nonEmpty

  /** The error of a statement whose table got other metadata since the statement was analysed. */
  def metadataChanged(txn: OptimisticTransaction): Throwable = DeltaErrors.metadataChangedException(None)

  /** The actions for files that have new deletion vectors, and what they count. */
  def unmodified(session: SparkSession, touched: Seq[TouchedFileWithDV], txn: OptimisticTransaction): (Seq[FileAction], Map[String, Long]) =
    DMLWithDeletionVectorsHelper.processUnmodifiedData(session, touched, txn.snapshot,
      StatsCollectionUtils.getDataSkippingStringPrefixLength(session, txn.metadata))

  /** What marks the columns of row ids and of their commit versions, by the name of the column. */
  val tracking: Seq[String => Metadata] = Seq(RowId.columnMetadata(_, false), RowCommitVersion.columnMetadata(_, false))
}

/** Reads a table's data files, without deletion vectors. */
abstract class DataFileFormat(table: SnapshotDescriptor)
  extends DeltaParquetFileFormatBase(ProtocolMetadataAdapterV1(table.protocol, table.metadata), useMetadataRowIndexOpt = Some(true))

/** What describes the table of a log. */
trait TableDescriptor extends SnapshotDescriptor
