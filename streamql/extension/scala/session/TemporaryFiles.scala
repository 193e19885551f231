package org.apache.spark.sql.streamql.session

import java.io.File

import org.apache.hadoop.hive.conf.HiveConf.ConfVars
import org.apache.hadoop.hive.ql.session.SessionState
import org.apache.spark.SparkContext
import org.apache.spark.util.{ShutdownHookManager, Utils}

/** Directories of this process that nothing else deletes. */
object TemporaryFiles {
  private val key = "hive.downloaded.resources.dir"
  /** It is deleted when the JVM ends, in the way that Spark's own are. */
  private lazy val root = Utils.createTempDir(namePrefix = "streamql")

  /** Hive makes a directory for each of its sessions, and leaves that of the metastore's client behind. */
  def use(): Unit = SparkContext.getActive.foreach { context =>
    val conf = context.hadoopConfiguration
    if (conf.get(key) == null) {
      conf.set(key, new File(root, "${hive.session.id}_resources").getPath)
      ofEarlierSession()
    }
  }

  /** bin/spark-sql begins a session of Hive before there is a context. */
  private def ofEarlierSession(): Unit =
    try Option(SessionState.get).foreach(s => ShutdownHookManager.registerShutdownDeleteDir(new File(s.getConf.getVar(ConfVars.DOWNLOADED_RESOURCES_DIR))))
    catch { case _: LinkageError => } // a Spark without Hive
}
