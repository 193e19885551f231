package org.apache.spark.sql.streamql

import scala.collection.mutable

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftAnti}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Action, AddFile, FileAction}
import org.apache.spark.sql.delta.commands.{DeletionVectorData, DeletionVectorUtils, DeletionVectorWriter, DeltaCommand, DMLWithDeletionVectorsHelper, MergeIntoCommand}
import org.apache.spark.sql.delta.deletionvectors.{RoaringBitmapArray, RoaringBitmapArrayFormat}
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex
import org.apache.spark.sql.delta.stats.StatsCollectionUtils
import org.apache.spark.sql.delta.util.{Utils => DeltaUtils}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.{LongType, Metadata}

/**
 * What the MERGE of a refresh commits, with one read of the table. Delta's MERGE reads it three times: for the touched files, for the new rows, and for the
 * deletion vectors. `sourceRows`: how many rows the source has, which are computed already. `isBroadcast`: whether the source is small.
 *
 * The order of the actions, the metrics and the tags are those of Delta's `MergeIntoCommand` and `ClassicMergeExecutor` at the tag v4.4.0.
 */
case class RefreshWrite(merge: MergeIntoCommand, sourceRows: Long, isBroadcast: Boolean) extends LeafRunnableCommand with DeltaCommand {
  import RefreshWrite._

  override val output: Seq[Attribute] = merge.output
  override lazy val metrics: Map[String, SQLMetric] = merge.metrics
  override def innerChildren: Seq[LogicalPlan] = Seq(merge)

  private def deltaLog: DeltaLog = merge.targetFileIndex.deltaLog

  override def run(session: SparkSession): Seq[Row] = {
    val spark = session.asInstanceOf[ClassicSession]
    val began = System.nanoTime()
    deltaLog.withNewTransaction(merge.catalogTable) { txn =>
      if (!hasBeenExecuted(txn, spark)) {
        if (merge.target.schema.size != txn.metadata.schema.size) throw DeltaErrors.schemaChangedSinceAnalysis(merge.target.schema, txn.metadata.schema)
        if (!isPossible(txn.snapshot)) throw DeltaErrors.metadataChangedException(txn.tableNameOrPath, None)
        val actions = if (sourceRows == 0) Nil else written(spark, txn)
        metrics("executionTimeMs").set((System.nanoTime() - began) / 1000000)
        Seq("numSourceRows", "operationNumSourceRows").foreach(metrics(_).set(sourceRows))
        txn.registerSQLMetrics(spark, metrics)
        txn.commitIfNeeded(createSetTransaction(spark, deltaLog).toSeq ++ actions, operation, tags(txn.snapshot))
      }
    }
    spark.sharedState.cacheManager.recacheByPlan(spark, merge.target)
    sendDriverMetrics(spark, metrics)
    val rows = Seq("Updated", "Deleted", "Inserted").map(n => metrics(s"numTargetRows$n").value)
    Seq(Row.fromSeq(rows.sum +: rows))
  }

  private def operation = DeltaOperations.Merge(Some(merge.condition), merge.matchedClauses.map(DeltaOperations.MergePredicate(_)),
    merge.notMatchedClauses.map(DeltaOperations.MergePredicate(_)), Nil)

  private def tags(snapshot: Snapshot): Map[String, String] =
    if (RowTracking.isEnabled(snapshot.protocol, snapshot.metadata)) Map(DeltaCommitTag.PreservedRowTrackingTag.key -> "true") else Map.empty

  private def written(session: ClassicSession, txn: OptimisticTransaction): Seq[Action] = {
    val files = txn.filterFiles(Seq(Literal.TrueLiteral), keepNumRecords = true)
    val matched = new Matched(session, txn, files)
    try {
      val added = newFiles(session, txn, matched)
      val removed = if (matched.touched == 0) Nil else deletionVectors(session, txn, files, matched)
      metrics("numTargetFilesAdded").set(added.size)
      added ++ removed
    } finally matched.free()
  }

  /** The files of the new rows. Few rows make one file. */
  private def newFiles(session: ClassicSession, txn: OptimisticTransaction, matched: Matched): Seq[FileAction] = {
    val inserts = matched.inserts
    val inserted = Dataset.ofRows(session, inserts).count()
    Seq("numTargetRowsUpdated" -> matched.updated, "numTargetRowsMatchedUpdated" -> matched.updated, "numTargetRowsInserted" -> inserted,
      "numTargetRowsDeleted" -> matched.deleted, "numTargetRowsMatchedDeleted" -> matched.deleted).foreach { case (n, v) => metrics(n).set(v) }
    val rows = Seq(inserted -> inserts, matched.updated -> matched.updates).collect { case (n, plan) if n > 0 => plan }
    if (rows.isEmpty) Nil else {
      val all = if (rows.size == 1) rows.head else Union(rows)
      val tasks = ((inserted + matched.updated + ROWS_PER_TASK - 1) / ROWS_PER_TASK).toInt
      txn.writeFiles(matched.marked(Dataset.ofRows(session, Repartition(tasks, shuffle = false, all))))
    }
  }

  /** The files that lose rows, with their deletion vectors, or removed. */
  private def deletionVectors(session: ClassicSession, txn: OptimisticTransaction, files: Seq[AddFile], matched: Matched): Seq[FileAction] = {
    val byName = generateCandidateFileMap(deltaLog.dataPath, files)
    val data = matched.positions.toSeq.map { case (file, rows) =>
      val known = Option(getTouchedFile(deltaLog.dataPath, file, byName).deletionVector).map(_.serializeToBase64())
      DeletionVectorData(file, known, rows.serializeAsByteArray(RoaringBitmapArrayFormat.Portable), rows.cardinality)
    }
    val store = DeletionVectorWriter.createMapperToStoreDeletionVectors(session, deltaLog.newDeltaHadoopConf(), deltaLog.dataPath,
      DeltaUtils.getRandomPrefixLength(txn.metadata))
    val found = store(data.iterator).toSeq
    // A row of the table that two rows of the source match would be written twice.
    if (found.map(_.matchedRowCount).sum != matched.touched) throw DeltaErrors.multipleSourceRowMatchingTargetRowInMergeException(session)
    val touched = DMLWithDeletionVectorsHelper.findFilesWithMatchingRows(txn, byName, found)
    val (actions, counts) = DMLWithDeletionVectorsHelper.processUnmodifiedData(session, touched, txn.snapshot,
      StatsCollectionUtils.getDataSkippingStringPrefixLength(session, txn.metadata))
    Seq("numTargetDeletionVectorsAdded" -> "numDeletionVectorsAdded", "numTargetDeletionVectorsRemoved" -> "numDeletionVectorsRemoved",
      "numTargetDeletionVectorsUpdated" -> "numDeletionVectorsUpdated", "numTargetFilesRemoved" -> "numRemovedFiles")
      .foreach { case (metric, count) => metrics(metric).set(counts.getOrElse(count, 0L)) }
    actions
  }

  /** The rows of the table that the source matches, each with what becomes of it: computed once, and kept. */
  private class Matched(session: ClassicSession, txn: OptimisticTransaction, files: Seq[AddFile]) {
    private val columns = merge.target.schema.map(_.name)
    private val table = {
      val index = new TahoeBatchFileIndex(session, "merge", files, deltaLog, merge.targetFileIndex.path, txn.snapshot)
      val rows = RowTracking.preserveRowTrackingColumns(Dataset.ofRows(session, DeltaTableUtils.replaceFileIndex(merge.target, index)), txn.snapshot)
      rows.withColumn(FILE, col("_metadata.file_path")).withColumn(INDEX, col("_metadata.row_index")).queryExecution.analyzed
    }
    private val tracked = Seq(MaterializedRowId, MaterializedRowCommitVersion).flatMap(c => c.getMaterializedColumnName(txn.protocol, txn.metadata))

    /** The columns of one row that an UPDATE writes. None: the statement has no such clause, because all columns are keys. */
    private val update = merge.matchedClauses.zipWithIndex.collectFirst { case (u: DeltaMergeIntoMatchedUpdateClause, i) => (i, u.resolvedActions.map(_.expr)) }
    private val insert = merge.notMatchedClauses.head
    private val matching = JoinHint(if (isBroadcast) Some(HintInfo(Some(BROADCAST))) else None, None)

    private val kept: LogicalRDD = {
      val action = CaseWhen(merge.matchedClauses.zipWithIndex.map { case (c, i) => (c.condition.getOrElse(Literal.TrueLiteral), Literal(i)) }, Literal(NONE))
      val where = Seq(FILE, INDEX).map(own) ++ tracked.take(1).map(own)
      val values = update.toSeq.flatMap { case (_, values) => values.zipWithIndex.map { case (v, i) => Alias(v, s"$VALUE$i")() } }
      RefreshMerge.computed(session, Project((Alias(action, ACTION)() +: where) ++ values, Join(merge.source, table, Inner, Some(merge.condition), matching)))
    }
    private def own(name: String): Attribute = table.output.find(_.name == name).get
    private def found(name: String): Attribute = kept.output.find(_.name == name).get

    private val parts = kept.rdd.mapPartitions(RefreshWrite.summary).collect().toSeq
    private val counts = parts.flatMap(_._1).groupMapReduce(_._1)(_._2)(_ + _)
    val updated: Long = update.flatMap { case (i, _) => counts.get(i) }.getOrElse(0L)
    /** How many rows of the table are updated or deleted. */
    val touched: Long = counts.collect { case (action, n) if action != NONE => n }.sum
    def deleted: Long = touched - updated

    /** The positions of these rows in each file. */
    def positions: Map[String, RoaringBitmapArray] =
      parts.flatMap(_._2).groupMapReduce(_._1)(one => RoaringBitmapArray.readFrom(one._2)) { (all, more) =>
        all.merge(more)
        all
      }

    def updates: LogicalPlan = {
      val (action, values) = update.get
      val ids = tracked.zip(Seq(tracked.headOption.map(found)) :+ None).map { case (name, id) => Alias(id.getOrElse(Literal(null, LongType)), name)() }
      Project(columns.zip(values.indices).map { case (c, i) => Alias(found(s"$VALUE$i"), c)() } ++ ids, Filter(EqualTo(found(ACTION), Literal(action)), kept))
    }

    /** The rows of the source that are new. If another writer has put rows of the same keys into the table, those stay. */
    def inserts: LogicalPlan = {
      val rows = Filter(insert.condition.getOrElse(Literal.TrueLiteral), merge.source)
      val missing = if (counts.contains(NONE)) Join(rows, table, LeftAnti, Some(merge.condition), JoinHint.NONE) else rows
      Project(columns.zip(insert.resolvedActions).map { case (c, a) => Alias(a.expr, c)() } ++ tracked.map(Alias(Literal(null, LongType), _)()), missing)
    }

    /** Rows to be written, in which Delta finds the columns of row tracking. */
    def marked(rows: Dataset[Row]): Dataset[Row] = {
      val metadata: Seq[String => Metadata] = Seq(RowId.columnMetadata(_, false), RowCommitVersion.columnMetadata(_, false))
      tracked.zip(metadata).foldLeft(rows) { case (df, (name, of)) => df.withMetadata(name, of(name)) }
    }

    def free(): Unit = session.sparkContext.unpersistRDD(kept.rdd.id, blocking = false)
  }
}

