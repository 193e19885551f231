package org.apache.spark.sql.streamql.consume

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.FILTER
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.streamql.plans.{ChangeCounter, CountChanges}
import org.apache.spark.unsafe.types.UTF8String

/** Moves filters below the count. Only rows that the statement takes are counted, so rows that a condition drops need not be read. */
object FilterBeforeCounting extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformWithPruning(_.containsPattern(FILTER)) {
    case Filter(condition, count: CountChanges) if condition.deterministic => count.copy(child = Filter(condition, count.child))
  }
}

object CountingStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case CountChanges(counter, changeType, child) => Seq(CountChangesExec(counter, changeType, planLater(child)))
    case _ => Nil
  }
}

case class CountChangesExec(counter: ChangeCounter, changeType: Attribute, child: SparkPlan) extends UnaryExecNode with CodegenSupport {
  override def output: Seq[Attribute] = child.output
  override def references: AttributeSet = AttributeSet(changeType)
  override def outputPartitioning = child.outputPartitioning
  override def outputOrdering = child.outputOrdering
  override lazy val metrics: Map[String, SQLMetric] =
    ChangeCounter.types.map(t => t -> SQLMetrics.createMetric(sparkContext, s"rows of type $t")).toMap

  private def counting: Seq[SQLMetric] = {
    val all = ChangeCounter.types.map(longMetric)
    counter.note(all)
    all
  }

  override protected def doExecute(): RDD[InternalRow] = {
    val (all, types) = (counting.toArray, ChangeCounter.types.map(UTF8String.fromString).toArray)
    val ordinal = child.output.indexWhere(_.exprId == changeType.exprId)
    child.execute().mapPartitionsInternal(_.map { row =>
      val i = if (row.isNullAt(ordinal)) -1 else types.indexOf(row.getUTF8String(ordinal))
      if (i >= 0) all(i) += 1
      row
    })
  }

  override def inputRDDs(): Seq[RDD[InternalRow]] = child.asInstanceOf[CodegenSupport].inputRDDs()
  override protected def doProduce(ctx: CodegenContext): String = child.asInstanceOf[CodegenSupport].produce(ctx, this)

  /** Uses the value of the change type. The generated code has evaluated it by then, because this node references it. */
  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String = {
    val changeTypeCode = input(child.output.indexWhere(_.exprId == changeType.exprId))
    val arms = counting.zip(ChangeCounter.types).map { case (metric, t) =>
      val (count, wanted) = (ctx.addReferenceObj("rows", metric), ctx.addReferenceObj("changeType", UTF8String.fromString(t)))
      s"if ($wanted.equals(${changeTypeCode.value})) $count.add(1);"
    }
    s"""
       |if (!${changeTypeCode.isNull}) { ${arms.mkString(" else ")} }
       |${consume(ctx, input)}
     """.stripMargin
  }

  override protected def withNewChildInternal(newChild: SparkPlan): CountChangesExec = copy(child = newChild)
}
