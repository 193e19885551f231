package org.apache.spark.sql.streamql.statements

import org.apache.spark.sql.catalyst.analysis.ApplyCharTypePaddingHelper
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Literal, StringRPad}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.delta.util.AnalysisHelper.FakeLogicalPlan
import org.apache.spark.sql.types.{BooleanType, CharType, DataType}

/**
 * Keeps the ids of CHAR columns in the expressions of a MERGE. Delta has Spark analyse the expressions in a plan of their own
 * (FakeLogicalPlan), over the source and the target, and takes only the expressions back. In each plan that it analyses, Spark pads CHAR
 * columns by a projection whose columns have new ids. The MERGE itself lacks these ids. So the expressions are analysed over the columns
 * alone. Spark pads the source and the target when it analyses the whole MERGE.
 */
object CharColumns extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case FakeLogicalPlan(expressions, plans) if plans.exists(hasChar) =>
      compared(FakeLogicalPlan(expressions, plans.map(p => if (p.isInstanceOf[LocalRelation]) p else LocalRelation(p.output))))
    case other => other
  }

  /** Pads the strings that CHAR columns are compared with, and then the columns too. Files have the values without padding, so Delta would
   * skip files by a comparison of the bare column with a padded string. */
  private def compared(plan: FakeLogicalPlan): LogicalPlan =
    if (!plan.expressions.forall(_.resolved)) plan
    else ApplyCharTypePaddingHelper.paddingForStringComparison(plan, padCharCol = false) match {
      case p: FakeLogicalPlan => p.copy(exprs = p.exprs.map(e => if (e.dataType == BooleanType) padded(e) else e))
      case other => other
    }

  private def padded(e: Expression): Expression = e match {
    case p: StringRPad => p
    case a: Attribute => rawType(a) match {
      case Some(c: CharType) => new StringRPad(a, Literal(c.length))
      case _ => a
    }
    case other => other.mapChildren(padded)
  }

  private def hasChar(plan: LogicalPlan): Boolean =
    plan.resolved && plan.collectLeaves().exists(_.output.exists(rawType(_).exists(_.existsRecursively((t: DataType) => t.isInstanceOf[CharType]))))

  private def rawType(column: Attribute): Option[DataType] = CharVarcharUtils.getRawType(column.metadata)
}
