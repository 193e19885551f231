package org.apache.spark.sql.streamql.consume

import java.util.UUID

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.SimpleGroupFactory
import org.apache.parquet.hadoop.ParquetReader
import org.apache.parquet.hadoop.example.{ExampleParquetWriter, GroupReadSupport}
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.parquet.schema.{LogicalTypeAnnotation, MessageType, PrimitiveType, Type, Types}
import org.apache.spark.sql.{DataFrame, SaveMode, SparkSession}
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.delta.{DeltaConcurrentModificationException, DeltaLog, DeltaOperations, OptimisticTransaction, Snapshot, TransactionExecutionObserver}
import org.apache.spark.sql.delta.actions.{Action, AddFile, DomainMetadata, SetTransaction}
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.apache.spark.sql.streamql.bridge.{ClaimedWrite, Errors}
import org.apache.spark.sql.streamql.changes.{KnownSnapshot, Newest, Positions, TableReader}
import org.apache.spark.sql.streamql.session.{Clones, Neutral}
import org.apache.spark.sql.types.{LongType, StringType, StructType, TimestampType}

import streamql.NewParquet

/** Reads and writes Delta's application transactions. In targets' logs they resolve claims, and in the catalog's log they order events. */
object Txns {
  /** The number that a snapshot has for `appId`; null: it has none. Reconstructs the whole state of the log. */
  def number(snapshot: Snapshot, appId: String): java.lang.Long =
    snapshot.transactions.get(appId).map(java.lang.Long.valueOf).orNull

  private val COMMITS_MAX = 200
  private val mapper = new ObjectMapper()

  /** The commits after version `seen`. A commit whose file is gone has no actions. */
  private def after(session: SparkSession, log: DeltaLog, snapshot: Snapshot, seen: Long, files: Boolean): Seq[JsonNode] =
    mapper.readTree(new TableReader(session, log).commits(snapshot, seen + 1, snapshot.version, files)).elements().asScala.toSeq

  /** The last number that the commits after version `seen` have for `appId`; -1: none of them has one. None: the commits are too many, or
   * some are gone. */
  def since(session: SparkSession, log: DeltaLog, snapshot: Snapshot, appId: String, seen: Long): Option[Long] =
    if (snapshot.version - seen > COMMITS_MAX) None
    else {
      val commits = after(session, log, snapshot, seen, files = false)
      if (commits.exists(!_.has("actions"))) None
      else {
        val txns = commits.flatMap(_.get("actions").elements().asScala).flatMap(a => Option(a.get("txn")))
        Some(txns.filter(_.get("appId").asText == appId).map(_.get("version").asLong).lastOption.getOrElse(-1L))
      }
    }

  /** Raises CONSUMPTION_FAILED if a reservation was written since version `seen`: to replace it would remove rows. It is called when the
   * transaction begins that replaces the reservation. That transaction does not replace what is written later. */
  def refuseUnlessEmpty(session: SparkSession, log: DeltaLog, snapshot: Snapshot, seen: Long): Unit = {
    val isTouched = after(session, log, snapshot, seen, files = true).exists(c => !c.has("actions") || c.get("actions").elements().asScala.exists(a => a.has("add") || a.has("metaData")))
    if (isTouched) throw Errors("CONSUMPTION_FAILED", "RESERVATION_WRITTEN")
  }

  /** Commits (appId, number) alone, by compare-and-set, if the log's number for `appId` is lower than `atLeast`. Returns the number that
   * the log has afterwards. null: there was a conflict, so the caller reads again. */
  def fence(session: SparkSession, path: String, appId: String, number: Long, atLeast: Long): java.lang.Long = {
    val txn = DeltaLog.forTable(session, path).startTransaction(None)
    val current = txn.txnVersion(appId)
    if (current >= atLeast) current
    else try {
      txn.commit(Seq(SetTransaction(appId, number, Some(System.currentTimeMillis()))), DeltaOperations.ManualUpdate)
      number
    } catch { case _: DeltaConcurrentModificationException => null }
  }
}

