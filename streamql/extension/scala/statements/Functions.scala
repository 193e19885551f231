package org.apache.spark.sql.streamql.statements

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{FunctionIdentifier, InternalRow}
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Cast, Expression, ExpressionInfo, LeafExpression, Literal}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LocalRelation, LogicalPlan, OneRowRelation, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.streamql.bridge.{Bridge, Errors, Shared}
import org.apache.spark.sql.types.{BooleanType, DataType, DateType, IntegerType, LongType, TimestampNTZType, TimestampType}
import org.apache.spark.unsafe.types.UTF8String

/** streamql's functions in SQL. Python knows what each returns from the log alone, when the statement is analysed. */
object Functions {
  private type Scalar = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => Expression)
  private type Table = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  private def info(name: String) = new ExpressionInfo("org.apache.spark.sql.streamql.statements.Functions", name)

  private def call(name: String, arguments: Seq[Expression]): Object = {
    val session = SparkSession.active
    Bridge.get.function(session, name, values(session, name, arguments).toArray, PinnedIntervals.scope)
  }

  private def values(session: SparkSession, name: String, arguments: Seq[Expression]): Seq[Object] = arguments.map(value(session, name, _))

  /** The value of an argument, which must be constant; times are microseconds. A query computes what is not a plain literal. */
  private def value(session: SparkSession, name: String, e: Expression): Object = e match {
    case Literal(null, _) => null
    case Literal(s: UTF8String, _) => s.toString
    case Literal(v @ (_: Int | _: Long | _: Boolean), BooleanType | IntegerType | LongType) => v.asInstanceOf[Object]
    case _ if e.references.nonEmpty || !e.resolved => throw Errors("INVALID_ARGUMENT", "NOT_CONSTANT", "function" -> name, "argument" -> e.sql)
    case _ =>
      val isTime = Seq(TimestampType, DateType, TimestampNTZType).contains(e.dataType)
      val typed = if (isTime) Cast(e, TimestampType, Some(session.conf.get("spark.sql.session.timeZone"))) else e
      val one = Dataset.ofRows(session.asInstanceOf[ClassicSession], Project(Seq(Alias(typed, "v")()), OneRowRelation()))
      if (isTime) one.queryExecution.executedPlan.executeCollect().head.get(0, LongType)
      else one.head().get(0) match {
        case d: java.math.BigDecimal => java.lang.Long.valueOf(d.longValue)
        case other => other.asInstanceOf[Object]
      }
  }

  private def scalarFunction(name: String, build: Object => Literal): Scalar =
    (FunctionIdentifier(name), info(name), arguments =>
      StreamValue(build(call(name, arguments)), arguments.map(_.sql).mkString(s"$name(", ", ", ")")))

  private def tableFunction(name: String): Table =
    (FunctionIdentifier(name), info(name), arguments => call(name, arguments).asInstanceOf[LogicalPlan])

  private def time(micros: Object): Literal =
    if (micros == null) Literal(null, TimestampType) else Literal(micros.asInstanceOf[Number].longValue, TimestampType)

  val scalar: Seq[Scalar] = Shared.functions.collect {
    case (name, "boolean") => scalarFunction(name, v => Literal(v.asInstanceOf[Boolean]))
    case (name, "timestamp") => scalarFunction(name, time)
  }

  private def asOf(name: String): Table =
    (FunctionIdentifier(name), info(name), arguments => AsOf(values(SparkSession.active, name, arguments)))

  val table: Seq[Table] =
    Shared.functions.collect { case (name, "relation") => tableFunction(name) } :+ asOf(Shared.constant("functions", "asOf"))
}

/**
 * Holds a call of streamql_as_of until ResolveStreams asks Python for the table. That rule knows the statement, and the view in whose text
 * the call is.
 */
case class AsOf(arguments: Seq[Object]) extends LeafNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
}

/**
 * What one of streamql's functions has returned: a constant, like a literal. But a plan shows that it is not a literal, and a column of it
 * is named after the call.
 */
case class StreamValue(answer: Literal, call: String) extends LeafExpression with CodegenFallback {
  override def dataType: DataType = answer.dataType
  override def nullable: Boolean = answer.nullable
  override def foldable: Boolean = true
  override def eval(row: InternalRow): Any = answer.value
  override def sql: String = call
}

/**
 * Answers a query that selects nothing but streamql's functions and literals, without a Spark job. It runs before the optimizer, which
 * would make literals of the functions.
 */
object AnswerAtOnce extends Rule[LogicalPlan] {
  private def isAnswered(e: Expression): Boolean = e match {
    case _: StreamValue | _: Literal => true
    case Alias(child, _) => isAnswered(child)
    case _ => false
  }
  private def asked(e: Expression): Boolean = e.exists(_.isInstanceOf[StreamValue])

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case p @ Project(list, _: OneRowRelation) if list.forall(isAnswered) && list.exists(asked) =>
      LocalRelation(p.output, Seq(InternalRow.fromSeq(list.map(_.eval()))))
  }
}
