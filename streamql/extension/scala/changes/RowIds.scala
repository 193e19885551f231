package org.apache.spark.sql.streamql.changes

import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregation.BitmapAggregator
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.classic.ClassicConversions._
import org.apache.spark.sql.classic.ExpressionUtils
import org.apache.spark.sql.delta.deletionvectors.{RoaringBitmapArray, RoaringBitmapArrayFormat}


/** A set of row ids, which a subquery has found. If ids are close to each other, each takes an eighth of a byte. */
class RowIdSet(bytes: Array[Byte]) extends Serializable {
  @transient private lazy val ids = RoaringBitmapArray.readFrom(bytes)
  def contains(id: Long): Boolean = ids.contains(id)
}

object RowIds {
  /** Whether an id is in the only column of `rows`, which becomes a scalar subquery. */
  def among(rows: DataFrame, id: Column): Column = {
    val plan = rows.queryExecution.analyzed
    val bitmap = new BitmapAggregator(plan.output.head, RoaringBitmapArrayFormat.Portable).toAggregateExpression()
    val all = Aggregate(Nil, Seq(Alias(GetStructField(bitmap, 2), "ids")()), plan)
    ExpressionUtils.column(IsAmong(ScalarSubquery(all), ExpressionUtils.expression(id)))
  }
}

/** Whether a row id (`right`) is in a set (`left`). The set is a subquery, which Spark has run when it evaluates this expression. */
case class IsAmong(left: Expression, right: Expression) extends BinaryExpression with Predicate {
  override def nullable: Boolean = false
  @transient private lazy val ids = new RowIdSet(left.eval().asInstanceOf[Array[Byte]])

  override def eval(row: InternalRow): Any = ids.contains(right.eval(row).asInstanceOf[Long])
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val set = ctx.addReferenceObj("rowIds", ids)
    val id = right.genCode(ctx)
    ev.copy(code = id.code + code"boolean ${ev.value} = $set.contains(${id.value});", isNull = FalseLiteral)
  }
  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): IsAmong = copy(left = newLeft, right = newRight)
}
