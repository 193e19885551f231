package org.apache.spark.sql.streamql.storage

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.util.FileNames

import streamql.ConditionalLogStore

/** What Python asks about Delta's log stores, as JSON. */
object LogStores {
  private val mapper = new ObjectMapper()

  /** The settings by which Delta finds a store, and whether the application is one process. */
  def settings(session: SparkSession): String = {
    val context = session.sparkContext
    val named = context.getConf.getAll.filter(_._1.contains("delta.logStore.")).toMap
    mapper.writeValueAsString(Map("isLocal" -> context.isLocal, "settings" -> named.asJava).asJava)
  }

  /** Those of the `last` commits of the table at `path` that a store other than `ConditionalLogStore` has written: [{version, time,
   * engine}]. */
  def unmarked(session: SparkSession, path: String, last: Int): String = {
    val log = DeltaLog.forTable(session, new Path(path))
    val conf = log.newDeltaHadoopConf()
    val files = log.logPath.getFileSystem(conf)
    val newest = log.update().version
    val commits = math.max(0L, newest - last + 1) to newest
    val found = commits.map(v => (v, FileNames.unsafeDeltaFile(log.logPath, v))).filter { case (_, file) =>
      files.exists(file) && !ConditionalLogStore.isMarked(files, file)
    }
    mapper.writeValueAsString(found.map { case (version, file) =>
      val info = log.store.read(file, conf).map(mapper.readTree).flatMap(line => Option(line.get("commitInfo"))).headOption
      val engine = info.flatMap(i => Option(i.get("engineInfo"))).fold("")(_.asText)
      val time = info.flatMap(i => Option(i.get("timestamp"))).fold(0L)(_.asLong)
      Map("version" -> version, "time" -> time, "engine" -> engine).asJava
    }.asJava)
  }
}
