package org.apache.spark.sql.streamql.queries

import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{CollapseProject, ColumnPruning}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.RuleExecutor
import org.apache.spark.sql.streamql.plans.Fingerprint
import org.apache.spark.sql.streamql.shims.SparkShim

/**
 * Writes an analysed query over TableLeaf nodes as a text. A refresh that finds another text than the last one computes the query again.
 * The text is the same in each session, as long as Spark analyses the query in the same way. If a table gets or loses columns, the text
 * changes only if they change what the query means, as with `to_json(struct(*))` and NATURAL JOIN.
 */
object PlanText {
  def of(query: LogicalPlan): String = {
    val used = withoutChoices(QueryShape.pruned(withoutUnused(withoutTime(query))))
    (Fingerprint.query(used) +: settings(used)).mkString("\n")
  }

  /** A query in which one fixed value replaces all points in time that Spark's parser has made of strings such as 'now'. */
  private def withoutTime(query: LogicalPlan): LogicalPlan = query.transformAllExpressionsWithSubqueries {
    case l: Literal if TrackedQuery.isCurrent(l) => Literal.default(l.dataType)
  }

  /** A query without columns that it does not use: a table may get or lose them. The bodies of SQL functions replace their calls. */
  private def withoutUnused(query: LogicalPlan): LogicalPlan = Pruning.execute(query.transformAllExpressions {
    case f: SQLScalarFunction => f.child
    case e: Exists => e.withNewPlan(withoutUnused(withoutColumns(e.plan)))
    case s: SubqueryExpression => s.withNewPlan(withoutUnused(s.plan))
  })

  /** The query of an EXISTS without its columns, which are not used. */
  private def withoutColumns(p: LogicalPlan): LogicalPlan = p match {
    case Project(list, child) if list.forall(_.deterministic) => Project(Seq(Alias(Literal(1), "there")()), child)
    case other => other
  }

  private object Pruning extends RuleExecutor[LogicalPlan] {
    override protected def batches: Seq[Batch] = Seq(Batch("columns", FixedPoint(100), ColumnPruning, CollapseProject))
  }

  /**
   * A query in one form of several that are equal. Spark's rules leave some projections that only choose columns, depending on columns that
   * are not used. Here such a projection is below each node and expression for which the order of columns counts, and nowhere else. The
   * order in a table does not count.
   */
  private def withoutChoices(query: LogicalPlan): LogicalPlan = query.transformUpWithSubqueries {
    case p if isByPlace(p) => p.withNewChildren(p.children.map(c => Project(c.output, c)))
  }.transformAllExpressionsWithSubqueries {
    case s: SubqueryExpression if isByPlace(s) => s.withNewPlan(Project(s.plan.output, s.plan))
  }.transformUpWithSubqueries {
    case leaf: TableLeaf => leaf.copy(columns = leaf.columns.sortBy(_.name))
    case p if !isByPlace(p) => p.withNewChildren(p.children.map {
      case Project(list, child) if list.forall(_.isInstanceOf[Attribute]) => child
      case child => child
    })
  }

  /** Whether the order of the columns below a node counts. */
  def isByPlace(p: LogicalPlan): Boolean = p match {
    case _: Union | _: SetOperation | _: Distinct | _: Deduplicate => true
    case _ => false
  }

  /** Whether the order of a subquery's columns counts: that of EXISTS does not. */
  def isByPlace(s: SubqueryExpression): Boolean = !s.isInstanceOf[Exists]

  /** The settings by which expressions were analysed, which their texts do not show: time
   * zones, and how they treat overflows and errors. */
  private def settings(plan: LogicalPlan): Seq[String] = plan.collectWithSubqueries { case p => p.expressions.flatMap(_.collect {
    case e @ (_: Cast | _: BinaryArithmetic | _: TimeZoneAwareExpression | _: SupportQueryContext) => settingsOf(e)
  }) }.flatten

  private def settingsOf(e: Expression): String = e.productIterator.collect {
    case Some(zone: String) if !isWithoutZone(e) => zone
    case mode: EvalMode.Value => mode.toString
    case context if SparkShim.isContext(context) => context.toString
    case flag: Boolean => flag.toString
  }.mkString(e.getClass.getSimpleName + " ", " ", "")

  private def isWithoutZone(e: Expression): Boolean = e match {
    case c: Cast => !c.needsTimeZone
    case _ => false
  }
}