object RefreshWrite {
  private val ACTION = "__streamql_action"
  private val FILE = "__streamql_file"
  private val INDEX = "__streamql_row_index"
  private val VALUE = "__streamql_value_"
  private val NONE = -1
  private val ROWS_PER_TASK = 250000L

  /** Of kept rows: how many have each action, and the positions in each file of those with one, serialized. */
  private def summary(rows: Iterator[InternalRow]): Iterator[(Map[Int, Long], Map[String, Array[Byte]])] = {
    val counts = mutable.HashMap[Int, Long]()
    val positions = mutable.HashMap[String, RoaringBitmapArray]()
    rows.foreach { r =>
      counts(r.getInt(0)) = counts.getOrElse(r.getInt(0), 0L) + 1
      if (r.getInt(0) != NONE) positions.getOrElseUpdate(r.getUTF8String(1).toString, new RoaringBitmapArray()).add(r.getLong(2))
    }
    Iterator((counts.toMap, positions.view.mapValues(_.serializeAsByteArray(RoaringBitmapArrayFormat.Portable)).toMap))
  }

  /** Whether a table's commits need nothing but files and deletion vectors. */
  def isPossible(snapshot: Snapshot): Boolean =
    DeletionVectorUtils.deletionVectorsWritable(snapshot) && !DeltaConfigs.CHANGE_DATA_FEED.fromMetaData(snapshot.metadata)
}
