package org.apache.spark.sql.streamql.statements

import java.util.Locale

import org.apache.spark.sql.catalyst.analysis.{UnresolvedAttribute, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.{Expression, UnresolvedNamedLambdaVariable}
import org.apache.spark.sql.catalyst.plans.logical.{InsertAction, InsertStarAction, LogicalPlan, MergeAction, MergeIntoTable, SubqueryAlias}
import org.apache.spark.sql.execution.command.ExplainCommand

/**
 * Finds MERGEs whose WHEN NOT MATCHED names columns of the target, although the target has no such row. Spark refuses them. If the MERGE
 * reads a stream, Python puts NULL in the place of these columns. Python is not asked about other MERGEs.
 */
object Merges {
  def nameTarget(plan: LogicalPlan): Boolean = plan match {
    case e: ExplainCommand => nameTarget(e.logicalPlan)
    case other => other.exists { case m: MergeIntoTable => namesTarget(m); case _ => false }
  }

  private def namesTarget(m: MergeIntoTable): Boolean = {
    val qualifiers = qualifiersOf(m.targetTable)
    def isOfTarget(e: Expression): Boolean = e match {
      case a: UnresolvedAttribute => isQualified(a.nameParts)
      case v: UnresolvedNamedLambdaVariable => isQualified(v.nameParts) // in a lambda, the parser takes every name for a variable of it
      case _ => false
    }
    def isQualified(name: Seq[String]): Boolean = qualifiers.exists(q => name.size > q.size && lowered(name.take(q.size)) == q)
    m.notMatchedActions.flatMap(read).exists(_.exists(isOfTarget))
  }

  /** The qualifiers that columns of the target may have. They are its alias or, without one, its name and the ends of the name: of `a.b.c`
   * also `b.c` and `c`. */
  private def qualifiersOf(target: LogicalPlan): Seq[Seq[String]] = target match {
    case SubqueryAlias(alias, _) => Seq(Seq(alias.name.toLowerCase(Locale.ROOT)))
    case r: UnresolvedRelation => r.multipartIdentifier.tails.filter(_.nonEmpty).map(lowered).toSeq
    case _ => Nil
  }

  private def read(action: MergeAction): Seq[Expression] = action match {
    case i: InsertAction => i.condition.toSeq ++ i.assignments.map(_.value)
    case s: InsertStarAction => s.condition.toSeq
    case _ => Nil
  }

  private def lowered(parts: Seq[String]): Seq[String] = parts.map(_.toLowerCase(Locale.ROOT))
}