/** Properties that streamql keeps in a user's table. */
object Properties {
  /** Sets properties (a JSON object) on top of `base`. Returns the version of the commit. null: another commit since has changed the
   * metadata, or conflicts otherwise, so the caller reads again. */
  def set(base: Snapshot, log: DeltaLog, properties: String): java.lang.Long = {
    val named = new ObjectMapper().readTree(properties).properties().asScala.map(e => e.getKey -> e.getValue.asText).toMap
    val txn = log.startTransaction(None, Some(base))
    try {
      txn.updateMetadata(base.metadata.copy(configuration = base.metadata.configuration ++ named))
      txn.commit(Nil, DeltaOperations.SetTableProperties(named))
    } catch { case _: DeltaConcurrentModificationException => null }
  }
}

/**
 * Observes the transactions of a claimed statement. The first one on the target fails if the target is no longer the table that was
 * claimed. So this check needs no read of the log of its own. Later transactions maintain what the statement has written.
 *
 * Before a write with a number, Delta asks which number the table has for the app id, to skip a write that was done before. To find out, it
 * reconstructs the table's whole state by two jobs, however small the write and large the table. But a number of a claimed statement can
 * only have come after the claim, which was made at version `seen`. So the commits since then tell the number, and mostly there are none.
 */
class ClaimedTransactions(session: SparkSession, claimed: ClaimedWrite, name: => String, checkRows: () => Unit)
  extends DelegatingObserver(TransactionExecutionObserver.getObserver) {
  private var isFirst = true

  override def startingTransaction(f: => OptimisticTransaction): OptimisticTransaction = {
    val txn = before.startingTransaction(f)
    if (txn.deltaLog.dataPath.toString != claimed.path) txn
    else {
      if (isFirst) check(txn)
      isFirst = false
      if (claimed.seen >= 0 && txn.snapshot.version >= claimed.seen) new ClaimedTransaction(session, txn, claimed.appId, claimed.seen) else txn
    }
  }

  /** Checks the rows of the streams when all of them have been read, and nothing is in the log yet. */
  override def beginDoCommit(): Unit = {
    checkRows()
    super.beginDoCommit()
  }

  private def check(txn: OptimisticTransaction): Unit = {
    if (txn.snapshot.metadata.id != claimed.tableId) throw Errors("CONSUMPTION_FAILED", "TARGET_REPLACED", "target" -> name)
    if (claimed.isReserved) Txns.refuseUnlessEmpty(session, txn.deltaLog, txn.snapshot, claimed.seen)
  }
}

/**
 * An observer of a thread's transactions that delegates all to the observer `before` it. A subclass adds what it does when a transaction
 * starts.
 */
abstract class DelegatingObserver(val before: TransactionExecutionObserver) extends TransactionExecutionObserver {
  override def createChild(): TransactionExecutionObserver = before.createChild()
  override def preparingCommit[T](f: => T): T = before.preparingCommit(f)
  override def beginDoCommit(): Unit = before.beginDoCommit()
  override def beginBackfill(): Unit = before.beginBackfill()
  override def beginPostCommit(): Unit = before.beginPostCommit()
  override def transactionCommitted(): Unit = before.transactionCommitted()
  override def transactionAborted(): Unit = before.transactionAborted()
}

/** A transaction that finds its number in the commits since the claim, and not in the table's whole state. */
class ClaimedTransaction(session: SparkSession, txn: OptimisticTransaction, appId: String, seen: Long)
  extends OptimisticTransaction(txn.deltaLog, txn.catalogTable, KnownSnapshot.of(txn.snapshot)) {
  override def txnVersion(id: String): Long = {
    val known = if (id == appId) Txns.since(session, deltaLog, snapshot, appId, seen) else None
    known.map { n => readTxn += id; n }.getOrElse(super.txnVersion(id)) // noted as read: a commit of the number meanwhile is a conflict
  }
}

/** The catalog's table: streams as domain metadata, events as rows, both in one commit. */
class EventLog(session: SparkSession, path: String) {
  private val mapper = new ObjectMapper()
  private val log = DeltaLog.forTable(session, path)

  /** Delta takes the active session of the thread where it reads a checkpoint, and threads that Python starts have none. */
  private def here[T](work: => T): T = session.asInstanceOf[ClassicSession].withActive(work)

  def update(): Snapshot = here {
    val newest = Newest.of(log)
    newest.metadata // Python asks for it
    newest
  }
  /** The snapshot that this process has: its own last commit, or what it read since. */
  def known(): Snapshot = log.unsafeVolatileSnapshot

