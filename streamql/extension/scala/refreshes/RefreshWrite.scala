package org.apache.spark.sql.streamql.refreshes

import scala.collection.mutable

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftAnti}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Action, AddFile, FileAction, RemoveFile}
import org.apache.spark.sql.delta.commands.{DeletionVectorData, DeletionVectorUtils, DeletionVectorWriter, DeltaCommand, DMLWithDeletionVectorsHelper, MergeIntoCommand, TouchedFileWithDV}
import org.apache.spark.sql.delta.deletionvectors.{RoaringBitmapArray, RoaringBitmapArrayFormat}
import org.apache.spark.sql.delta.util.{Utils => DeltaUtils}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.streamql.changes.{ChangeFileIndex, KnownFiles, RowImages, TableBytes, TableReader}
import org.apache.spark.sql.streamql.rules.ComputedRows
import org.apache.spark.sql.streamql.shims.DeltaShim
import org.apache.spark.sql.types.{ArrayType, IntegerType, LongType, StringType, StructField}

/**
 * Runs the MERGE of a refresh with one read of the table, or with none if the places of the stored rows are known. Delta's MERGE reads the
 * table three times: for the touched files, for the new rows, and for the deletion vectors. `rows`: of its source.
 *
 * The order of the actions, the metrics and the tags are those of Delta's `MergeIntoCommand` and `ClassicMergeExecutor` at the tag v4.4.0.
 */
