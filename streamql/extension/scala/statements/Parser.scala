package org.apache.spark.sql.streamql.statements

import java.util.regex.Pattern

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.{ParseException, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.streamql.bridge.{Bridge, Delegate, Shared, StreamqlException}
import org.apache.spark.sql.streamql.session.{OuterParser, Settings}
import org.apache.spark.sql.streamql.shims.LineParser
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * The outermost parser. A regular expression (`prefilter`) tests whether Python is asked about a statement at all. A statement that the
 * delegate rejects is offered to Python once, before the error is raised.
 */
class Parser(session: SparkSession, override val delegate: ParserInterface) extends OuterParser with LineParser {
  override def parsePlan(sql: String): LogicalPlan = {
    val next: Delegate = text => Immediates.guarded(text, delegate.parsePlan(text), this)
    val mightBeOurs = Parser.mightBeOurs(sql)
    val parsed = (if (mightBeOurs) planned(next, sql) else None).getOrElse {
      val plain = try next.parse(sql) catch { case e: ParseException => rejected(next, sql).getOrElse(throw e) }
      (if (!mightBeOurs && Merges.nameTarget(plain)) planned(next, sql) else None).getOrElse(plain)
    }
    MergeSource.hold(DynamicNames.hold(sql, parsed))
  }

  /** The plan that Python makes of a statement; None: the statement is Spark's as it is. */
  private def planned(next: Delegate, sql: String): Option[LogicalPlan] = {
    Settings.checkAll(session)
    Option(Bridge.get.plan(session, next, sql))
  }

  /** The plan that Python makes of a statement that Spark cannot parse. None: it is not streamql's, or no handler can answer; then Spark's
   * error is shown. */
  private def rejected(next: Delegate, sql: String): Option[LogicalPlan] =
    try Option(Bridge.get.rejected(session, next, sql))
    catch { case e: StreamqlException if e.getCondition == "SIDECAR_FAILED" => None }

  override protected def bind(sql: String, names: Seq[String], values: Seq[String]): String = Bridge.get.bind(sql, names.toArray, values.toArray)

  override def parseQuery(sql: String): LogicalPlan = DynamicNames.hold(sql, delegate.parseQuery(sql)) // the texts of views
  override def parseExpression(sql: String): Expression = delegate.parseExpression(sql)
  override def parseTableIdentifier(sql: String): TableIdentifier = delegate.parseTableIdentifier(sql)
  override def parseFunctionIdentifier(sql: String): FunctionIdentifier = delegate.parseFunctionIdentifier(sql)
  override def parseMultipartIdentifier(sql: String): Seq[String] = delegate.parseMultipartIdentifier(sql)
  override def parseRoutineParam(sql: String): StructType = delegate.parseRoutineParam(sql)
  override def parseTableSchema(sql: String): StructType = delegate.parseTableSchema(sql)
  override def parseDataType(sql: String): DataType = delegate.parseDataType(sql)
}

object Parser {
  /** Python's dialect reads the same file, so that one definition tells which texts may be streamql's. */
  private val prefilter = Pattern.compile(Shared.text("prefilter.txt"), Pattern.CASE_INSENSITIVE | Pattern.DOTALL)
  def mightBeOurs(sql: String): Boolean = prefilter.matcher(sql).find()
}
