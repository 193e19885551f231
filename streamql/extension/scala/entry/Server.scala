// Spark's own packages: the servers' ports are visible there only.
package org.apache.spark.sql.hive.thriftserver.streamql {

  import java.util.concurrent.atomic.AtomicInteger

  import scala.jdk.CollectionConverters._

  import org.apache.hadoop.hive.ql.metadata.Hive
  import org.apache.hive.service.cli.thrift.ThriftCLIService
  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.connect.streamql.ConnectServer
  import org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
  import org.apache.spark.sql.streamql.bridge.Shared

  /** `streamql server`: Spark's Thrift server and, if it is asked for, Spark Connect, over one context. It runs until a signal ends the
   * JVM. */
  object Server {
    def main(arguments: Array[String]): Unit = {
      val spark = SparkSession.builder().config("spark.sql.datetime.java8API.enabled", true).getOrCreate()
      val conf = spark.sparkContext.getConf
      val host = conf.get("spark.hadoop.hive.server2.thrift.bind.host")
      skipHiveFunctions()
      val server = HiveThriftServer2.startWithContext(spark.sqlContext)
      val port = server.getServices.asScala.collectFirst { case s: ThriftCLIService => s.getPortNumber }
      val connect = if (conf.getBoolean(Shared.constant("settings", "connect"), false)) Some(ConnectServer.start(spark.sparkContext)) else None
      val urls = port.map(p => s"jdbc:hive2://$host:$p").toSeq ++ connect.map(p => s"sc://$host:$p")
      println(s"streamql server: ready: ${urls.mkString(" ")}")
      System.out.flush()
      Thread.currentThread.join() // for ever: if main returned, spark-submit would stop the context
    }

    /**
     * Marks Hive's own functions as registered. They need a jar that Spark does not ship (hive-llap), so Spark avoids to register them. If
     * two connections are closed at the same moment, it registers them all the same, and closing a connection fails with
     * NoClassDefFoundError.
     */
    private def skipHiveFunctions(): Unit = {
      val state = classOf[Hive].getDeclaredField("didRegisterAllFuncs")
      state.setAccessible(true)
      state.get(null).asInstanceOf[AtomicInteger].set(2) // Hive.REG_FUNCS_DONE of Hive 2.3
    }
  }
}

package org.apache.spark.sql.connect.streamql {

  import org.apache.spark.SparkContext
  import org.apache.spark.sql.connect.service.SparkConnectService

  object ConnectServer {
    /** Starts Spark Connect, and returns its port. */
    def start(context: SparkContext): Int = {
      SparkConnectService.start(context)
      SparkConnectService.localPort
    }
  }
}