case class RefreshWrite(merge: MergeIntoCommand, rows: RefreshedRows) extends LeafRunnableCommand with DeltaCommand {
  import RefreshWrite._
  import StoredRows.{FILE, INDEX}

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
        if (!isPossible(txn.snapshot)) throw DeltaShim.metadataChanged(txn)
        val actions = if (rows.count == 0) Nil else written(spark, txn)
        metrics("executionTimeMs").set((System.nanoTime() - began) / 1000000)
        Seq("numSourceRows", "operationNumSourceRows").foreach(metrics(_).set(rows.count))
        txn.registerSQLMetrics(spark, metrics)
        txn.commitIfNeeded(createSetTransaction(spark, deltaLog).toSeq ++ actions, operation, tags(txn.snapshot))
      }
    }
    spark.sharedState.cacheManager.recacheByPlan(spark, merge.target)
    sendDriverMetrics(spark, metrics)
    val counts = Seq("Updated", "Deleted", "Inserted").map(n => metrics(s"numTargetRows$n").value)
    Seq(Row.fromSeq(counts.sum +: counts))
  }

  private def operation = DeltaOperations.Merge(Some(merge.condition), merge.matchedClauses.map(DeltaOperations.MergePredicate(_)),
    merge.notMatchedClauses.map(DeltaOperations.MergePredicate(_)), Nil)

  private def tags(snapshot: Snapshot): Map[String, String] =
    if (RowTracking.isEnabled(snapshot.protocol, snapshot.metadata)) Map(DeltaCommitTag.PreservedRowTrackingTag.key -> "true") else Map.empty

  private def written(session: ClassicSession, txn: OptimisticTransaction): Seq[Action] = {
    val known = KnownFiles.of(txn.snapshot)
    val files = known.fold(txn.filterFiles(Seq(Literal.TrueLiteral), keepNumRecords = true)) { all =>
      txn.trackReadPredicates(Seq(Literal.TrueLiteral))
      txn.trackFilesRead(all)
      all
    }
    val matched = new Matched(session, txn, files)
    try {
      val added = newFiles(session, txn, matched)
      val removed = if (matched.touched == 0) Nil else deletionVectors(session, txn, files, matched, hasStatistics = known.nonEmpty)
      metrics("numTargetFilesAdded").set(added.size)
      if (matched.isShown) added ++ removed else (added ++ removed).map(moved)
    } finally matched.free()
  }

  /** An action of a commit that changes nothing of what a dynamic table shows. Its rows keep their ids and versions, and streams need not
   * read them. */
  private def moved(action: FileAction): FileAction = action match {
    case a: AddFile => a.copy(dataChange = false)
    case r: RemoveFile => r.copy(dataChange = false)
    case other => other
  }

  /** Writes the inserted and updated rows, and returns their files. Few rows make one file. */
  private def newFiles(session: ClassicSession, txn: OptimisticTransaction, matched: Matched): Seq[FileAction] = {
    val (inserted, rewritten) = (matched.inserted, matched.updated + matched.hidden)
    Seq("numTargetRowsUpdated" -> matched.updated, "numTargetRowsMatchedUpdated" -> matched.updated, "numTargetRowsInserted" -> inserted,
      "numTargetRowsDeleted" -> matched.deleted, "numTargetRowsMatchedDeleted" -> matched.deleted).foreach { case (n, v) => metrics(n).set(v) }
    val parts = (if (inserted > 0) Seq(matched.inserts) else Nil) ++ (if (rewritten > 0) matched.updates else None)
    if (parts.isEmpty) Nil else {
      val all = if (parts.size == 1) parts.head else Union(parts)
      val tasks = ((inserted + rewritten + ROWS_PER_TASK - 1) / ROWS_PER_TASK).toInt
      txn.writeFiles(matched.marked(Dataset.ofRows(session, Repartition(tasks, shuffle = false, all))))
    }
  }

  /** Writes deletion vectors for the files that lose rows, and returns the actions for these files. A file that loses all rows is removed.
   * `hasStatistics`: whether `files` have their statistics. */
  private def deletionVectors(session: ClassicSession, txn: OptimisticTransaction, files: Seq[AddFile], matched: Matched,
      hasStatistics: Boolean): Seq[FileAction] = {
    val byName = generateCandidateFileMap(deltaLog.dataPath, files)
    val data = matched.positions.toSeq.map { case (file, rows) =>
      val known = Option(getTouchedFile(deltaLog.dataPath, file, byName).deletionVector).map(_.serializeToBase64())
      DeletionVectorData(file, known, rows.serializeAsByteArray(RoaringBitmapArrayFormat.Portable), rows.cardinality)
    }
    val store = DeletionVectorWriter.createMapperToStoreDeletionVectors(session, deltaLog.newDeltaHadoopConf(), deltaLog.dataPath,
      DeltaUtils.getRandomPrefixLength(txn.metadata))
    val found = store(data.iterator).toSeq
    // If two rows of the source matched one row of the table, that row would be written twice.
    if (found.map(_.matchedRowCount).sum != matched.touched) throw DeltaErrors.multipleSourceRowMatchingTargetRowInMergeException(session)
    val touched = DMLWithDeletionVectorsHelper.findFilesWithMatchingRows(txn, byName, found)
    val own = if (hasStatistics) withVectors(touched) else None
    val (actions, counts) = own.getOrElse(DeltaShim.unmodified(session, touched, txn))
    Seq("numTargetDeletionVectorsAdded" -> "numDeletionVectorsAdded", "numTargetDeletionVectorsRemoved" -> "numDeletionVectorsRemoved",
      "numTargetDeletionVectorsUpdated" -> "numDeletionVectorsUpdated", "numTargetFilesRemoved" -> "numRemovedFiles")
      .foreach { case (metric, count) => metrics(metric).set(counts.getOrElse(count, 0L)) }
    actions
  }

  /** Does what `DMLWithDeletionVectorsHelper.processUnmodifiedData` does with files, but without a query for their statistics. None: a file
   * lacks them. */
  private def withVectors(touched: Seq[TouchedFileWithDV]): Option[(Seq[FileAction], Map[String, Long])] = {
    val (gone, left) = touched.partition(_.isFullyReplaced())
    val made = left.flatMap { f =>
      val (add, remove) = f.fileLogEntry.removeRows(f.newDeletionVector, updateStats = false)
      KnownFiles.wideBounds(f.fileLogEntry).map(stats => (add.copy(stats = stats), remove))
    }
    val now = System.currentTimeMillis()
    def hadVector(files: Seq[TouchedFileWithDV]): Long = files.count(_.fileLogEntry.deletionVector != null).toLong
    if (made.size < left.size) None else Some((gone.map(_.fileLogEntry.removeWithTimestamp(now)) ++ made.map(_._1) ++ made.map(_._2),
      Map("numRemovedFiles" -> gone.size.toLong, "numDeletionVectorsRemoved" -> hadVector(gone),
        "numDeletionVectorsUpdated" -> hadVector(left), "numDeletionVectorsAdded" -> (left.size - hadVector(left)))))
  }

  /** The rows of the table that the source matches, each with the clause that acts on it. If they had to be found, they are computed and
   * kept until `free`. */
  private class Matched(session: ClassicSession, txn: OptimisticTransaction, files: Seq[AddFile]) {
    private val columns = merge.target.schema.map(_.name)
    /** The table's rows, each with the number of its file, its position, its row id, and its row commit version. Delta's `_metadata` has the
     * same, but makes a struct of a dozen fields for each row of the table. */
    private lazy val table: LogicalPlan = {
      val index = new ChangeFileIndex(session, deltaLog, files, txn.snapshot, None, files.map(_.path).zipWithIndex.toMap.view.mapValues(_.toLong).toMap)
      val own = Seq(RowImages.FILE, RowImages.INDEX) ++ (if (tracked.isEmpty) Nil else Seq(RowImages.ID, RowImages.VERSION))
      val images = new TableReader(session, deltaLog).images(txn.snapshot, index, files, own.map(StructField(_, LongType, nullable = false)),
        selects = files.exists(_.deletionVector != null), loose = "").queryExecution.analyzed
      val places = images.output.take(own.size).zip(Seq(FILE, INDEX) ++ tracked).map { case (a, name) => Alias(a, name)() }
      def column(a: Attribute) = images.output.find(_.name == a.name).getOrElse(throw DeltaShim.metadataChanged(txn))
      merge.target.transformUp {
        case leaf: LogicalRelation => Project(places ++ leaf.output.map(a => Alias(column(a), a.name)(exprId = a.exprId)), images)
        case p: Project => p.copy(projectList = p.projectList ++ places.map(_.toAttribute))
      }
    }
    /** The path of a file, as the log has it, by its number. */
    private def path(number: Attribute): Expression =
      GetArrayItem(Literal.create(files.map(_.path), ArrayType(StringType, containsNull = false)), Cast(number, IntegerType))
    private lazy val tracked = Seq(MaterializedRowId, MaterializedRowCommitVersion).flatMap(c => c.getMaterializedColumnName(txn.protocol, txn.metadata))

    /** The UPDATE clauses by their numbers, with what each writes into the columns of a row. Empty: the statement has no such clause,
     * because all columns are keys. */
    private val updating = merge.matchedClauses.zipWithIndex.collect { case (u: DeltaMergeIntoMatchedUpdateClause, i) => (i, u.resolvedActions.map(_.expr)) }
    /** The number of the clause for updates of hidden columns; None: there is none. */
    private val hiding: Option[Int] = merge.matchedClauses.indexWhere(_.condition.exists(_.exists {
      case l: Literal => l.toString == DynamicQuery.HIDDEN
      case _ => false
    })) match {
      case -1 => None
      case i => Some(i)
    }
    private val insert = merge.notMatchedClauses.head
    private val placed = rows.placed(merge, txn.snapshot.version)

    private val kept: LogicalPlan = {
      val action = CaseWhen(merge.matchedClauses.zipWithIndex.map { case (c, i) => (c.condition.getOrElse(Literal.TrueLiteral), Literal(i)) }, Literal(NONE))
      val values = updating.map(_._2).transpose.zipWithIndex.map { case (own, i) =>
        // All clauses set most columns to the same value.
        val value = if (own.forall(_.semanticEquals(own.head))) own.head
          else CaseWhen(updating.map(_._1).zip(own).map { case (clause, v) => (merge.matchedClauses(clause).condition.get, v) })
        Alias(value, s"$VALUE$i")()
      }
      placed.fold(ComputedRows.of(session, joined(Alias(action, ACTION)(), values)): LogicalPlan) { source =>
        val Seq(file, index, id, version) = StoredRows.places(source.plan)
        val made = (Alias(action, ACTION)() +: Seq(file, index)) ++ tracked.zip(Seq(id, version)).map { case (name, a) => Alias(a, name)() } ++ values
        Project(made.map(e => source.own(e).asInstanceOf[NamedExpression]), Filter(IsNotNull(file), source.plan))
      }
    }

    /** The rows of the table, found by the keys of the source's rows. */
    private def joined(action: Alias, values: Seq[Alias]): LogicalPlan = {
      val by = if (rows.isSmall) merge else RefreshMerge.filtered(session, merge, rows.count)
      val isLarge = rows.count > 0 && TableBytes.of(txn.snapshot) > TableBytes.SMALL
      val condition = if (isLarge) RefreshMerge.joined(session, by, rows.count).narrowed else by.condition
      val hint = JoinHint(if (rows.isSmall) Some(HintInfo(Some(BROADCAST))) else None, None)
      def own(name: String) = table.output.find(_.name == name).get
      val places = Alias(path(own(FILE)), FILE)() +: (INDEX +: tracked).map(own)
      Project((action +: places) ++ values, Join(by.source, table, Inner, Some(condition), hint))
    }
    private def found(name: String): Attribute = kept.output.find(_.name == name).get

    private val parts = Dataset.ofRows(session, Project(kept.output.take(3), kept)).queryExecution.toRdd.mapPartitions(RefreshWrite.summary).collect().toSeq
    private val counts = parts.flatMap(_._1).groupMapReduce(_._1)(_._2)(_ + _)
    /** How many rows of the table get other values in hidden columns alone. */
    val hidden: Long = hiding.flatMap(counts.get).getOrElse(0L)
    val updated: Long = updating.map { case (i, _) => counts.getOrElse(i, 0L) }.sum - hidden
    /** How many rows of the table are updated or deleted. */
    val touched: Long = counts.collect { case (action, n) if action != NONE => n }.sum
    def deleted: Long = touched - updated - hidden
    /** How many rows of the source are new. They are counted if the places of stored rows are not known, or if no UPDATE clause acts on the
     * other rows. */
    lazy val inserted: Long =
      if (updating.isEmpty || placed.isEmpty) Dataset.ofRows(session, inserts).count() else rows.count - touched
    /** Whether the statement changes what a dynamic table shows. */
    def isShown: Boolean = inserted + updated + deleted > 0

    /** The positions of these rows in each file. */
    def positions: Map[String, RoaringBitmapArray] =
      parts.flatMap(_._2).groupMapReduce(_._1)(one => RoaringBitmapArray.readFrom(one._2)) { (all, more) =>
        all.merge(more)
        all
      }

    def updates: Option[LogicalPlan] = if (updating.isEmpty) None else Some {
      // A row that keeps its version counts as unchanged: only updates of hidden columns do so.
      def version(own: Attribute): Expression = hiding.fold(Literal(null, LongType): Expression)(h => If(EqualTo(found(ACTION), Literal(h)), own, Literal(null, LongType)))
      val ids = tracked.map(found).zipWithIndex.map { case (a, i) => Alias(if (i == 0) a else version(a), a.name)() }
      val own = In(found(ACTION), updating.map { case (i, _) => Literal(i) })
      Project(columns.zipWithIndex.map { case (c, i) => Alias(found(s"$VALUE$i"), c)() } ++ ids, Filter(own, kept))
    }

    /** The rows of the source that are new. If another writer has put rows with their keys into the table, these rows stay, and the
     * source's are left out. */
    def inserts: LogicalPlan = {
      val own = Filter(insert.condition.getOrElse(Literal.TrueLiteral), merge.source)
      val missing = if (counts.contains(NONE)) Join(own, table, LeftAnti, Some(merge.condition), JoinHint.NONE) else own
      Project(columns.zip(insert.resolvedActions).map { case (c, a) => Alias(a.expr, c)() } ++ tracked.map(Alias(Literal(null, LongType), _)()), missing)
    }

    /** Marks the columns of row tracking in rows that are to be written, so that Delta finds them. */
    def marked(rows: Dataset[Row]): Dataset[Row] = {
      tracked.zip(DeltaShim.tracking).foldLeft(rows) { case (df, (name, of)) => df.withMetadata(name, of(name)) }
    }

    def free(): Unit = kept match {
      case made: LogicalRDD => session.sparkContext.unpersistRDD(made.rdd.id, blocking = false)
      case _ =>
    }
  }
}

