package org.apache.spark.sql.streamql.changes

import java.io.FileNotFoundException
import java.util.concurrent.{Callable, ExecutionException, Executors}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.ClassicConversions._
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaLog, Snapshot, SnapshotDescriptor}
import org.apache.spark.sql.delta.actions.{Action, AddFile, Metadata, Protocol}
import org.apache.spark.sql.delta.files.TahoeBatchFileIndex
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, LogicalRelation}
import org.apache.spark.sql.functions.{col, concat, concat_ws}
import org.apache.spark.sql.streamql.bridge.Wire
import org.apache.spark.sql.streamql.session.Neutral
import org.apache.spark.sql.streamql.shims.TableDescriptor
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.util.SerializableConfiguration

import streamql.S3Logs

/** Runs work for many files or commits at once. Such work waits for storage, and not for a core. */
object Parallel {
  private lazy val pool = Executors.newFixedThreadPool(32, (r: Runnable) => {
    val t = new Thread(r, "streamql-io"); t.setDaemon(true); t
  })
  def map[A, B](items: Seq[A])(f: A => B): Seq[B] =
    if (items.size <= 2) items.map(f)
    else try pool.invokeAll(items.map(i => (() => f(i)): Callable[B]).asJava).asScala.map(_.get).toSeq
    catch { case e: ExecutionException => throw e.getCause }
}

/**
 * Finds the newest snapshot of a log. If the snapshot at hand still is the newest one, a check of two files shows that, and the log is not
 * listed. On S3, one request checks both files: a list of a few names from the first one on.
 */
object Newest {
  /** How many names such a list has. A commit is followed by the files of its checkpoint, if there is one, and then by those of the next
   * version. */
  private val NamesMax = 5

  private val fileSystems = java.util.Collections.synchronizedMap(new java.util.WeakHashMap[DeltaLog, FileSystem]())

  def of(log: DeltaLog): Snapshot = {
    val known = log.unsafeVolatileSnapshot
    if (stillIs(log, known)) known else log.update()
  }

  /** Whether there is no next commit, and the snapshot's last file is the one that it was. Otherwise the table may have been made anew.
   * Commits of a coordinator are not in the log, so tables with one are not checked. */
  private def stillIs(log: DeltaLog, s: Snapshot): Boolean =
    s.version >= 0 && !s.isCatalogOwned && s.tableCommitCoordinatorClientOpt.isEmpty &&
      madeFrom(s).exists { last =>
        val fs = fileSystems.computeIfAbsent(log, l => l.logPath.getFileSystem(l.newDeltaHadoopConf()))
        S3Logs.listFrom(fs, log.logPath, last.getPath.getName, NamesMax).map(_.take(NamesMax).toSeq).map(isNewest(s.version, last, _)).getOrElse(
          isNewest(fs, log, s.version, last))
      }

  /** `names`: those in the log from `last` on. If they are too few to tell, the result is false, and the log is listed. */
  private def isNewest(version: Long, last: FileStatus, names: Seq[FileStatus]): Boolean = {
    def belongsToVersion(file: FileStatus) = file.getPath.getName.startsWith(f"$version%020d.")
    val (own, others) = names.span(belongsToVersion)
    own.headOption.exists(first => first.getPath.getName == last.getPath.getName && S3Logs.isSame(last, first)) &&
      own.size < NamesMax && !others.headOption.exists(_.getPath.getName.head.isDigit)
  }

  private def isNewest(fs: FileSystem, log: DeltaLog, version: Long, last: FileStatus): Boolean = {
    def isSame(now: FileStatus) = now.getModificationTime == last.getModificationTime && now.getLen == last.getLen
    try isSame(fs.getFileStatus(last.getPath)) && !fs.exists(FileNames.unsafeDeltaFile(log.logPath, version + 1))
    catch { case _: FileNotFoundException => false }
  }

  /** The file of the snapshot's last commit, or of the checkpoint, if that is of the snapshot's version. */
  private def madeFrom(s: Snapshot): Option[FileStatus] =
    s.logSegment.deltas.lastOption.filter(f => FileNames.deltaVersion(f.getPath) == s.version)
      .orElse(Some(s.checkpointProvider).filter(_.version == s.version).flatMap(_.topLevelFiles.headOption))
}

