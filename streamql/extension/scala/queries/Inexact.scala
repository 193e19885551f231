package org.apache.spark.sql.streamql.queries

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.types._

/**
 * Finds columns whose values depend on the order of rows. They are sums and averages of FLOAT and DOUBLE, variances that `ExactAggregates`
 * leaves, and what is computed of them. So is one of several strings that are equal by a collation.
 *
 * An incremental refresh computes earlier rows again. It may find other values than those by which rows were compared or grouped when the
 * table was written.
 */
object Inexact {
  def columns(p: LogicalPlan): AttributeSet = p match {
    case _: LeafNode => AttributeSet.empty
    case u: Union => AttributeSet(u.children.flatMap(c => positions(c.output, columns(c))).distinct.map(u.output))
    case e: Expand =>
      val below = columns(e.child)
      AttributeSet(e.projections.flatMap(list => list.indices.filter(i => isInexact(list(i), below))).distinct.map(e.output))
    case _ =>
      val below = AttributeSet.fromAttributeSets(p.children.map(columns))
      val own = p match {
        case Project(list, _) => inexact(list, below)
        case a: Aggregate =>
          val equal = a.groupingExpressions.filter(g => hasEqualStrings(g.dataType))
          inexact(a.aggregateExpressions, below) ++ a.aggregateExpressions.filter(_.exists(e => equal.exists(_.semanticEquals(e)))).map(_.toAttribute)
        case w: Window => inexact(w.windowExpressions, below)
        case g: Generate if isInexact(g.generator, below) => g.generatorOutput
        case _ => Nil
      }
      AttributeSet(own ++ p.output.filter(below.contains))
  }

  /** Whether a node of a plan, or of the subqueries of its expressions, compares such columns. */
  def hasCompared(p: LogicalPlan): Boolean = p.collectWithSubqueries { case node if isCompared(node) => node }.nonEmpty

  /** Whether such columns tell which rows a node has: the node compares them, groups by them, or orders a LIMIT by them. */
  private def isCompared(p: LogicalPlan): Boolean = {
    val compared = p match {
      case f: Filter => Seq(f.condition)
      case j: Join => j.condition.toSeq
      case a: Aggregate => a.groupingExpressions
      case w: Window => w.partitionSpec
      case g: Generate => Seq(g.generator)
      case _ => Nil
    }
    val cuts = p match {
      case _: GlobalLimit | _: LocalLimit | _: Offset => p.children.head.collectFirst { case s: Sort => areInexact(s.order.map(_.child), s.children) }
      case _ => None
    }
    cuts.contains(true) || compared.nonEmpty && areInexact(compared, p.children)
  }

  /** Whether one of some expressions over the rows of plans is of such columns. */
  def areInexact(list: Seq[Expression], plans: Seq[LogicalPlan]): Boolean = {
    val below = AttributeSet.fromAttributeSets(plans.map(columns))
    list.exists(isInexact(_, below))
  }

  private def positions(output: Seq[Attribute], found: AttributeSet) = output.indices.filter(i => found.contains(output(i)))

  private def inexact(list: Seq[NamedExpression], below: AttributeSet) = list.filter(isInexact(_, below)).map(_.toAttribute)

  private def isInexact(e: Expression, below: AttributeSet): Boolean = e match {
    case CollationKey(_: Attribute) => false // equal strings have the same key
    case a: Attribute => below.contains(a)
    case f: AggregateFunction if dependsOnOrder(FollowedFunction.bare(f)) => true
    case s: SubqueryExpression if columns(s.plan).nonEmpty => true
    case other => other.children.exists(isInexact(_, below))
  }

  private def dependsOnOrder(f: Expression): Boolean = f match {
    case s: Sum => isFloating(s.child.dataType)
    case a: Average => isFloating(a.child.dataType) || a.child.dataType.isInstanceOf[IntegralType] // added as DOUBLE
    case _: CentralMomentAgg | _: Covariance | _: PearsonCorrelation | _: RegrSlope | _: RegrIntercept => true
    case Min(_) | Max(_) => hasEqualStrings(f.dataType)
    case _ => false
  }

  /** Whether strings of a type may be different and equal, by a collation. Then the order of the rows tells which one a group shows. */
  def hasEqualStrings(t: DataType): Boolean = t.existsRecursively { case s: StringType => !UnsafeRowUtils.isBinaryStable(s); case _ => false }

  private def isFloating(t: DataType) = t == FloatType || t == DoubleType
}
