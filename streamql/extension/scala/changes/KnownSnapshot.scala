package org.apache.spark.sql.streamql.changes

import org.apache.spark.sql.{DataFrame, Dataset}
import org.apache.spark.sql.delta.{RowTracking, Snapshot}
import org.apache.spark.sql.delta.actions.{DomainMetadata, SetTransaction, SingleAction}
import org.apache.spark.sql.delta.stats.FileSizeHistogram

/**
 * A snapshot that answers some questions by its checksum. Delta's own snapshot computes the whole state of the log for them: three jobs. Whatever else is
 * asked, the own one answers.
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

/** A snapshot whose domains are known. Each commit to a table that tracks its rows asks for them, also an INSERT of one row, to learn the last row id. */
class KnownSnapshot(own: Snapshot, domains: Seq[DomainMetadata]) extends AnsweredSnapshot(own) {
  override def domainMetadata: Seq[DomainMetadata] = domains
}

object KnownSnapshot {
  /** The same snapshot, if its checksum does not name its domains or no commit asks for them. */
  def of(s: Snapshot): Snapshot =
    if (!RowTracking.isSupported(s.protocol)) s else s.checksumOpt.flatMap(_.domainMetadata).fold(s)(new KnownSnapshot(s, _))
}
