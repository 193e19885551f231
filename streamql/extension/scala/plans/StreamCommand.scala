package org.apache.spark.sql.streamql.plans

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.streamql.bridge.Bridge
import org.apache.spark.sql.streamql.session.Neutral

/** A statement of streamql's own, as a command. Spark runs it once, eagerly, in every front end. Nothing happens when it is parsed. */
case class StreamCommand(sql: String, ddl: String) extends LeafRunnableCommand {
  override val output: Seq[Attribute] = DataTypeUtils.toAttributes(Neutral.columns(ddl))
  override def run(session: SparkSession): Seq[Row] = {
    // Delta prints upgrades of protocols on standard output, which is for rows in bin/spark-sql.
    Console.withOut(java.io.OutputStream.nullOutputStream())(Bridge.get.run(session, sql)).asScala.toSeq
  }
}