/**
 * A file index of exactly these files, without a Spark job that lists them. `chosen`: the rows that are read; None: all rows. `numbers`: by
 * path, what RowImages.FILE shows.
 */
class ChangeFileIndex(session: SparkSession, log: DeltaLog, files: Seq[AddFile], descriptor: SnapshotDescriptor, chosen: Option[FileRows],
    numbers: Map[String, Long] = Map.empty)
  extends TahoeBatchFileIndex(session.asInstanceOf[ClassicSession], "batch", files, log, log.dataPath, descriptor) {
  override def matchingFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[AddFile] =
    (if (partitionFilters.isEmpty) files else super.matchingFiles(partitionFilters, dataFilters))
      .filterNot(f => chosen.exists(_.of(f.path).exists(_.areNone)))

  override def fileStatusWithMetadataFromAddFile(file: AddFile): FileStatusWithMetadata = {
    val status = super.fileStatusWithMetadataFromAddFile(file)
    val more = chosen.flatMap(_.of(file.path)).map(RowImages.SELECTION -> _) ++ numbers.get(file.path).map(RowImages.FILE -> _)
    if (more.isEmpty) status else status.copy(metadata = status.metadata ++ more)
  }
}

/** The schema and protocol by which files are read, if the schema is that of an earlier version, and not the snapshot's own. */
class Descriptor(val deltaLog: DeltaLog, val version: Long, val metadata: Metadata, val protocol: Protocol) extends TableDescriptor {
  override def numOfFilesIfKnown: Option[Long] = None
  override def sizeInBytesIfKnown: Option[Long] = None
}

/** One Delta table for Python: its log as JSON, its files as DataFrames. What the log means for a stream is Python's. */
class TableReader(private[streamql] val session: SparkSession, val log: DeltaLog) {
  private[streamql] val classic = Neutral.of(session)
  private val mapper = TableReader.mapper
  private lazy val hadoopConf = log.newDeltaHadoopConf()

  /** The Hadoop configuration for tasks. It is far larger than all else that they get, so it is sent once, and again only if settings
   * change. */
  lazy val broadcastConf: Broadcast[SerializableConfiguration] = TableReader.confs.synchronized {
    val conf = hadoopConf
    val settings = conf.iterator.asScala.map(e => e.getKey -> e.getValue).toMap
    Option(TableReader.confs.get(classic)).filter(_._1 == settings).map(_._2).getOrElse {
      val sent = session.sparkContext.broadcast(new SerializableConfiguration(conf))
      TableReader.confs.put(classic, (settings, sent))
      sent
    }
  }

  def update(): Snapshot = Newest.of(log)
  /** The snapshot that this process has: its own last commit, or what it read since. The log may have newer commits. */
  def known(): Snapshot = log.unsafeVolatileSnapshot
  def snapshotAt(version: Long): Snapshot = log.getSnapshotAt(version)
  def path: String = log.dataPath.toString
  def logPath: String = log.logPath.toString

  /** {version, timestamp, metaData, protocol} of a snapshot; version -1: no table here. */
  def describe(s: Snapshot): String = {
    val node = mapper.createObjectNode()
    node.put("version", s.version)
    if (s.version >= 0) {
      node.put("timestamp", s.timestamp)
      node.set[ObjectNode]("metaData", mapper.readTree(s.metadata.json).get("metaData"))
      node.set[ObjectNode]("protocol", mapper.readTree(s.protocol.json).get("protocol"))
    }
    node.toString
  }

  def descriptor(base: SnapshotDescriptor, version: Long, metadataJson: String): SnapshotDescriptor =
    new Descriptor(log, version, Action.fromJson(metadataJson).asInstanceOf[Metadata], base.protocol)

  /** The files of commits that a commit coordinator has accepted, and that are not in the log yet, by version. */
  def staged(snapshot: Snapshot): Map[Long, Path] =
    snapshot.logSegment.deltas.map(_.getPath).filter(FileNames.isUnbackfilledDeltaFile).map(p => FileNames.deltaVersion(p) -> p).toMap