  /** The whole state of a snapshot: {version, tableId, schema, configuration, domains: {domain: configuration}, txns: {appId: version}}. */
  def state(s: Snapshot): String = here {
    val node = mapper.createObjectNode()
    node.put("version", s.version)
    if (s.version >= 0) {
      node.put("tableId", s.metadata.id)
      node.set[JsonNode]("schema", mapper.readTree(s.metadata.schemaString))
      val configuration = node.putObject("configuration")
      s.metadata.configuration.foreach { case (k, v) => configuration.put(k, v) }
      val domains = node.putObject("domains")
      // The checksum has both, unless they are too many. Otherwise Delta reconstructs the state of the log, in two jobs.
      s.checksumOpt.flatMap(_.domainMetadata).getOrElse(s.domainMetadata).filterNot(_.removed).foreach(d => domains.put(d.domain, d.configuration))
      val txns = node.putObject("txns")
      s.checksumOpt.flatMap(_.setTransactions).getOrElse(s.setTransactions).foreach(t => txns.put(t.appId, t.version))
    }
    node.toString
  }

  /**
   * Commits an event on top of the snapshot `base`, and returns the version. null: a commit since then has touched one of the same domains.
   * `event`: {domains: {domain: configuration, or null to remove it}, txns: {appId: version}, rows: [{column: value}]}; times are in
   * milliseconds.
   */
  def commit(base: Snapshot, event: String): java.lang.Long = EventLog.sessions.of(session).withActive {
    val node = mapper.readTree(event)
    val domains = node.get("domains").properties().asScala.toSeq.map { e =>
      if (e.getValue.isNull) DomainMetadata(e.getKey, "", removed = true) else DomainMetadata(e.getKey, e.getValue.asText, removed = false)
    }
    val now = Some(System.currentTimeMillis())
    val txns = node.get("txns").properties().asScala.toSeq.map(e => SetTransaction(e.getKey, e.getValue.asLong, now))
    val rows = node.get("rows").elements().asScala.toSeq
    // Columns of other types are not streamql's. They stay NULL, because the file does not have them.
    val ours = StructType(base.metadata.schema.fields.filter(f => Seq(LongType, StringType, TimestampType).contains(f.dataType)))
    val files = if (rows.isEmpty) Nil else Seq(write(ours, rows))
    val txn = log.startTransaction(None, Some(base))
    // The operation is not ManualUpdate. After that one, Delta reconstructs the table's whole state for its checksum, by four jobs.
    try txn.commit(txns ++ domains ++ files, DeltaOperations.Write(SaveMode.Append))
    catch {
      case e: DeltaConcurrentModificationException => null
      case e: Exception if e.getClass.getSimpleName.contains("Concurrent") || String.valueOf(e.getMessage).contains("DOMAIN_METADATA") => null
    }
  }

  def frame(s: Snapshot): DataFrame = new TableReader(session, log).image(s)

  /** The rows of a snapshot by file: a JSON array of {path, rows: [{column: value}]}. The driver reads them, without a Spark job if the
   * snapshot's checksum names the files. The table must be small, and its columns strings and integers. */
  def rows(s: Snapshot): String = here {
    val conf = log.newDeltaHadoopConf()
    val answer = mapper.createArrayNode()
    TableReader.filesOf(s).foreach { file =>
      val node = answer.addObject().put("path", file.path)
      val deleted = Option(file.deletionVector).map(Positions.of(_, log.dataPath, conf))
      val path = DeltaFileOperations.absolutePath(log.dataPath.toString, file.path)
      val reader = ParquetReader.builder(new GroupReadSupport(), path).withConf(conf).build()
      val rows = node.putArray("rows")
      try Iterator.continually(reader.read()).takeWhile(_ != null).zipWithIndex.foreach { case (group, i) =>
        if (!deleted.exists(_.contains(i))) rows.add(EventLog.row(group, mapper))
      } finally reader.close()
    }
    answer.toString
  }

