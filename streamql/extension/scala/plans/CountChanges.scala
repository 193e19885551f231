package org.apache.spark.sql.streamql.plans

import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OrderPreservingUnaryNode}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.streamql.bridge.Shared

/**
 * Counts the rows of each change type that a statement takes from a stream, for the ledger. A statement may read its stream several times,
 * each time by a physical plan of its own: MERGE reads it twice, and so does a self-join. Of each type, the largest number counts.
 */
final class ChangeCounter extends Serializable { // Spark's window operators send the plan below them to their tasks
  @transient private val plans = new ConcurrentLinkedQueue[Seq[SQLMetric]]()
  def note(metrics: Seq[SQLMetric]): Unit = plans.add(metrics)
  def counts: Seq[(String, Long)] = ChangeCounter.types.zipWithIndex.map { case (t, i) =>
    t -> plans.asScala.map(_(i).value).maxOption.getOrElse(0L)
  }
  def isUsed: Boolean = !plans.isEmpty
}

object ChangeCounter {
  val column: String = Shared.constant("columns", "changeType")
  val types: Seq[String] = Shared.changeTypes
}

/** Passes all rows on, and counts them by `changeType`. */
case class CountChanges(counter: ChangeCounter, changeType: Attribute, child: LogicalPlan) extends OrderPreservingUnaryNode {
  override def output: Seq[Attribute] = child.output
  override def references: AttributeSet = AttributeSet(changeType)
  override protected def withNewChildInternal(newChild: LogicalPlan): CountChanges = copy(child = newChild)
}
