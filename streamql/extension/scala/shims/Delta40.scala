package org.apache.spark.sql.streamql.shims

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{FileAction, Metadata, Protocol}
import org.apache.spark.sql.delta.commands.{DMLWithDeletionVectorsHelper, TouchedFileWithDV}
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.{Metadata => ColumnMetadata, StructType}

/** Delta Lake 4.0. */
object DeltaShim extends DeltaUntil42 {
  override def hasCommitted(txn: OptimisticTransaction): Boolean = committed.invoke(txn).asInstanceOf[Option[_]].nonEmpty
  private val committed = classOf[OptimisticTransaction].getMethod("committed") // protected in Scala only

  override def unmodified(session: SparkSession, touched: Seq[TouchedFileWithDV], txn: OptimisticTransaction): (Seq[FileAction], Map[String, Long]) =
    DMLWithDeletionVectorsHelper.processUnmodifiedData(session, touched, txn.snapshot)
  override val tracking: Seq[String => ColumnMetadata] = Seq(RowId.columnMetadata, RowCommitVersion.columnMetadata)
}

/**
 * Reads a table's data files, without deletion vectors. It is no DeltaParquetFileFormat: Delta's rules would put one of their own in its place.
 */
abstract class DataFileFormat(table: SnapshotDescriptor) extends ParquetFileFormat {
  private val theirs = new TheirFileFormat(table.protocol, table.metadata, this)

  def prepareSchemaForRead(schema: StructType): StructType = theirs.physical(schema)
  override def supportFieldName(name: String): Boolean = theirs.supportFieldName(name)
  override def buildReaderWithPartitionValues(session: SparkSession, dataSchema: StructType, partitionSchema: StructType,
      required: StructType, filters: Seq[Filter], options: Map[String, String], conf: Configuration): PartitionedFile => Iterator[InternalRow] =
    theirs.buildReaderWithPartitionValues(session, dataSchema, partitionSchema, required, filters, options, conf)
}

private class TheirFileFormat(protocol: Protocol, metadata: Metadata, own: DataFileFormat) extends DeltaParquetFileFormat(protocol, metadata) {
  override def prepareSchemaForRead(schema: StructType): StructType = own.prepareSchemaForRead(schema)
  def physical(schema: StructType): StructType = super.prepareSchemaForRead(schema)
}
