package org.apache.spark.sql.streamql

import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{CollapseProject, ColumnPruning, RemoveNoopOperators}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.{Rule, RuleExecutor}

/**
 * An analysed query over TableLeaf nodes as a text: the same one in each session, as long as Spark makes the same of the query. Columns that a table gets or
 * loses give another text if the query means something else with them, as `to_json(struct(*))` and NATURAL JOIN do.
 */
object PlanText {
  def of(query: LogicalPlan): String = {
    val used = withoutUnused(query).transformUpWithSubqueries { case p => withoutChoices(p) }
    (Fingerprint.query(used) +: settings(used)).mkString("\n")
  }

  /** A query without columns that it does not use: a table may get or lose them. Functions of SQL are what they compute. */
  private def withoutUnused(query: LogicalPlan): LogicalPlan = Pruning.execute(query.transformAllExpressions {
    case f: SQLScalarFunction => f.child
    case s: SubqueryExpression => s.withNewPlan(withoutUnused(s.plan))
  })

  /** Without projections of columns below a node, but where their places count. Spark's rules leave some of them, depending on columns that are not used. */
  private def withoutChoices(p: LogicalPlan): LogicalPlan = p match {
    case _: Union | _: SetOperation | _: Distinct | _: Deduplicate => p
    case _ => p.withNewChildren(p.children.map {
      case Project(list, child) if list.forall(_.isInstanceOf[Attribute]) => child
      case child => child
    })
  }

  private object Pruning extends RuleExecutor[LogicalPlan] {
    private object OfTables extends Rule[LogicalPlan] {
      override def apply(plan: LogicalPlan): LogicalPlan = QueryShape.pruned(plan)
    }
    override protected def batches: Seq[Batch] =
      Seq(Batch("columns", FixedPoint(100), ColumnPruning, CollapseProject, OfTables, RemoveNoopOperators))
  }

  /** The settings by which expressions were analysed, which their texts do not show: time zones, and how they treat overflows and errors. */
  private def settings(plan: LogicalPlan): Seq[String] = plan.collectWithSubqueries { case p => p.expressions.flatMap(_.collect {
    case e @ (_: Cast | _: BinaryArithmetic | _: TimeZoneAwareExpression | _: SupportQueryContext) => settingsOf(e)
  }) }.flatten

  private def settingsOf(e: Expression): String = e.productIterator.collect {
    case Some(zone: String) if !isWithoutZone(e) => zone
    case mode: EvalMode.Value => mode.toString
    case context: NumericEvalContext => context.toString
    case flag: Boolean => flag.toString
  }.mkString(e.getClass.getSimpleName + " ", " ", "")

  private def isWithoutZone(e: Expression): Boolean = e match {
    case c: Cast => !c.needsTimeZone
    case _ => false
  }
}
