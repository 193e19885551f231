package org.apache.spark.sql.streamql.keys

import org.apache.spark.SparkRuntimeException
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Count, Max}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan}
import org.apache.spark.sql.streamql.bridge.Errors
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Is always true, unless more than one row has a key: then it raises an error. `left`: the number of rows. `right`: the key as text.
 * `subject`: what has the rows.
 *
 * It is not deterministic for the optimizer, which then neither merges its filter with others nor leaves it out.
 */
case class UniqueKey(left: Expression, right: Expression, subject: String) extends BinaryExpression with Predicate {
  override lazy val deterministic: Boolean = false
  override def nullable: Boolean = false
  override def foldable: Boolean = false

  override def eval(input: InternalRow): Any = UniqueKey.check(left.eval(input).asInstanceOf[Long], right.eval(input).asInstanceOf[UTF8String], subject)

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val (count, key) = (left.genCode(ctx), right.genCode(ctx))
    val about = ctx.addReferenceObj("subject", subject)
    val check = UniqueKey.getClass.getName.stripSuffix("$") + ".check"
    ev.copy(code = count.code + key.code + code"boolean ${ev.value} = $check(${count.value}, ${key.value}, $about);", isNull = FalseLiteral)
  }

  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): UniqueKey = copy(left = newLeft, right = newRight)
}

object UniqueKey {
  /** A plan whose rows raise the error if more than one row of `keys` has a key. */
  def checked(plan: LogicalPlan, keys: LogicalPlan, subject: String): LogicalPlan = {
    val counted = Aggregate(keys.output, keys.output :+ Alias(Count(Literal(1L)).toAggregateExpression(), "n")(), keys)
    val count = counted.output.last
    val doubled = Filter(GreaterThan(count, Literal(1L)), counted)
    val worst = Max(CreateNamedStruct(Seq(Literal("n"), count, Literal("key"), text(counted.output.dropRight(1)))))
    // The subquery only finds the key. An error that it raised itself would reach users inside another one.
    val found = ScalarSubquery(Aggregate(Nil, Seq(Alias(worst.toAggregateExpression(), "worst")()), doubled))
    Filter(UniqueKey(Coalesce(Seq(GetStructField(found, 0), Literal(0L))), Coalesce(Seq(GetStructField(found, 1), Literal(""))), subject), plan)
  }

  /** The values of a key as a text for messages. */
  def text(keys: Seq[Attribute]): Expression = {
    val parts = keys.zipWithIndex.flatMap { case (k, i) =>
      Seq(Literal(s"${if (i == 0) "" else ", "}${k.name} = "), Coalesce(Seq(Cast(k, StringType, Some("UTC")), Literal("NULL"))))
    }
    Concat((Literal("(") +: parts) :+ Literal(")"))
  }

  /** Raises the error as raise_error does, which Spark shows without a trace. Python finds the text in it (`failures.py`). */
  def check(count: Long, key: UTF8String, subject: String): Boolean = {
    if (count > 1) {
      val text = Errors.text("KEY_NOT_UNIQUE", "ROWS", "count" -> count, "subject" -> subject, "key" -> key)
      throw new SparkRuntimeException("USER_RAISED_EXCEPTION", Map("errorMessage" -> text))
    }
    true
  }
}
