package org.apache.spark.sql.streamql.queries

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.streamql.shims.SparkShim

/**
 * Brings a keyed query into the form to which the rules of `QueryChange` apply. Spark's own rules make joins and aggregates of subqueries
 * and set operations.
 */
object QueryShape extends AliasHelper {
  private val rules = Seq(
    EliminateSubqueryAliases, ReplaceIntersectWithSemiJoin, ReplaceExceptWithAntiJoin, RewriteExceptAll, RewriteIntersectAll,
    ReplaceDistinctWithAggregate, PullupCorrelatedPredicates, RewriteCorrelatedScalarSubquery, RewriteLateralSubquery,
    BooleanSimplification, OnlyConditions, RewritePredicateSubquery, BelowSubqueries, PushPredicateThroughJoin)

  /** Refuses the value of IN (SELECT …), unless it is a condition, or AND, OR and NOT make a condition of it. Spark's rule takes IN for
   * FALSE where it is NULL. A node that shows or compares the value would show the difference. */
  private object OnlyConditions extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      plan.foreach {
        case f: Filter => check(f.condition)
        case j: Join => j.condition.foreach(check)
        case other => other.expressions.foreach(refuse)
      }
      plan
    }
    private def check(e: Expression): Unit = e match {
      case And(l, r) => Seq(l, r).foreach(check)
      case Or(l, r) => Seq(l, r).foreach(check)
      case Not(i: InSubquery) => i.values.foreach(refuse)
      case i: InSubquery => i.values.foreach(refuse)
      case other => refuse(other)
    }
    private def refuse(e: Expression): Unit = if (e.exists(_.isInstanceOf[InSubquery])) throw new Untracked("SUBQUERY_VALUE")
  }

  /** Moves a WHERE below the columns that Spark adds with the join of a scalar subquery. `FROM a, b WHERE a.x = b.x` would be a cross join
   * without it. */
  private object BelowSubqueries extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
      case Filter(condition, p @ Project(columns, j: Join)) if condition.deterministic && columns.forall(_.deterministic) =>
        p.copy(child = Filter(replaceAlias(condition, getAliasMap(p)), j))
    }
  }

  /** The query in this form. Raises Untracked if it has a function or an operator that the rules cannot follow. */
  def of(keyed: KeyedQuery): Project = {
    keyed.openTies.foreach(what => throw new Untracked(what))
    // Some queries need more of Spark's rules than these.
    val shaped = try shape(keyed.rows) catch {
      case u: Untracked => throw u
      case NonFatal(_) => throw new Untracked("OTHER_OPERATOR")
    }
    shaped.foreachWithSubqueries { node =>
      node.expressions.foreach(check)
      node match {
        case a: Aggregate if a.groupingExpressions.exists(isSession) => throw new Untracked("SESSION_WINDOW")
        case _ =>
      }
    }
    pruned(shaped).asInstanceOf[Project]
  }

  /** Applies the rules. They rewrite the subqueries of a plan, and not those within subqueries. So inner subqueries come first, as in
   * Spark's optimizer. */
  private def shape(p: LogicalPlan): LogicalPlan = {
    val inner = p.transformAllExpressions { case s: SubqueryExpression => s.withNewPlan(shape(s.plan)) }
    rules.foldLeft(inner)((shaped, rule) => rule(shaped))
  }

  /** A plan whose reads of tables have only the columns that are used. */
  def pruned(p: LogicalPlan): LogicalPlan = {
    val own = AttributeSet(p.collectWithSubqueries { case node => usedBy(node, isByPlace = true) }.flatten)
    p.transformUpWithSubqueries { case leaf: TableLeaf => leaf.copy(columns = leaf.columns.filter(own.contains)) }
  }

  /** The columns that the nodes of a plan use, without those of its subqueries. */
  def used(p: LogicalPlan): AttributeSet = AttributeSet(p.collect { case node => usedBy(node, isByPlace = false) }.flatten)

  /** The columns that a node uses. `isByPlace`: whether to include all columns of subqueries for which the order of columns counts. */
  private def usedBy(node: LogicalPlan, isByPlace: Boolean): Seq[Attribute] = node match {
    case _: TableLeaf => Nil
    case _ => (if (PlanText.isByPlace(node)) node.children.flatMap(_.output) else Nil) ++ node.expressions.flatMap(e => e.references ++ e.collect {
      case OuterReference(a) => Seq(a.toAttribute)
      case s: SubqueryExpression if isByPlace && PlanText.isByPlace(s) => s.plan.output
    }.flatten)
  }

  /** Whether a key is a session_window(). A row may join two sessions into one, so the key of
   * its group does not follow from the row alone. */
  private def isSession(key: Expression): Boolean = key match {
    case n: NamedExpression => n.metadata.contains(SessionWindow.marker)
    case _ => false
  }

  /** Refuses functions that may return another value for the same rows in another order. For groups that are computed again, their values
   * could differ from those of the full query. */
  private def check(e: Expression): Unit = {
    e match {
      case a: AggregateExpression => checkFunction(a.aggregateFunction, a.aggregateFunction)
      case n: NthValue => throw new Untracked("ORDER_OF_ROWS", n)
      case _ => TrackedQuery.checkVaries(e)
    }
    RowOrder.operands(e).foreach(check)
  }

  /** `written`: the function as the query has it, for the error. */
  private def checkFunction(f: Expression, written: Expression): Unit = f match {
    case r: RuntimeReplaceableAggregate => checkFunction(r.replacement, written)
    // try_sum() may overflow in one order, and not in another.
    case s: Sum if SparkShim.mode(s) == EvalMode.TRY => throw new Untracked("ORDER_OF_ROWS", written)
    case _: Count | _: Sum | _: Average | _: Min | _: Max | _: CentralMomentAgg | _: PercentileBase | _: Covariance | _: PearsonCorrelation |
      _: RegrSlope | _: RegrIntercept =>
    case _: BitAndAgg | _: BitOrAgg | _: BitXorAgg | _: HyperLogLogPlusPlus =>
    case _ if RowOrder.isNamed(f) =>
    case _ => throw new Untracked("ORDER_OF_ROWS", written)
  }
}