  /**
   * The commits [from, to] as a JSON array of {version, time, actions: […]}. Of statistics only numRecords is left, and cdc files are left
   * out. `time`: the file's modification time in milliseconds; null: the commit has an in-commit timestamp. A commit whose file is gone has
   * no field `actions`. `files`: whether actions on files are included.
   */
  def commits(snapshot: Snapshot, from: Long, to: Long, files: Boolean): String = {
    val conf = hadoopConf
    val fs = log.logPath.getFileSystem(conf)
    val elsewhere = staged(snapshot)
    val listed = snapshot.logSegment.deltas.map(f => f.getPath -> f).toMap
    val parts = Parallel.map(from to to) { v =>
      val file = elsewhere.getOrElse(v, FileNames.unsafeDeltaFile(log.logPath, v))
      commit(fs, conf, file, listed.get(file), v, files)
    }
    parts.mkString("[", ",", "]")
  }

  private def commit(fs: FileSystem, conf: Configuration, file: Path, known: Option[FileStatus], version: Long, files: Boolean): String = {
    val lines =
      try known.filter(_ => S3Logs.isS3(fs)).fold(log.store.read(file, conf))(S3Logs.lines(fs, _))
      catch { case _: FileNotFoundException => return s"""{"version":$version}""" }
    val left = if (files) Seq("{\"cdc\"") else Seq("{\"cdc\"", "{\"add\"", "{\"remove\"")
    val actions = lines.iterator.filterNot(l => l.isEmpty || left.exists(l.startsWith)).map(slim).toSeq
    val inCommit = actions.headOption.exists(_.contains("\"inCommitTimestamp\""))
    val time = if (inCommit) "null" else known.getOrElse(fs.getFileStatus(file)).getModificationTime.toString
    s"""{"version":$version,"time":$time,"actions":${actions.mkString("[", ",", "]")}}"""
  }

  private def slim(line: String): String =
    if (!line.startsWith("{\"add\"") && !line.startsWith("{\"remove\"")) line
    else {
      val root = mapper.readTree(line).asInstanceOf[ObjectNode]
      val file = root.elements().next().asInstanceOf[ObjectNode]
      val stats = file.remove("stats")
      if (stats != null && stats.isTextual) {
        val m = TableReader.numRecords.matcher(stats.asText)
        if (m.find()) file.put("numRecords", m.group(1).toLong)
      }
      file.remove("tags")
      root.toString
    }

  /** Statistics of a column in the files that a commit added or removed, as a JSON array of [rows, least value, greatest value]. Files
   * without statistics of the column are left out. The array is empty if the commit's file is gone. */
  def statistics(snapshot: Snapshot, version: Long, column: String): String = {
    val file = staged(snapshot).getOrElse(version, FileNames.unsafeDeltaFile(log.logPath, version))
    val lines = try log.store.read(file, hadoopConf) catch { case _: FileNotFoundException => Nil }
    lines.filter(l => l.startsWith("{\"add\"") || l.startsWith("{\"remove\"")).flatMap { line =>
      val text = mapper.readTree(line).elements().next().path("stats").asText
      val stats = if (text.isEmpty) mapper.createObjectNode() else mapper.readTree(text)
      val found = Seq(stats.path("numRecords"), stats.path("minValues").path(column), stats.path("maxValues").path(column))
      if (found.exists(n => n.isMissingNode || n.isNull)) None else Some(found.mkString("[", ",", "]"))
    }.mkString("[", ",", "]")
  }

  /** Those of the given files (add actions, one a line) that no longer exist, or whose deletion vectors no longer do. */
  def missing(files: String): String = {
    val conf = hadoopConf
    val fs = log.dataPath.getFileSystem(conf)
    def exists(path: Path) = (if (path.toUri.getScheme == null) fs else path.getFileSystem(conf)).exists(path)
    val named = TableReader.adds(files)
    val vectors = named.flatMap(f => Option(f.deletionVector)).filter(_.storageType != "i").map(_.absolutePath(log.dataPath))
    val data = named.map(f => new Path(new java.net.URI(f.path))).map(p => if (p.isAbsolute) p else new Path(log.dataPath, p))
    val all = (data ++ vectors).distinct
    all.zip(Parallel.map(all)(exists)).collect { case (p, false) => p.getName }.mkString("\n")
  }

