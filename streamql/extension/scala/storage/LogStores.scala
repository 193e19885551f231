package org.apache.spark.sql.streamql.storage

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.fs.Path
import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.streamql.bridge.Shared

import streamql.ConditionalLogStore

/** Delta's log stores: which ones streamql chooses, and what Python asks about them, as JSON. */
object LogStores {
  private val mapper = new ObjectMapper()

  /** Makes Delta use streamql's stores in the application, unless the application names stores. Delta refuses a store for all schemes
   * beside one for a scheme. On a cluster, executors would need the store of local files before they have the jar. */
  def use(): Unit = Option(SparkEnv.get).map(_.conf).foreach { conf =>
    def isSet(key: String) = conf.contains(s"spark.$key") || conf.contains(key)
    val stores = Seq("s3" -> "logStore", "s3a" -> "logStore") ++ Seq("file" -> "localLogStore").filter(_ => SparkContext.getActive.exists(_.isLocal))
    if (!isSet("delta.logStore.class")) stores.foreach { case (scheme, constant) =>
      val key = s"delta.logStore.$scheme.impl"
      if (!isSet(key)) conf.set(s"spark.$key", Shared.constant("storage", constant))
    }
  }

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
