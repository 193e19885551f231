package org.apache.spark.sql.streamql.changes

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.fs.Path
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.types._
import org.apache.spark.util.SerializableConfiguration

/**
 * The times of a table's commits, in microseconds since 1970. `known`: those of the interval, which the log has told already. An older one
 * is looked up once, when a row shows it. It is the commit's in-commit timestamp or, without one, the time of the commit's file. A commit
 * whose file is gone has no time. `staged`: the files of commits that a commit coordinator has accepted, and that are not in the log yet.
 */
class CommitTimes(logPath: String, tableId: String, conf: Broadcast[SerializableConfiguration],
    known: java.util.HashMap[java.lang.Long, java.lang.Long], staged: Map[Long, String]) extends Serializable {
  /* A cache, because rows of a few versions alternate, such as the images of an update. Threads use it without a lock: they see an entry
   * whole, or not at all. */
  @transient private lazy val places = new Array[CommitTimes.Seen](CommitTimes.PLACES)
  @transient private lazy val lookedUp = new ConcurrentHashMap[Long, Option[java.lang.Long]]()

  def micros(version: Long): java.lang.Long = {
    val place = (version & (CommitTimes.PLACES - 1)).toInt
    val seen = places(place)
    if (seen != null && seen.version == version) seen.micros
    else {
      val found = Option(known.get(version)).orElse(lookedUp.computeIfAbsent(version, lookUp(_))).orNull
      places(place) = new CommitTimes.Seen(version, found)
      found
    }
  }

  private def lookUp(version: Long): Option[java.lang.Long] = {
    val file = staged.get(version).map(new Path(_)).getOrElse(new Path(logPath, f"$version%020d.json"))
    CommitTimes.lookUp((logPath, tableId, version), file, conf)
  }
}

object CommitTimes {
  private val PLACES = 16 // a power of two
  final class Seen(val version: Long, val micros: java.lang.Long)
  private val inCommit = java.util.regex.Pattern.compile("\"inCommitTimestamp\"\\s*:\\s*(\\d+)")
  private val cache = new ConcurrentHashMap[(String, String, Long), java.lang.Long]()

  /** A time that is found is kept for all statements, because it does not change. If nothing is found, only the statement that asks may
   * keep that. */
  private def lookUp(key: (String, String, Long), file: Path, conf: Broadcast[SerializableConfiguration]): Option[java.lang.Long] =
    Option(cache.get(key)).orElse {
      val fs = file.getFileSystem(conf.value.value)
      try {
        val in = new java.io.BufferedReader(new java.io.InputStreamReader(fs.open(file), "UTF-8"))
        val first = try in.readLine() finally in.close()
        val m = inCommit.matcher(if (first == null) "" else first)
        val millis = if (m.find()) m.group(1).toLong else fs.getFileStatus(file).getModificationTime
        val micros = java.lang.Long.valueOf(millis * 1000L)
        cache.put(key, micros)
        Some(micros)
      } catch { case _: java.io.FileNotFoundException => None }
    }

  /** `known`: "version milliseconds", one a line. */
  def of(reader: TableReader, snapshot: Snapshot, known: String): CommitTimes = {
    val map = new java.util.HashMap[java.lang.Long, java.lang.Long]()
    known.linesIterator.map(_.split(' ')).foreach { case Array(v, ms) => map.put(v.toLong, ms.toLong * 1000L) }
    val staged = reader.staged(snapshot).map { case (version, file) => version -> file.toString }
    new CommitTimes(reader.logPath, snapshot.metadata.id, reader.broadcastConf, map, staged)
  }
}

/** The time of the commit whose version `child` is. */
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
