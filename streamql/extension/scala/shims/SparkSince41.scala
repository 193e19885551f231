package org.apache.spark.sql.streamql.shims

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.analysis.{UnresolvedExecuteImmediate, ViewResolution}
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.expressions.{CurrentTime, DirectShufflePartitionID, EvalMode, Expression, Literal, NumericEvalContext}
import org.apache.spark.sql.catalyst.parser.{HybridParameterContext, NamedParameterContext, ParameterContext, ParameterHandler, ParseException, ParserInterface,
  PositionalParameterContext}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.internal.VariableSubstitution
import org.apache.spark.sql.types.{DataType, TimeType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** What Spark 4.1 and later have in common. */
trait SparkSince41 extends Shim {
  override def partition(task: Expression, tasks: Int): Expression = DirectShufflePartitionID(task)
  override def timeTravel(relation: DataSourceV2Relation): Option[String] = relation.timeTravelSpec.map(_.toString)
  override def mode(sum: Sum): EvalMode.Value = sum.evalContext.evalMode
  override def sum(of: Expression, mode: EvalMode.Value): Sum = Sum(of, NumericEvalContext(mode, allowDecimalPrecisionLoss = true))
  override def isContext(argument: Any): Boolean = argument.isInstanceOf[NumericEvalContext]
  override def isTimeOfDay(e: Expression): Boolean = e.isInstanceOf[CurrentTime]
  override def isTime(dataType: DataType): Boolean = dataType.isInstanceOf[TimeType]
  override def withQueries(w: UnresolvedWith)(changed: SubqueryAlias => SubqueryAlias): UnresolvedWith =
    w.copy(cteRelations = w.cteRelations.map { case (name, query, depth) => (name, changed(query), depth) })
  override def resolved(view: View, resolve: LogicalPlan => LogicalPlan, check: LogicalPlan => Unit): View =
    ViewResolution.resolve(view, CaseInsensitiveStringMap.empty, resolve, check)
  override def lacksValues(text: String): Boolean = false
  override def apart[T](work: => T): T = work
  override def intoVariables(plan: LogicalPlan, checked: Expression => Expression): Option[LogicalPlan] = plan match {
    case i: UnresolvedExecuteImmediate if i.targetVariables.nonEmpty => Some(i.copy(sqlStmtStr = checked(i.sqlStmtStr)))
    case _ => None
  }
}

/**
 * Puts parameters into the text, by Spark's own substitution. The parser of Delta inherits the default of the interface, which forgets the
 * parameters (delta-io/delta#7640, SPARK-59672). If Spark cannot parse the text, it is streamql's or needs a rewrite: then `bind` puts them
 * into the text.
 */
trait ParameterParser extends ParserInterface with BindsParameters {
  override def parsePlanWithParameters(sql: String, context: ParameterContext): LogicalPlan = {
    val (names, values, bound) = context match {
      case c: NamedParameterContext =>
        val (names, values) = c.params.toSeq.unzip
        (names, values, NamedParameterContext(c.params.map { case (name, value) => name -> Value.guarded(value) }))
      case c: PositionalParameterContext => (Nil, c.params, PositionalParameterContext(c.params.map(Value.guarded)))
      case c: HybridParameterContext =>
        (if (c.paramNames.contains("")) Nil else c.paramNames, c.args, HybridParameterContext(c.args.map(Value.guarded), c.paramNames))
    }
    if (values.isEmpty) return parsePlan(sql)
    val text = variables.substitute(sql)
    parsePlan(try ParameterHandler.substituteParameters(text, bound)._1 catch {
      case _: ParseException => bind(text, names, values.map(Value.guarded(_).sql))
    })
  }
  private val variables = new VariableSubstitution()
}

/** Manages files as `before` does. */
trait DelegatedFiles extends CheckpointFileManager {
  protected def before: CheckpointFileManager
  override def close(): Unit = before.close()
}

/** Names of Spark's interface for the checkpoints of streaming queries. */
object Checkpoints {
  type Output = CheckpointFileManager.CancellableFSDataOutputStream
  def manager(path: Path, conf: Configuration): CheckpointFileManager = CheckpointFileManager.create(path, conf)
}

/**
 * A parameter's value as it is put into the text. It has spaces around it: `-?` must not become `--1`, which is a comment. It has no
 * variable in it, because the text is searched for variables once more. So `${` is split into two strings: strings beside each other are
 * one string.
 */
private class Value(value: Any, dataType: DataType) extends Literal(value, dataType) {
  override def sql: String = " " + super.sql.replace("${", "$' '{") + " "
}

private object Value {
  def guarded(e: Expression): Expression = e.transformUp {
    case v: Value => v
    case l: Literal => new Value(l.value, l.dataType)
  }
}
