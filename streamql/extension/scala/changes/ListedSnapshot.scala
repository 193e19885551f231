package org.apache.spark.sql.streamql.changes

import org.apache.spark.sql.{DataFrame, Dataset, Row}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionSet, Literal}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset => ClassicDataset}
import org.apache.spark.sql.delta.{Snapshot, VersionChecksum}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.files.TahoeLogFileIndex
import org.apache.spark.sql.delta.schema.SchemaUtils
import org.apache.spark.sql.delta.stats.{DataSize, DeltaDataSkippingType, DeltaScan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelationWithTable}
import org.apache.spark.sql.functions.{col, from_json}

/**
 * A snapshot whose files are on the driver, with their statistics. Delta's own snapshot (`own`) finds the files of a scan by a Spark job. A
 * query has several such jobs for each of its tables. Here the driver computes the same expressions over the statistics. `sums`: the
 * checksum of the version. `isRead`: whether each scan reads all files, whatever its filters are.
 */
class ListedSnapshot(own: Snapshot, sums: VersionChecksum, isRead: Boolean) extends AnsweredSnapshot(own) {
  import org.apache.spark.sql.delta.implicits._

  override def sizeInBytes: Long = sums.tableSizeBytes
  override def numOfFiles: Long = sums.numFiles

  private lazy val files: Seq[AddFile] = KnownFiles.of(own).getOrElse(own.allFiles.collect().toSeq)
  override lazy val allFiles: Dataset[AddFile] = spark.createDataset(files)

  /** The files with parsed statistics. Spark's optimizer computes a projection of local rows, so the statistics are parsed once for all
   * scans. */
  private lazy val parsed: DataFrame = {
    val all = allFiles.withColumn("stats", from_json(col("stats"), statsSchema)).asInstanceOf[ClassicDataset[Row]]
    ClassicDataset.ofRows(all.sparkSession, all.queryExecution.optimizedPlan)
  }
  override protected def withStatsInternal: DataFrame = parsed

  override def filesForScan(filters: Seq[Expression], keepNumRecords: Boolean): DeltaScan =
    if (keepNumRecords || !(isRead || filters.forall(_ == Literal.TrueLiteral))) super.filesForScan(filters, keepNumRecords)
    else {
      val size = DataSize(Some(sizeInBytes), None, Some(numOfFiles))
      DeltaScan(version, files, size, size, size)(this, ExpressionSet(Nil), ExpressionSet(Nil), ExpressionSet(Nil), Set.empty, ExpressionSet(filters), 0L,
        DeltaDataSkippingType.noSkippingV1)
    }
}

object ListedSnapshot {
  /** The most files that are collected on the driver. It takes one job, and the statistics of a file are some KB. */
  private val FILES_MAX = 2000L

  /** A snapshot with its files on the driver. It is returned as it is if it has too many files, or no checksum that says how many. So is
   * one with VARIANT columns, whose statistics would have to be decoded. */
  def of(s: Snapshot): Snapshot = of(s, TableBytes.SMALL)

  /** `small`: a table of at most so many bytes is read as a whole. That takes less time than to find the files that are needed. */
  def of(s: Snapshot, small: Long): Snapshot = s match {
    case listed: ListedSnapshot => listed
    case _ => s.checksumOpt.filter(_.numFiles <= FILES_MAX).filterNot(_ => SchemaUtils.checkForVariantTypeColumnsRecursively(s.schema)).fold(s) { sums =>
      new ListedSnapshot(s, sums, isRead = sums.tableSizeBytes <= small && s.metadata.partitionColumns.isEmpty)
    }
  }
}

/** How many bytes the files of tables have, by the checksums of their logs. Delta's own numbers take two jobs for each version. */
object TableBytes {
  /** Tables of fewer bytes are read in less time than it takes to find out which of their rows are needed. */
  val SMALL: Long = 32L << 20

  def of(s: Snapshot): Long = s.checksumOpt.fold(s.sizeInBytes)(_.tableSizeBytes)

  /** Of the tables that a plan reads. Whatever else it reads counts as Spark says. */
  def of(p: LogicalPlan): BigInt = p.collectLeaves().map {
    case LogicalRelationWithTable(HadoopFsRelation(index: TahoeLogFileIndex, _, _, _, _, _), _) => BigInt(of(index.getSnapshot))
    case other => other.stats.sizeInBytes
  }.sum
}