object RefreshWrite {
  private val ACTION = "__streamql_action"
  private val VALUE = "__streamql_value_"
  private val NONE = -1
  private val ROWS_PER_TASK = 250000L

  /** What a task has of matched rows: how many have each action, and the positions in each file of those on which a clause acts,
   * serialized. */
  private def summary(rows: Iterator[InternalRow]): Iterator[(Map[Int, Long], Map[String, Array[Byte]])] = {
    val counts = mutable.HashMap[Int, Long]()
    val positions = mutable.HashMap[String, RoaringBitmapArray]()
    rows.foreach { r =>
      counts(r.getInt(0)) = counts.getOrElse(r.getInt(0), 0L) + 1
      if (r.getInt(0) != NONE) positions.getOrElseUpdate(r.getUTF8String(1).toString, new RoaringBitmapArray()).add(r.getLong(2))
    }
    Iterator((counts.toMap, positions.view.mapValues(_.serializeAsByteArray(RoaringBitmapArrayFormat.Portable)).toMap))
  }

  /** Whether a commit to the table needs only data files and deletion vectors. A change data feed would need more. */
  def isPossible(snapshot: Snapshot): Boolean =
    DeletionVectorUtils.deletionVectorsWritable(snapshot) && !DeltaConfigs.CHANGE_DATA_FEED.fromMetaData(snapshot.metadata)
}
