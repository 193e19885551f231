package org.apache.spark.sql.streamql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Alias, Cast, Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OneRowRelation, Project}
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.types.{DateType, LongType, TimestampNTZType, TimestampType}

/** Functions whose value, or relation, Python knows from the log alone, when the statement is analysed. */
object Functions {
  private type Scalar = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => Expression)
  private type Table = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  private def info(name: String) = new ExpressionInfo("org.apache.spark.sql.streamql.Functions", name)

  private def call(name: String, arguments: Seq[Expression]): Object = {
    val session = SparkSession.active
    Bridge.get.function(session, name, arguments.map(value(session, name, _)).toArray)
  }

  /** Constants of any shape; times as microseconds. */
  private def value(session: SparkSession, name: String, e: Expression): Object = e match {
    case Literal(v, _) if v == null => null
    case _ if e.references.nonEmpty || !e.resolved => throw Errors.analysis("INVALID_ARGUMENT", "22023",
      s"[INVALID_ARGUMENT] $name takes constants, not ${e.sql}\nHint: name the stream as a string, $name('db.s')", null, null)
    case _ =>
      val typed = e.dataType match {
        case TimestampType | DateType | TimestampNTZType =>
          Cast(Cast(e, TimestampType, Some(session.conf.get("spark.sql.session.timeZone"))), LongType)
        case _ => e
      }
      val micros = typed ne e
      val one = Project(Seq(Alias(typed, "v")()), OneRowRelation())
      Dataset.ofRows(session.asInstanceOf[ClassicSession], one).head().get(0) match {
        case seconds: java.lang.Long if micros => java.lang.Long.valueOf(exactMicros(session, e))
        case d: java.math.BigDecimal => java.lang.Long.valueOf(d.longValue)
        case other => other.asInstanceOf[Object]
      }
  }

  private def exactMicros(session: SparkSession, e: Expression): Long = {
    val one = Project(Seq(Alias(Cast(e, TimestampType, Some(session.conf.get("spark.sql.session.timeZone"))), "v")()), OneRowRelation())
    val t = Dataset.ofRows(session.asInstanceOf[ClassicSession], one).queryExecution.toRdd.collect().head.getLong(0)
    t
  }

  private def scalarFunction(name: String, build: Object => Literal): Scalar =
    (FunctionIdentifier(name), info(name), arguments => build(call(name, arguments)))

  private def tableFunction(name: String): Table =
    (FunctionIdentifier(name), info(name), arguments => call(name, arguments).asInstanceOf[LogicalPlan])

  private def time(micros: Object): Literal =
    if (micros == null) Literal(null, TimestampType) else Literal(micros.asInstanceOf[Number].longValue, TimestampType)

  val scalar: Seq[Scalar] = Seq(
    scalarFunction("stream_has_data", v => Literal(v.asInstanceOf[Boolean])),
    scalarFunction("stream_table_timestamp", time))

  val table: Seq[Table] = Seq("streamql_changes", "stream_backlog", "stream_status").map(tableFunction)
}
