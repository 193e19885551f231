package org.apache.spark.sql.streamql.session

import java.io.File

import org.apache.hadoop.hive.conf.HiveConf.ConfVars
import org.apache.hadoop.hive.ql.session.SessionState
import org.apache.spark.SparkContext
import org.apache.spark.util.{ShutdownHookManager, Utils}

/** Puts the directories of Hive's sessions where they are deleted when the JVM ends. Hive itself leaves some of them behind. */
object TemporaryFiles {
  private val key = "hive.downloaded.resources.dir"
  /** Spark deletes it when the JVM ends, like its own temporary directories. */
  private lazy val root = Utils.createTempDir(namePrefix = "streamql")

  /** Makes Hive put the directories of its sessions into `root`. Hive does not delete that of the metastore's client. */
  def use(): Unit = SparkContext.getActive.foreach { context =>
    val conf = context.hadoopConfiguration
    if (conf.get(key) == null) {
      conf.set(key, new File(root, "${hive.session.id}_resources").getPath)
      ofEarlierSession()
    }
  }

  /** Registers the directory of a session that Hive has begun already: bin/spark-sql begins one before there is a context. */
  private def ofEarlierSession(): Unit =
    try Option(SessionState.get).foreach(s => ShutdownHookManager.registerShutdownDeleteDir(new File(s.getConf.getVar(ConfVars.DOWNLOADED_RESOURCES_DIR))))
    catch { case _: LinkageError => } // a Spark without Hive
}
