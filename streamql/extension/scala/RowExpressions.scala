package org.apache.spark.sql.streamql

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.{Column, SparkSession}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.classic.ClassicConversions._
import org.apache.spark.sql.classic.ExpressionUtils
import org.apache.spark.sql.delta.actions.{Action, AddFile, DeletionVectorDescriptor}
import org.apache.spark.sql.delta.deletionvectors.StoredBitmap
import org.apache.spark.sql.delta.storage.dv.HadoopFileSystemDVStore
import org.apache.spark.sql.types._
import org.apache.spark.util.SerializableConfiguration
import org.roaringbitmap.RoaringBitmap

/** Positions of rows, by the base row id of their file: a file's base row id is unique in its table. One instance serves one task. */
class LostRows(files: Broadcast[java.util.HashMap[java.lang.Long, RoaringBitmap]], val count: Long) extends Serializable {
  @transient private var base = -1L
  @transient private var rows: RoaringBitmap = _

  def contains(fileBase: Long, index: Long): Boolean = {
    if (rows == null || fileBase != base) {
      rows = Option(files.value.get(fileBase)).getOrElse(LostRows.none)
      base = fileBase
    }
    rows.contains(index.toInt)
  }
}

object LostRows {
  private val none = new RoaringBitmap()
  private val mapper = new ObjectMapper()

  /**
   * The rows by which the vector of one state of a file is larger than another's. Each line of `states` is {"file": add action,
   * "other": add action}: lost are the positions in other's vector and not in file's.
   */
  def between(reader: TableReader, session: SparkSession, states: String): LostRows = {
    val conf = reader.log.newDeltaHadoopConf()
    val store = new HadoopFileSystemDVStore(conf)
    def vector(dv: DeletionVectorDescriptor): RoaringBitmap = {
      val bits = new RoaringBitmap()
      if (dv != null) {
        StoredBitmap.create(dv, reader.log.dataPath).load(store).toArray.foreach { p =>
          require(p <= Int.MaxValue, s"position $p in a file: more rows than a Parquet file can have")
          bits.add(p.toInt)
        }
      }
      bits
    }
    val lines = states.split('\n').toSeq.filter(_.nonEmpty)
    val found = Parallel.map(lines) { line =>
      val node = mapper.readTree(line)
      val Seq(file, other) = Seq("file", "other").map(k => Action.fromJson(node.get(k).toString).asInstanceOf[AddFile])
      val lost = vector(other.deletionVector)
      lost.andNot(vector(file.deletionVector))
      lost.runOptimize()
      (java.lang.Long.valueOf(file.baseRowId.get), lost)
    }
    val all = new java.util.HashMap[java.lang.Long, RoaringBitmap](found.toMap.asJava)
    new LostRows(session.sparkContext.broadcast(all), found.map(_._2.getLongCardinality).sum)
  }
}

/** Whether the row at (base row id of its file, index in the file) is one of the lost ones. */
case class IsLost(left: Expression, right: Expression, rows: LostRows) extends BinaryExpression with Predicate {
  override def nullable: Boolean = true
  override def nullIntolerant: Boolean = true
  override protected def nullSafeEval(base: Any, index: Any): Any = rows.contains(base.asInstanceOf[Long], index.asInstanceOf[Long])
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val r = ctx.addReferenceObj("lostRows", rows)
    defineCodeGen(ctx, ev, (base, index) => s"$r.contains($base, $index)")
  }
  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): IsLost = copy(left = newLeft, right = newRight)
}

/**
 * When the commits of a table were made, in microseconds. Those of the interval are known from the log already; an older one is
 * looked up where a row shows it, once: the in-commit timestamp, else the file's time; a commit that is gone has none.
 */
class CommitTimes(logPath: String, tableId: String, conf: SerializableConfiguration, known: java.util.HashMap[java.lang.Long, java.lang.Long])
  extends Serializable {
  @transient @volatile private var last: CommitTimes.Seen = _

  def micros(version: Long): java.lang.Long = {
    val seen = last
    if (seen != null && seen.version == version) seen.micros
    else {
      val found = Option(known.get(version)).getOrElse(CommitTimes.lookUp(logPath, tableId, conf, version))
      last = new CommitTimes.Seen(version, found)
      found
    }
  }
}

object CommitTimes {
  final class Seen(val version: Long, val micros: java.lang.Long)
  private val inCommit = java.util.regex.Pattern.compile("\"inCommitTimestamp\"\\s*:\\s*(\\d+)")
  private val gone = java.lang.Long.valueOf(Long.MinValue)
  private val cache = new ConcurrentHashMap[(String, String, Long), java.lang.Long]()

  private def lookUp(logPath: String, tableId: String, conf: SerializableConfiguration, version: Long): java.lang.Long = {
    val found = cache.computeIfAbsent((logPath, tableId, version), _ => {
      val file = new Path(logPath, f"$version%020d.json")
      val fs = file.getFileSystem(conf.value)
      try {
        val in = new java.io.BufferedReader(new java.io.InputStreamReader(fs.open(file), "UTF-8"))
        val first = try in.readLine() finally in.close()
        val m = inCommit.matcher(if (first == null) "" else first)
        val millis = if (m.find()) m.group(1).toLong else fs.getFileStatus(file).getModificationTime
        java.lang.Long.valueOf(millis * 1000L)
      } catch { case _: java.io.FileNotFoundException => gone }
    })
    if (found eq gone) null else found
  }

  /** The time of the commit whose version a column holds; `known`: versions and their milliseconds, alternating. */
  def column(reader: TableReader, tableId: String, known: Array[Long], version: Column): Column = {
    val map = new java.util.HashMap[java.lang.Long, java.lang.Long]()
    known.grouped(2).foreach { case Array(v, ms) => map.put(v, ms * 1000L) }
    val times = new CommitTimes(reader.logPath, tableId, new SerializableConfiguration(reader.log.newDeltaHadoopConf()), map)
    ExpressionUtils.column(CommitTime(ExpressionUtils.expression(version), times))
  }
}

case class CommitTime(child: Expression, times: CommitTimes) extends UnaryExpression {
  override def dataType: DataType = TimestampType
  override def nullable: Boolean = true
  override def nullIntolerant: Boolean = true
  override protected def nullSafeEval(version: Any): Any = times.micros(version.asInstanceOf[Long])
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val t = ctx.addReferenceObj("commitTimes", times)
    val boxed = ctx.freshName("micros")
    nullSafeCodeGen(ctx, ev, v =>
      s"""Long $boxed = $t.micros($v);
         |if ($boxed == null) { ${ev.isNull} = true; } else { ${ev.value} = $boxed; }""".stripMargin)
  }
  override protected def withNewChildInternal(newChild: Expression): CommitTime = copy(child = newChild)
}