  /**
   * Those of the removed file states (add actions, one a line) whose removal the snapshot no longer has. `sinceMillis`: none of them was
   * removed before. A checkpoint drops removals that are older than the retention of its time. Then no later retention protects the files.
   */
  def forgotten(s: Snapshot, removed: String, sinceMillis: Long): String = {
    def key(path: String, vector: String) = {
      val file = new Path(new java.net.URI(path)) // the path may begin with the name of its file system
      ((if (file.isAbsolute) file else new Path(log.dataPath, file)).toUri.getPath, vector)
    }
    val noted = s.tombstones.filter(col("deletionTimestamp") >= sinceMillis)
      .select(col("path"), concat_ws("@", concat(col("deletionVector.storageType"), col("deletionVector.pathOrInlineDv")),
        col("deletionVector.offset")))
      .collect().map(r => key(r.getString(0), r.getString(1))).toSet
    removed.linesIterator.filterNot { line =>
      val file = Action.fromJson(line).asInstanceOf[AddFile]
      noted(key(file.path, Option(file.deletionVector).map(_.uniqueId).getOrElse("")))
    }.mkString("\n")
  }

  /** Whether the file of a version's commit is in the log. */
  def hasCommit(snapshot: Snapshot, version: Long): Boolean = {
    val file = staged(snapshot).getOrElse(version, FileNames.unsafeDeltaFile(log.logPath, version))
    file.getFileSystem(hadoopConf).exists(file)
  }

  /** The first version whose commit is still in the log, and its time; [-1, 0] if there is none. */
  def earliest(): Array[Long] = {
    val whole = FileNames.unsafeDeltaFile(log.logPath, 0L)
    try Array(0L, whole.getFileSystem(hadoopConf).getFileStatus(whole).getModificationTime)
    catch { case _: FileNotFoundException => listedEarliest() }
  }

  private def listedEarliest(): Array[Long] = {
    val first = log.store.listFrom(FileNames.listingPrefix(log.logPath, 0L), hadoopConf)
      .filter(f => FileNames.isDeltaFile(f.getPath)).take(1).toSeq.headOption
    first.map(f => Array(FileNames.deltaVersion(f.getPath), f.getModificationTime)).getOrElse(Array(-1L, 0L))
  }

  /** The last version committed at or before a time in milliseconds; -1: the time lies before the log. */
  def versionAt(millis: Long): Long = {
    val history = log.history
    try {
      val commit = history.getActiveCommitAtTime(new java.sql.Timestamp(millis), None,
        canReturnLastCommit = true, mustBeRecreatable = false, canReturnEarliestCommit = false)
      commit.version
    } catch { case e: Throwable if e.getClass.getSimpleName.startsWith("TimestampEarlierThan") => -1L }
  }

  /** The files of a snapshot, one JSON add action a line. */
  def filesOf(s: Snapshot): String = TableReader.filesOf(s).map(f => slim(f.json)).mkString("\n")

  /** Whether a snapshot has no files. No job runs if its checksum says that it has some. */
  def isEmpty(s: Snapshot): Boolean = !s.checksumOpt.exists(_.numFiles > 0) && s.allFiles.isEmpty

  /** A DataFrame without rows. It has the table's columns between others: `before` and `after`, as DDL. */
  def nothing(descriptor: SnapshotDescriptor, before: String, after: String): DataFrame = {
    val columns = log.buildHadoopFsRelationWithFileIndex(descriptor, new ChangeFileIndex(session, log, Nil, descriptor, None), None,
      dropNullTypeColumnsFromSchema = false).dataSchema
    val all = StructType(Neutral.columns(before) ++ columns ++ Neutral.columns(after))
    Dataset.ofRows(classic, LocalRelation(DataTypeUtils.toAttributes(all)))
  }

  /** All rows of a snapshot, as Delta's time travel shows them. */
  def image(s: Snapshot): DataFrame = classic.withActive {
    Dataset.ofRows(classic, LogicalRelation(log.createRelation(snapshotToUseOpt = Some(ListedSnapshot.of(s)), isTimeTravelQuery = true)))
  }

  /** All rows of a snapshot, in the columns of `scan`. Here Delta finds the files. */
  def table(s: Snapshot): DataFrame = table(s, Seq("row_id" -> RowImages.ID, "row_commit_version" -> RowImages.VERSION))