  /** Removes files (a JSON array of paths) and adds rows, in one commit on top of `base`: a compare-and-set on the whole table. null:
   * another writer that uses this method has committed since. */
  def replace(base: Snapshot, paths: String, rows: String): java.lang.Long = here {
    val txn = log.startTransaction(None, Some(base))
    txn.readWholeTable()
    val named = mapper.readTree(paths).elements().asScala.map(_.asText).toSet
    val removed = if (named.isEmpty) Nil else TableReader.filesOf(base).filter(f => named(f.path)).map(_.remove)
    try txn.commit(removed :+ write(base.metadata.schema, mapper.readTree(rows).elements().asScala.toSeq), DeltaOperations.Write(SaveMode.Append))
    catch { case _: DeltaConcurrentModificationException => null }
  }

  /** Gives the table of events other columns (as DDL), on top of `base`. False: another commit came in between. */
  def replaceColumns(base: Snapshot, ddl: String): Boolean = here {
    val txn = log.startTransaction(None, Some(base))
    try {
      txn.updateMetadata(base.metadata.copy(schemaString = Neutral.columns(ddl).json))
      txn.commit(Nil, DeltaOperations.ManualUpdate)
      true
    } catch { case _: DeltaConcurrentModificationException => false }
  }

  private def write(schema: StructType, rows: Seq[JsonNode]): AddFile = {
    val name = s"event-${UUID.randomUUID()}.zstd.parquet"
    val file = new Path(log.dataPath, name)
    val conf = log.newDeltaHadoopConf()
    val parquet = EventLog.parquetSchema(schema)
    val out = new NewParquet(file.getFileSystem(conf), file)
    val writer = ExampleParquetWriter.builder(out).withType(parquet).withConf(conf).withCompressionCodec(CompressionCodecName.ZSTD).build()
    val groups = new SimpleGroupFactory(parquet)
    try rows.foreach { row =>
      val group = groups.newGroup()
      schema.fields.foreach { f =>
        val value = row.get(f.name)
        if (value != null && !value.isNull) f.dataType match {
          case LongType => group.append(f.name, value.asLong)
          case TimestampType => group.append(f.name, value.asLong * 1000L)
          case _ => group.append(f.name, value.asText)
        }
      }
      writer.write(group)
    } finally writer.close()
    AddFile(name, Map.empty, out.length, System.currentTimeMillis(), dataChange = true, stats = s"""{"numRecords":${rows.size}}""")
  }
}

object EventLog {
  /** The most domains, transactions and files that a commit writes into its checksum. With these, a process finds streams and the ledger
   * without a job. Delta's own limits are 10 domains, which are five streams, 100 transactions and 50 files. Each commit writes all of them
   * again, about 1 kB for a stream. Upkeep compacts files every 200 commits. */
  private val LIMITS = Map(DeltaSQLConf.DELTA_MAX_DOMAIN_METADATAS_IN_CRC -> 200, DeltaSQLConf.DELTA_MAX_SET_TRANSACTIONS_IN_CRC -> 200,
    DeltaSQLConf.DELTA_ALL_FILES_IN_CRC_THRESHOLD_FILES -> 250)

  private val sessions = new Clones(user => {
    val own = user.asInstanceOf[ClassicSession].cloneSession()
    LIMITS.foreach { case (limit, most) => own.conf.set(limit.key, most.toString) }
    own
  })

  private def row(group: Group, mapper: ObjectMapper): JsonNode = {
    val node = mapper.createObjectNode()
    group.getType.getFields.asScala.zipWithIndex.filter { case (_, i) => group.getFieldRepetitionCount(i) > 0 }.foreach { case (field, i) =>
      field.asPrimitiveType.getPrimitiveTypeName match {
        case PrimitiveType.PrimitiveTypeName.INT64 => node.put(field.getName, group.getLong(i, 0))
        case _ => node.put(field.getName, group.getString(i, 0))
      }
    }
    node
  }

  private def parquetSchema(schema: StructType): MessageType = {
    val fields: Seq[Type] = schema.fields.toSeq.map { f =>
      f.dataType match {
        case LongType => Types.optional(PrimitiveType.PrimitiveTypeName.INT64).named(f.name)
        case TimestampType => Types.optional(PrimitiveType.PrimitiveTypeName.INT64)
          .as(LogicalTypeAnnotation.timestampType(true, LogicalTypeAnnotation.TimeUnit.MICROS)).named(f.name)
        case _ => Types.optional(PrimitiveType.PrimitiveTypeName.BINARY).as(LogicalTypeAnnotation.stringType()).named(f.name)
      }
    }
    new MessageType("event", fields: _*)
  }
}
