package org.apache.spark.sql.streamql.queries

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule

/** The form of a keyed query to which the rules of `QueryChange` apply: subqueries and set operations are joins and aggregates, by Spark's own rules. */
object QueryShape extends AliasHelper {
  private val rules = Seq(
    EliminateSubqueryAliases, ReplaceIntersectWithSemiJoin, ReplaceExceptWithAntiJoin, RewriteExceptAll, RewriteIntersectAll,
    ReplaceDistinctWithAggregate, PullupCorrelatedPredicates, RewriteCorrelatedScalarSubquery, RewriteLateralSubquery,
    BooleanSimplification, OnlyConditions, RewritePredicateSubquery, BelowSubqueries, PushPredicateThroughJoin)

  /** Refuses IN but in conditions, also those that AND, OR and NOT combine: Spark's rule takes IN for FALSE where it is NULL, and a node above may show
   * the difference. */
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

  /** Moves a WHERE below the columns that Spark adds with the join of a scalar subquery. `FROM a, b WHERE a.x = b.x` would be a cross join without it. */
  private object BelowSubqueries extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
      case Filter(condition, p @ Project(columns, j: Join)) if condition.deterministic && columns.forall(_.deterministic) =>
        p.copy(child = Filter(replaceAlias(condition, getAliasMap(p)), j))
    }
  }

  /** Raises Untracked for a function that it must not have. */
  def of(keyed: KeyedQuery): Project = {
    keyed.openTies.foreach(what => throw new Untracked(what))
    // Queries for which Spark needs more of its rules than these.
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

  /** Spark's rules rewrite the subqueries of one plan, and not those in them. So these come first, as in Spark's optimizer. */
  private def shape(p: LogicalPlan): LogicalPlan = {
    val inner = p.transformAllExpressions { case s: SubqueryExpression => s.withNewPlan(shape(s.plan)) }
    rules.foldLeft(inner)((shaped, rule) => rule(shaped))
  }

  /** The same, but that reads of tables have only the columns that are used. */
  def pruned(p: LogicalPlan): LogicalPlan = {
    val own = AttributeSet(p.collectWithSubqueries { case node => usedBy(node, isByPlace = true) }.flatten)
    p.transformUpWithSubqueries { case leaf: TableLeaf => leaf.copy(columns = leaf.columns.filter(own.contains)) }
  }

  /** The columns that the nodes of a plan use, without those of its subqueries. */
  def used(p: LogicalPlan): AttributeSet = AttributeSet(p.collect { case node => usedBy(node, isByPlace = false) }.flatten)

  /** `isByPlace`: with all columns of subqueries for which their places count. */
  private def usedBy(node: LogicalPlan, isByPlace: Boolean): Seq[Attribute] = node match {
    case _: TableLeaf => Nil
    case _ => (if (PlanText.isByPlace(node)) node.children.flatMap(_.output) else Nil) ++ node.expressions.flatMap(e => e.references ++ e.collect {
      case OuterReference(a) => Seq(a.toAttribute)
      case s: SubqueryExpression if isByPlace && PlanText.isByPlace(s) => s.plan.output
    }.flatten)
  }

  /** Whether a key is a session: a row may join two of them into one, so its group is not found by its own values. */
  private def isSession(key: Expression): Boolean = key match {
    case n: NamedExpression => n.metadata.contains(SessionWindow.marker)
    case _ => false
  }

  /** Refuses functions that may return another value for the same rows in another order: what is computed anew for some groups would not be
   * what the whole query returns. */
  private def check(e: Expression): Unit = {
    e match {
      case a: AggregateExpression => checkFunction(a.aggregateFunction, a.aggregateFunction)
      case n: NthValue => throw new Untracked("ORDER_OF_ROWS", n)
      case _ => TrackedQuery.checkVaries(e)
    }
    RowOrder.operands(e).foreach(check)
  }

  /** `written`: as the query has it. */
  private def checkFunction(f: Expression, written: Expression): Unit = f match {
    case r: RuntimeReplaceableAggregate => checkFunction(r.replacement, written)
    case s: Sum if s.evalContext.evalMode == EvalMode.TRY => throw new Untracked("ORDER_OF_ROWS", written) // it may overflow in one order, and not in another
    case _: Count | _: Sum | _: Average | _: Min | _: Max | _: CentralMomentAgg | _: PercentileBase | _: Covariance | _: PearsonCorrelation |
      _: RegrSlope | _: RegrIntercept =>
    case _: BitAndAgg | _: BitOrAgg | _: BitXorAgg | _: HyperLogLogPlusPlus =>
    case _ if RowOrder.isNamed(f) =>
    case _ => throw new Untracked("ORDER_OF_ROWS", written)
  }
}