  /** All rows of a snapshot. `hidden`: fields of `_metadata` that come before the table's columns, each with the name that it gets. */
  private[streamql] def table(s: Snapshot, hidden: Seq[(String, String)]): DataFrame = {
    val all = image(s)
    val meta = all.metadataColumn("_metadata")
    all.select(hidden.map { case (f, name) => meta.getField(f).as(name) } ++
      all.columns.map(c => col("`" + c.replace("`", "``") + "`")): _*)
  }

  /**
   * The rows of exactly these file states (add actions, one a line), read with the descriptor's schema. Before the table's columns come
   * Delta's row id (__streamql_row_id) and row commit version (__streamql_row_version). With `origins`, the file's base row id and default
   * row commit version (__streamql_base, __streamql_file_version) come too. `chosen`: the rows that are read; null: all rows. A file may
   * hold NULLs that the schema excludes. So each column is nullable, and those named in `loose` (one a line) are nullable throughout their
   * nested types.
   */
  def scan(descriptor: SnapshotDescriptor, files: String, chosen: FileRows, origins: Boolean, loose: String): DataFrame = {
    val adds = TableReader.adds(files)
    val index = new ChangeFileIndex(session, log, adds, descriptor, Option(chosen))
    images(descriptor, index, adds, RowImages.schema(origins), selects = chosen != null || adds.exists(_.deletionVector != null), loose)
  }

  /** The rows of the files of an index: the columns `own` of row images, then the table's. `selects`: whether files may have rows that are
   * to be left out. */
  private[streamql] def images(descriptor: SnapshotDescriptor, index: ChangeFileIndex, adds: Seq[AddFile], own: Seq[StructField],
      selects: Boolean, loose: String): DataFrame = {
    val isLoose = loose.linesIterator.toSet
    def nullable(columns: StructType) = StructType(columns.map { f =>
      f.copy(nullable = true, dataType = if (isLoose(f.name)) f.dataType.asNullable else f.dataType)
    })
    val relation = log.buildHadoopFsRelationWithFileIndex(descriptor, index, bucketSpec = None, dropNullTypeColumnsFromSchema = false)
    val schema = StructType(own ++ nullable(relation.dataSchema))
    Dataset.ofRows(classic,
      if (adds.isEmpty) LocalRelation(DataTypeUtils.toAttributes(schema))
      else LogicalRelation(relation.copy(dataSchema = schema, partitionSchema = nullable(relation.partitionSchema),
        fileFormat = new RowImageFormat(descriptor, if (selects) Some(broadcastConf) else None))(classic)))
  }
}

object TableReader {
  private[streamql] def adds(lines: String): Seq[AddFile] = lines.linesIterator.map(Action.fromJson(_).asInstanceOf[AddFile]).toSeq

  private val confs = new java.util.WeakHashMap[ClassicSession, (Map[String, String], Broadcast[SerializableConfiguration])]()
  private val mapper = new ObjectMapper()
  private val numRecords = java.util.regex.Pattern.compile("\"numRecords\"\\s*:\\s*(\\d+)")

  /** The files of a snapshot. No job runs if its checksum names them, as it does if they are few. */
  private[streamql] def filesOf(s: Snapshot): Seq[AddFile] = KnownFiles.of(s).getOrElse(s.allFiles.collect().toSeq)

  /** The milliseconds of a duration, as table properties write it. */
  def milliseconds(duration: String): Long = DeltaConfigs.getMilliSeconds(DeltaConfigs.parseCalendarInterval(duration))

  /** The newest versions of the tables at the paths (one a line): a JSON array of [version,
   * time, table id]; version -1: there is no table. */
  def latestVersions(session: SparkSession, paths: String): String = Parallel.map(paths.linesIterator.toSeq) { path =>
    val s = session.asInstanceOf[ClassicSession].withActive {
      try Some(Newest.of(DeltaLog.forTable(session, path))).filter(_.version >= 0) catch { case scala.util.control.NonFatal(_) => None }
    }
    val answer = mapper.createArrayNode()
    answer.add(s.map(_.version).getOrElse(-1L)).add(s.map(_.timestamp).getOrElse(0L)).add(s.map(_.metadata.id).getOrElse(""))
    answer.toString
  }.mkString("[", ",", "]")

  def open(session: SparkSession, path: String): TableReader = {
    Wire.promptHere()
    new TableReader(session, DeltaLog.forTable(session, path))
  }
}
