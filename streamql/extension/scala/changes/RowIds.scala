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
class RowIdSet(bytes: Array[Byte]) extends Numbers {
  @transient private lazy val ids = RoaringBitmapArray.readFrom(bytes)
  override def contains(id: Long): Boolean = ids.contains(id)
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

/** Numbers. They are read from the bytes once in each task. */
trait Numbers extends Serializable {
  def contains(number: Long): Boolean
}

/** Whether a number (`right`) is in a set, which is made of bytes (`left`). They are a subquery, which Spark has run when it evaluates this
 * expression. */
abstract class IsInSubquery extends BinaryExpression with Predicate {
  protected def numbers(bytes: Array[Byte]): Numbers
  @transient private lazy val set = numbers(left.eval().asInstanceOf[Array[Byte]])

  override def nullable: Boolean = false
  override def eval(row: InternalRow): Any = set.contains(right.eval(row).asInstanceOf[Long])
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val numbers = ctx.addReferenceObj("numbers", set)
    val number = right.genCode(ctx)
    ev.copy(code = number.code + code"boolean ${ev.value} = $numbers.contains(${number.value});", isNull = FalseLiteral)
  }
}

/** Whether a row id is in a set. */
case class IsAmong(left: Expression, right: Expression) extends IsInSubquery {
  override protected def numbers(bytes: Array[Byte]): Numbers = new RowIdSet(bytes)
  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): IsAmong = copy(left = newLeft, right = newRight)
}
