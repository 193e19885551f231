package org.apache.spark.sql.streamql.shims

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.FileAction
import org.apache.spark.sql.delta.commands.{DMLWithDeletionVectorsHelper, TouchedFileWithDV}
import org.apache.spark.sql.delta.stats.StatsCollectionUtils
import org.apache.spark.sql.types.Metadata

/** What Delta Lake 4.2 and later have in common. */
trait DeltaSince42 extends ShimOfDelta {
  override def hasCommitted(txn: OptimisticTransaction): Boolean = txn.getCommitted.nonEmpty
  override def unmodified(session: SparkSession, touched: Seq[TouchedFileWithDV], txn: OptimisticTransaction): (Seq[FileAction], Map[String, Long]) =
    DMLWithDeletionVectorsHelper.processUnmodifiedData(session, touched, txn.snapshot,
      StatsCollectionUtils.getDataSkippingStringPrefixLength(session, txn.metadata))
  override val tracking: Seq[String => Metadata] = Seq(RowId.columnMetadata(_, false), RowCommitVersion.columnMetadata(_, false))
}

/** Reads a table's data files, without deletion vectors. */
abstract class DataFileFormat(table: SnapshotDescriptor)
  extends DeltaParquetFileFormatBase(ProtocolMetadataAdapterV1(table.protocol, table.metadata), useMetadataRowIndexOpt = Some(true))
