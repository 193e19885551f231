package org.apache.spark.sql.streamql.changes

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression, NamedExpression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.DataType

/**
 * Puts a value into a variable of its own in generated code. Spark's code for Expand keeps strings and other objects in an array. If the
 * operator above uses such a value in two equal expressions, the code of Spark 4.2 does not compile. Then Spark logs an error, and
 * interprets the whole stage.
 */
case class Copied(child: Expression) extends UnaryExpression {
  override def dataType: DataType = child.dataType
  override def nullable: Boolean = child.nullable
  override def eval(input: InternalRow): Any = child.eval(input)

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val own = child.genCode(ctx)
    ev.copy(code = code"""
      ${own.code}
      boolean ${ev.isNull} = ${own.isNull};
      ${CodeGenerator.javaType(dataType)} ${ev.value} = ${own.value};""")
  }

  override protected def withNewChildInternal(newChild: Expression): Copied = copy(child = newChild)
}

object Copied {
  /** The columns of an Expand in a form that other operators can use. */
  def of(columns: Seq[Attribute]): Seq[NamedExpression] =
    columns.map(a => if (CodeGenerator.isPrimitiveType(a.dataType)) a else Alias(Copied(a), a.name)())
}
