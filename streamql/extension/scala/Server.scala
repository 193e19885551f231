// Spark's own packages: the servers' ports are visible there only.
package org.apache.spark.sql.hive.thriftserver.streamql {

  import scala.jdk.CollectionConverters._

  import org.apache.hive.service.cli.thrift.ThriftCLIService
  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.connect.streamql.ConnectServer
  import org.apache.spark.sql.hive.thriftserver.HiveThriftServer2

  /** `streamql server`: Spark's Thrift server, and Spark Connect, over one context. It runs until the JVM is told to end. */
  object Server {
    def main(arguments: Array[String]): Unit = {
      val spark = SparkSession.builder().config("spark.sql.datetime.java8API.enabled", true).getOrCreate()
      val conf = spark.sparkContext.getConf
      val host = conf.get("spark.hadoop.hive.server2.thrift.bind.host")
      val server = HiveThriftServer2.startWithContext(spark.sqlContext)
      val port = server.getServices.asScala.collectFirst { case s: ThriftCLIService => s.getPortNumber }
      val connect = if (conf.getBoolean("spark.streamql.server.connect", false)) Some(ConnectServer.start(spark.sparkContext)) else None
      val urls = port.map(p => s"jdbc:hive2://$host:$p").toSeq ++ connect.map(p => s"sc://$host:$p")
      println(s"streamql server: ready: ${urls.mkString(" ")}")
      System.out.flush()
      Thread.currentThread.join() // for ever: with the end of main, spark-submit would take the application for done
    }
  }
}

package org.apache.spark.sql.connect.streamql {

  import org.apache.spark.SparkContext
  import org.apache.spark.sql.connect.service.SparkConnectService

  object ConnectServer {
    /** Starts it; its port. */
    def start(context: SparkContext): Int = {
      SparkConnectService.start(context)
      SparkConnectService.localPort
    }
  }
}
