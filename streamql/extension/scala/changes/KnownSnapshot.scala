package org.apache.spark.sql.streamql.changes

import org.apache.spark.sql.{DataFrame, Dataset}
import org.apache.spark.sql.delta.{RowTracking, Snapshot}
import org.apache.spark.sql.delta.actions.{DomainMetadata, SetTransaction, SingleAction}
import org.apache.spark.sql.delta.stats.FileSizeHistogram

/**
 * A snapshot that answers some questions by its checksum. For these, Delta's own snapshot (`own`) would reconstruct the whole state of the
 * log, in three jobs. All other questions are passed on to it.
 */
abstract class AnsweredSnapshot(own: Snapshot) extends Snapshot(own.path, own.version, own.logSegment, own.deltaLog, own.checksumOpt) {
  override def domainMetadata: Seq[DomainMetadata] = own.domainMetadata
  override def stateDF: DataFrame = own.stateDF
  override def stateDS: Dataset[SingleAction] = own.stateDS
  override def sizeInBytes: Long = own.sizeInBytes
  override def numOfSetTransactions: Long = own.numOfSetTransactions
  override def numOfFiles: Long = own.numOfFiles
  override def numOfRemoves: Long = own.numOfRemoves
  override def numOfMetadata: Long = own.numOfMetadata
  override def numOfProtocol: Long = own.numOfProtocol
  override def setTransactions: Seq[SetTransaction] = own.setTransactions
  override lazy val transactions: Map[String, Long] = own.transactions
  override def fileSizeHistogram: Option[FileSizeHistogram] = own.fileSizeHistogram
}

/**
 * A snapshot whose domain metadata are known. Each commit to a table with row tracking asks for them to learn the last row id, even an
 * INSERT of one row.
 */
class KnownSnapshot(own: Snapshot, domains: Seq[DomainMetadata]) extends AnsweredSnapshot(own) {
  override def domainMetadata: Seq[DomainMetadata] = domains
}

object KnownSnapshot {
  /** A snapshot with its domain metadata. It is returned as it is if its checksum does not have them, or if no commit asks for them. */
  def of(s: Snapshot): Snapshot =
    if (!RowTracking.isSupported(s.protocol)) s else s.checksumOpt.flatMap(_.domainMetadata).fold(s)(new KnownSnapshot(s, _))
}
