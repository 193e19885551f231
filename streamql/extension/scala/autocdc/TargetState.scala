package org.apache.spark.sql.streamql.autocdc

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.concurrent.ThreadLocalRandom

import scala.util.Using

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.delta.{OptimisticTransaction, Snapshot}
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.types.StructType

/** A state: the directories that have its events, by their names. */
case class StateParts(parts: Seq[String])

/**
 * What a target of AUTO CDC INTO remembers beside its rows: deletes of keys that have no row, and events that a row of a history does not
 * show. They are Parquet files in the directory `_streamql_cdc` of the target, which readers and VACUUM do not look into.
 *
 * A state never changes. It is a file `NUMBER.json` that names directories of events. A statement writes its own events and a new state,
 * and its commit names the state by Delta's application transaction. So the rows and the state are committed by one commit. No commit names
 * the state of a statement that fails. A later statement removes it.
 *
 * `retention`: how long an event is kept, in milliseconds.
 */
class TargetState(session: ClassicSession, snapshot: Snapshot, retention: Long) {
  import TargetState._

  private val appId = s"streamql-cdc-${snapshot.metadata.id}"
  private val home = new Path(snapshot.deltaLog.dataPath, HOME)
  private val files: FileSystem = home.getFileSystem(snapshot.deltaLog.newDeltaHadoopConf())
  private val number: Option[Long] = snapshot.transactions.get(appId)
  private val parts: Seq[String] = number.map(n => Using.resource(files.open(manifest(n)))(in => JsonUtils.fromJson[StateParts](new String(in.readAllBytes(), UTF_8)).parts)).getOrElse(Nil)

  private def manifest(number: Long) = new Path(home, s"$number.json")
  private def since: Long = System.currentTimeMillis() - retention

  /** The events, in columns like these. */
  def read(columns: Seq[AttributeReference]): LogicalPlan = if (parts.isEmpty) LocalRelation(columns.map(_.newInstance()), Seq.empty[InternalRow]) else {
    val schema = DataTypeUtils.fromAttributes(columns).add(RECORDED, "bigint")
    stored(schema).filter(col(RECORDED) >= since).select(columns.map(a => col(quoted(a.name))): _*).queryExecution.analyzed
  }

  private def stored(schema: StructType) = session.withActive(session.read.schema(schema).parquet(parts.map(new Path(home, _).toString): _*))

  /** Writes more events, and returns the number of the state that has them: of this one, if there are none. */
  def next(events: LogicalPlan): Long = session.withActive {
    val more = Dataset.ofRows(session, events).withColumn(RECORDED, lit(System.currentTimeMillis()))
    if (more.isEmpty) number.getOrElse(NONE)
    else {
      val isFull = parts.size >= PARTS_MAX
      val part = UUID.randomUUID().toString
      val all = if (isFull) more.unionByName(stored(more.schema).filter(col(RECORDED) >= since)) else more
      all.coalesce(TASKS_MAX).write.parquet(new Path(home, part).toString)
      val next = ThreadLocalRandom.current().nextLong(1, Long.MaxValue)
      val text = JsonUtils.toJson(StateParts(if (isFull) Seq(part) else parts :+ part))
      Using.resource(files.create(manifest(next), false))(_.write(text.getBytes(UTF_8)))
      if (isFull) removeUnnamed(Set(part, manifest(next).getName) ++ parts ++ number.map(manifest(_).getName))
      next
    }
  }

  /** Removes old files and directories of other names. Those of a statement that still runs are young. */
  private def removeUnnamed(named: Set[String]): Unit = {
    val limit = System.currentTimeMillis() - retention.max(YOUNG)
    // A directory of an object store has no time of its own.
    def newest(file: FileStatus): Long =
      if (file.isDirectory) files.listStatus(file.getPath).map(_.getModificationTime).maxOption.getOrElse(Long.MaxValue) else file.getModificationTime
    files.listStatus(home).filter(f => !named(f.getPath.getName) && newest(f) < limit).foreach(f => files.delete(f.getPath, true))
  }

  /** Lets the commit of a transaction name the state. Raises TargetChanged if another commit has named one meanwhile. */
  def note(txn: OptimisticTransaction, next: Long): Unit = {
    if (txn.txnVersion(appId) != number.getOrElse(NONE)) throw new TargetChanged
    if (!number.contains(next) && next != NONE) txn.updateSetTransaction(appId, next, Some(System.currentTimeMillis()))
  }
}

object TargetState {
  private val HOME = "_streamql_cdc"
  private val RECORDED = "__cdc_recorded"
  /** Delta's word for an application without a transaction. */
  private val NONE = -1L
  /** From so many directories on, a statement writes their events into one. */
  private val PARTS_MAX = 16
  private val TASKS_MAX = 8
  /** Files that are younger than this, in milliseconds, may belong to a statement that runs. */
  private val YOUNG = 24L * 60 * 60 * 1000

  private def quoted(name: String) = "`" + name.replace("`", "``") + "`"
}
