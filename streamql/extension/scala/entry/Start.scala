package org.apache.spark.sql.streamql.entry

import scala.util.control.NonFatal

import org.apache.spark.deploy.SparkSubmit
import org.codehaus.janino.ClassBodyEvaluator

/**
 * Starts Spark as SparkSubmit does. Meanwhile, another thread initializes what the first session and the first statement need, which are
 * 0.4 s. These are libraries, and parsers that ANTLR has generated: they use no object of Spark. Two threads that initialize objects of
 * Spark in another order could wait for each other for good.
 */
object Start {
  private val PARSERS = Seq("org.apache.spark.sql.catalyst.parser.SqlBaseLexer", "org.apache.spark.sql.catalyst.parser.SqlBaseParser",
    "io.delta.sql.parser.DeltaSqlBaseLexer", "io.delta.sql.parser.DeltaSqlBaseParser")

  def main(arguments: Array[String]): Unit = {
    val ahead = new Thread(() => initialize(), "streamql-start")
    ahead.setDaemon(true)
    ahead.start()
    SparkSubmit.main(arguments)
  }

  private def initialize(): Unit =
    try {
      scala.reflect.runtime.universe.definitions.ObjectClass // functions of MLlib, which each session registers, need reflection
      PARSERS.foreach(Class.forName)
      new ClassBodyEvaluator().cook("public Object one(Object[] of) { return of[0]; }")
    } catch {
      case NonFatal(_) | _: LinkageError => () // who needs it meets the same error
    }
}
