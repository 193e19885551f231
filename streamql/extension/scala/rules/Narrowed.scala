package org.apache.spark.sql.streamql.rules

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.streamql.changes.Values
import org.apache.spark.sql.streamql.queries.{Inexact, Untracked}
import org.apache.spark.sql.types.DataType

/**
 * Narrows a plan. Its caller needs only rows for which some expressions have certain values, so other rows are dropped close to the tables.
 * Spark's optimizer moves such a condition to that side of a join which has its columns. Here it also gets to the other side, if the join
 * compares these columns.
 *
 * An expression is computed only for rows for which the plan computes it, because it may fail for others.
 */
object Narrowed {
  /** `own`: the expressions over `p`. `narrow`: drops the rows of a plan for which the expressions have other values. */
  def apply(p: LogicalPlan, own: Seq[Expression])(narrow: (LogicalPlan, Seq[Expression]) => LogicalPlan): LogicalPlan = {
    def of(p: LogicalPlan, own: Seq[Expression]): LogicalPlan = p match {
      case Project(list, child) => p.withNewChildren(Seq(of(child, own.map(QueryChange.below(_, list)))))
      case f: Filter if own.forall(_.isInstanceOf[Attribute]) => f.copy(child = of(f.child, own))
      case u: Union if !u.byName => u.withNewChildren(u.children.map(c => of(c, own.map(_.transform {
        case a: Attribute => u.output.zip(c.output).find(_._1.exprId == a.exprId).fold(a)(_._2)
      }))))
      case j: Join => join(j, own).fold(narrow(j, own)) { case (left, right) =>
        j.copy(left = left.fold(j.left)(of(j.left, _)), right = right.fold(j.right)(of(j.right, _)))
      }
      case a: Aggregate => group(own.map(QueryChange.below(_, a.aggregateExpressions)), a.groupingExpressions)
        .fold(narrow(a, own))(keys => a.copy(child = of(a.child, keys)))
      case w: Window => group(own, w.partitionSpec).fold(narrow(w, own))(keys => w.copy(child = of(w.child, keys)))
      case _ => narrow(p, own)
    }
    of(p, own)
  }

  /** The expressions over the left and the right side of a join; None for a side: all its rows count. None for both: neither side has the
   * expressions, or the join also returns rows that lack this side. */
  private def join(j: Join, own: Seq[Expression]): Option[(Option[Seq[Expression]], Option[Seq[Expression]])] = {
    val pairs = QueryChange.equalities(j)
    def isOf(side: LogicalPlan, compared: Seq[Expression]) = own.forall { e =>
      e.references.nonEmpty && e.references.subsetOf(side.outputSet) && (e.isInstanceOf[Attribute] || compared.exists(_.semanticEquals(e)))
    }
    // If the join compares all of the expressions, other rows of the other side match nothing.
    def other(compared: Seq[(Expression, Expression)]) = {
      val found = own.map(e => compared.find(_._1.semanticEquals(e)).map(_._2))
      if (found.forall(_.nonEmpty)) Some(found.flatten) else None
    }
    val (keepsLeft, keepsRight) = j.joinType match {
      case Inner | Cross => (true, true)
      case LeftOuter | LeftSemi | LeftAnti | _: ExistenceJoin => (true, false)
      case RightOuter => (false, true)
      case _ => (false, false)
    }
    if (keepsLeft && isOf(j.left, pairs.map(_._1))) Some((Some(own), other(pairs)))
    else if (keepsRight && isOf(j.right, pairs.map(_._2))) Some((other(pairs.map(_.swap)), Some(own)))
    else None
  }

  /** The expressions, if they are computed of grouping keys alone; None: they are not. Raises Untracked if they may have different values
   * in the rows of one group. Spark's optimizer would take a condition on them for one on groups. */
  private def group(own: Seq[Expression], keys: Seq[Expression]): Option[Seq[Expression]] = {
    def isKey(e: Expression) = keys.exists(_.semanticEquals(e))
    def isOf(e: Expression): Boolean = isKey(e) || (e match {
      case _: AggregateExpression => false
      case leaf if leaf.children.isEmpty => leaf.foldable
      case other => other.children.forall(isOf)
    })
    def isOpen(e: Expression): Boolean = !isKey(e) && e.children.exists(c => if (isKey(c)) hasEquals(c.dataType) else isOpen(c))
    if (own.exists(isOpen)) throw new Untracked("INEXACT_VALUE")
    if (own.forall(e => e.references.nonEmpty && isOf(e))) Some(own) else None
  }

  /** Whether different values of a type may be equal: zeros of both signs, and strings of a collation. */
  private def hasEquals(t: DataType): Boolean = Inexact.hasEqualStrings(t) || Values.hasFloating(t)
}
