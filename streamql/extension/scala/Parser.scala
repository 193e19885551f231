package org.apache.spark.sql.streamql

import java.util.regex.Pattern

import scala.io.{Codec, Source}

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.parser.{ParameterContext, ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * The outermost parser: a cheap test decides whether a statement crosses to Python at all, and what the delegate rejects is
 * offered to Python once before the error is raised.
 */
class Parser(session: SparkSession, delegate: ParserInterface) extends ParserInterface {
  private def plan(sql: String, next: Delegate): LogicalPlan = {
    val ours = if (Parser.mightBeOurs(sql)) Option(Bridge.get.plan(session, next, sql)) else None
    ours.getOrElse {
      try next.parse(sql)
      catch { case e: ParseException => Bridge.peek.flatMap(h => Option(h.rejected(session, next, sql))).getOrElse(throw e) }
    }
  }

  override def parsePlan(sql: String): LogicalPlan = plan(sql, text => delegate.parsePlan(text))
  // Delta's parser, the delegate, drops parameters when only parsePlan is called; spark.sql(text, args) needs them.
  override def parsePlanWithParameters(sql: String, context: ParameterContext): LogicalPlan =
    plan(sql, text => delegate.parsePlanWithParameters(text, context))
  override def parseQuery(sql: String): LogicalPlan = delegate.parseQuery(sql)
  override def parseExpression(sql: String): Expression = delegate.parseExpression(sql)
  override def parseTableIdentifier(sql: String): TableIdentifier = delegate.parseTableIdentifier(sql)
  override def parseFunctionIdentifier(sql: String): FunctionIdentifier = delegate.parseFunctionIdentifier(sql)
  override def parseMultipartIdentifier(sql: String): Seq[String] = delegate.parseMultipartIdentifier(sql)
  override def parseRoutineParam(sql: String): StructType = delegate.parseRoutineParam(sql)
  override def parseTableSchema(sql: String): StructType = delegate.parseTableSchema(sql)
  override def parseDataType(sql: String): DataType = delegate.parseDataType(sql)
}

object Parser {
  /** The same file that Python's dialect reads: one definition of what may be ours. */
  private val prefilter: Pattern = {
    val in = getClass.getResourceAsStream("/streamql/prefilter.txt")
    val text = try Source.fromInputStream(in)(Codec.UTF8).mkString.trim finally in.close()
    Pattern.compile(text, Pattern.CASE_INSENSITIVE | Pattern.DOTALL)
  }
  def mightBeOurs(sql: String): Boolean = prefilter.matcher(sql).find()
}

/** One of our own statements: Spark runs it once, eagerly, in every front end; nothing happens when it is parsed. */
case class StreamCommand(sql: String, ddl: String) extends LeafRunnableCommand {
  override val output: Seq[Attribute] =
    DataTypeUtils.toAttributes(if (ddl.isEmpty) new StructType() else StructType.fromDDL(ddl))
  override def run(session: SparkSession): Seq[Row] = {
    import scala.jdk.CollectionConverters._
    Bridge.get.run(session, sql).asScala.toSeq
  }
}
